"""Which frame a run is integrated in, and which path computes it. Never depends on the batch: members equal single runs."""

from __future__ import annotations

from attnlab.exponential import split
from attnlab.types import Dynamics, Solve

MOST_PAIRS = 400_000
"""Up to this many (row, column, head) a whole run is compiled code on one core; above, each velocity uses all cores."""

MOST_COORDINATES = 64
"""Up to this d the compiled code's own small matrix products beat the calls to BLAS."""


def choose_frame(dynamics: Dynamics, solve: Solve) -> str:
    """x, z or split (see types.Trajectory).

    auto, adaptive steps   one head: z on the unstable part of V, x on the rest, because neither frame alone stays bounded;
                           several heads, an ill-conditioned splitting, exp_mean: x, its scale carried apart
    auto, fixed steps      z for one head, as the published scripts step it; x for several, where z is ill-conditioned
    """
    if dynamics.geometry == "sphere" or dynamics.is_layers:
        return "x"
    if dynamics.feedforward is not None:
        return "z"
    if solve.frame != "auto":
        return solve.frame
    if dynamics.weights.heads > 1 or dynamics.kernel == "exp_mean":
        return "x"
    if solve.stepper != "adaptive":
        return "z"
    parts = split(dynamics.weights.total)
    if parts is None or not parts[0].small.any():
        return "x"
    return "split" if parts[1].small.any() or parts[1].is_factored else "z"


def is_small(dynamics: Dynamics, n: int) -> bool:
    """Whether the whole run is one compiled call."""
    weights = dynamics.weights
    return weights.heads * n * n <= MOST_PAIRS and max(weights.d, weights.Q.shape[1]) <= MOST_COORDINATES
