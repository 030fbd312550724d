"""Which frame a run is integrated in, and which path computes it. Never depends on the batch: members equal single runs."""

from __future__ import annotations

from functools import cache

from attnlab.axes.together import plain_axes
from attnlab.registry import outline
from attnlab.types import Dynamics, Solve

MOST_PAIRS = 400_000
"""Up to this many (row, column, head) a whole run is compiled code on one core; above, each velocity uses all cores."""

MOST_COORDINATES = 128
"""Up to this d the compiled code's own small matrix products beat the calls to BLAS and to the pool of threads."""


def choose_frame(dynamics: Dynamics, solve: Solve) -> str:
    """x or z: what the steps are taken in (engine/coordinates.py says why x is the better one for adaptive steps).

    auto: x; but z for fixed steps with one head, as the published scripts take them, and for the feed-forward variant.
    """
    if not dynamics.is_value_linear or dynamics.is_layers:
        return "x"
    if dynamics.feedforward.acts_on_z:
        return "z"
    if solve.frame != "auto":
        return solve.frame
    is_published = solve.stepper != "adaptive" and dynamics.weights.heads == 1 and dynamics.kernel.rows_sum_to_one
    return "z" if is_published else "x"


def is_small(dynamics: Dynamics, n: int) -> bool:
    """Whether the whole run is one compiled call."""
    weights = dynamics.weights
    return weights.heads * n * n <= MOST_PAIRS and max(weights.d, weights.Q.shape[1]) <= MOST_COORDINATES


def is_compiled(dynamics: Dynamics) -> bool:
    """Whether every axis has a compiled counterpart; else the reference path computes it (engine/reference.py)."""
    has_mask = dynamics.mask.sees_all or dynamics.mask.is_causal
    has_space = dynamics.geometry.name in COMPILED_SPACES and dynamics.feedforward.name in COMPILED_DRIFTS
    is_plain = all(plain_axes(dynamics).values())
    return bool(has_mask and has_space and is_plain and dynamics.kernel.name in compiled_kernels())


COMPILED_SPACES = ("euclidean", "sphere")
"""Spaces that compiled code knows."""

COMPILED_DRIFTS = ("none", "feedforward")
"""Drifts that it knows."""


@cache
def compiled_kernels() -> frozenset[str]:
    """The names of the files of engine/cores: to know them, nothing is imported."""
    return frozenset(outline("attnlab.engine.cores"))
