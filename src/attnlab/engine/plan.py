"""Choose the frame and the path of a run. The choice does not depend on the batch, so members equal
single runs.
"""

from __future__ import annotations

from functools import cache

from attnlab.axes.together import plain_axes
from attnlab.registry import outline
from attnlab.types import Dynamics, Solve

MOST_PAIRS = 400_000
"""Up to this many (row, column, head) a whole run is compiled code on one core; above, each
velocity uses all cores.
"""

MOST_COORDINATES = 128
"""Up to this d the compiled code's own small matrix products are faster than calls to BLAS and to
the pool of threads.
"""


def choose_frame(dynamics: Dynamics, solve: Solve) -> str:
    """Return the frame of the steps, x or z (engine/coordinates.py says why x is better for
    adaptive steps).

    auto: x; but z for fixed steps with one head, as in the published scripts, and for the
    feed-forward variant.
    """
    if not dynamics.is_value_linear or dynamics.is_layers:
        return "x"
    if dynamics.feedforward.acts_on_z:
        return "z"
    if solve.frame != "auto":
        return solve.frame
    is_published = (
        solve.stepper != "adaptive"
        and dynamics.weights.heads == 1
        and dynamics.kernel.rows_sum_to_one
    )
    return "z" if is_published else "x"


def is_small(dynamics: Dynamics, n: int) -> bool:
    """Whether the whole run is one compiled call."""
    weights = dynamics.weights
    return (
        weights.heads * n * n <= MOST_PAIRS
        and max(weights.d, weights.Q.shape[1]) <= MOST_COORDINATES
    )


def is_compiled(dynamics: Dynamics) -> bool:
    """Whether every axis has a compiled counterpart; else the reference path computes it
    (engine/reference.py).
    """
    has_mask = dynamics.mask.sees_all or dynamics.mask.is_causal
    has_space = (
        dynamics.geometry.name in COMPILED_SPACES and dynamics.feedforward.name in COMPILED_DRIFTS
    )
    others = all(
        is_plain or getattr(dynamics, axis).name in counterparts(axis)
        for axis, is_plain in plain_axes(dynamics).items()
    )
    return bool(
        has_mask and has_space and others and dynamics.kernel.name in counterparts("kernel")
    )


def choose_path(dynamics: Dynamics, n: int) -> str:
    """How n tokens are computed: "compiled" (one call, one core), "threaded" (each velocity on all
    cores) or "reference".
    """
    if not is_compiled(dynamics):
        return "reference"
    if is_small(dynamics, n):
        return "compiled"
    return (
        "threaded" if dynamics.kernel.is_row_local else "reference"
    )  # rows in blocks, on all cores


COMPILED_SPACES = ("euclidean", "sphere")
"""Spaces that compiled code knows."""

COMPILED_DRIFTS = ("none", "feedforward")
"""Drifts that it knows."""


FOLDERS = {"kernel": "kernels", "read": "reads"}
"""{axis: the folder of its compiled counterparts in engine/cores}; other axes have none."""


@cache
def counterparts(axis: str) -> frozenset[str]:
    """Return the names of the members of an axis with compiled code, without an import."""
    return (
        frozenset(outline(f"attnlab.engine.cores.{FOLDERS[axis]}"))
        if axis in FOLDERS
        else frozenset()
    )
