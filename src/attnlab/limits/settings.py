"""How one attempt is made. Replicas are made with other settings."""

from __future__ import annotations

from dataclasses import dataclass

CHECKS = 4.0
"""How many times the integrator is stopped in the time in which the largest tokens grow by e."""

BOOLEAN_GAP = 40.0
"""A row whose leader is ahead by this listens to nobody else: e^-40."""

LEAST_MARGIN = 50.0
"""G of a certificate is at least this and more with the size of the tokens: what leaks is below e^-50."""

MANY = 256
"""From this many different tokens on, cells of them are looked at before single ones (cells.py)."""

LARGEST_GROWTH = 600.0
"""The frozen flow ends at this lambda_1 t: offsets would underflow beside the tokens."""


@dataclass(frozen=True)
class Settings:
    """digits None: compiled double precision, tokens as two doubles."""

    rtol: float = 1e-12
    handover: float = 10.0  # log|x| from which the frozen flow takes over
    push: float = (
        0.0  # by which the start is perturbed, relative to the largest token in each coordinate
    )
    offset: float = (
        0.0  # of the times at which the integrator is stopped, in parts of their distance
    )
    may_glue: bool = False
    digits: int | None = None
