"""How far apart the tokens are: pairwise distances, diameter, smallest distance.

Differences are taken before squares, so that the distances inside a tight cluster keep their
digits.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnlab.analysis import followed, observables, over_leading_axes
from attnlab.analysis.under_way import ValueAt, time_by_time
from attnlab.types import Trajectory

PAIRS_AT_ONCE = 4_000_000
"""Distances that are held at once: 32 MB, and a fraction of a second."""


def pairwise_distances(x: np.ndarray) -> np.ndarray:
    """|x_i - x_j| for all tokens x (..., n, d) -> (..., n, n)."""
    from scipy.spatial.distance import cdist

    flat = np.asarray(x, dtype=float).reshape(-1, *np.shape(x)[-2:])
    n = flat.shape[-2]
    return np.array([cdist(tokens, tokens) for tokens in flat]).reshape(*np.shape(x)[:-1], n)


def diameter(x: np.ndarray) -> np.ndarray:
    """max_ij |x_i - x_j| of tokens x (..., n, d) -> (...); 0 for one token."""
    return over_leading_axes(
        lambda tokens: max((some.max(initial=0.0) for some in _distances(tokens)), default=0.0), x
    )


def min_distance(x: np.ndarray) -> np.ndarray:
    """min_{i != j} |x_i - x_j| of tokens x (..., n, d) -> (...); infinite for one token."""
    return over_leading_axes(
        lambda tokens: min(
            (some.min(initial=np.inf) for some in _distances(tokens)), default=np.inf
        ),
        x,
    )


def _distances(tokens: np.ndarray) -> Iterator[np.ndarray]:
    """The distances of all pairs of different tokens (n, d), in pieces: n^2 / 2 of them at once may
    not fit in memory.
    """
    from scipy.spatial.distance import cdist, pdist

    n = len(tokens)
    if n * n <= PAIRS_AT_ONCE:
        yield pdist(tokens)
        return
    rows = max(1, PAIRS_AT_ONCE // n)
    for begin in range(0, n, rows):
        block = tokens[begin : begin + rows]
        yield pdist(block)
        if begin + rows < n:
            yield cdist(block, tokens[begin + rows :])


@observables.register("diameter")
@time_by_time()
def observe_diameter(run: Trajectory) -> ValueAt:
    """The diameter of the tokens z (x on the sphere), (*batch, T)."""
    tokens = followed(run)
    return lambda at: diameter(tokens[..., at, :, :])


@observables.register("min_distance")
@time_by_time()
def observe_min_distance(run: Trajectory) -> ValueAt:
    """The smallest distance between two tokens z (x on the sphere), (*batch, T)."""
    if run.n < 2:
        raise ValueError(
            "The observable min_distance needs at least two tokens, but this run has one. Leave it"
            " out."
        )
    tokens = followed(run)
    return lambda at: min_distance(tokens[..., at, :, :])


@observables.register("radius")
def observe_radius(run: Trajectory) -> np.ndarray:
    """The mean norm |x_i| of the tokens x themselves, not of z, (*batch, T)."""
    return np.asarray(np.linalg.norm(run.x, axis=-1).mean(axis=-1))
