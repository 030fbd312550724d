"""How one attempt is made, and when it must have ended. Twins are made with other settings."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np

CHECKS = 4.0
"""How many times the integrator is stopped in the time in which the largest tokens grow by e."""

BOOLEAN_GAP = 40.0
"""A row whose leader is ahead by this listens to nobody else: e^-40."""

LARGEST_GROWTH = 600.0
"""The frozen flow ends at this lambda_1 t: offsets would underflow beside the tokens."""


@dataclass(frozen=True)
class Settings:
    """digits None: compiled double precision, tokens as two doubles."""

    rtol: float = 1e-12
    handover: float = 10.0          # log|x| from which the frozen flow takes over
    push: float = 0.0               # by which the start is perturbed, relative to the largest token in each coordinate
    offset: float = 0.0             # of the times at which the integrator is stopped, in parts of their distance
    may_glue: bool = False
    digits: int | None = None


@dataclass(eq=False)
class Deadline:
    """When the whole call must have ended; the flag stops compiled code."""

    end: float
    flag: np.ndarray = field(default_factory=lambda: np.zeros(1, np.int64))

    @property
    def has_come(self) -> bool:
        """Whether time is up, or somebody asked to stop."""
        return bool(self.flag[0]) or time.monotonic() > self.end
