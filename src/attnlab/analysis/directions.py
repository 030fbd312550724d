"""The directions x / |x| of tokens: which share of the pairs agrees, and how far all of them
agree.
"""

from __future__ import annotations

import numpy as np

from attnlab.analysis import observables, over_leading_axes
from attnlab.analysis.clusters import cluster_count
from attnlab.analysis.distances import PAIRS_AT_ONCE
from attnlab.analysis.under_way import ValueAt, time_by_time
from attnlab.types import Trajectory

CLUSTERED_COSINE = 0.999
"""Two tokens count as clustered above this cosine, as in the phase diagram of arXiv 2312.10794."""


def unit(x: np.ndarray) -> np.ndarray:
    """Return x / |x| for tokens x (..., n, d); NaN for a token of norm 0."""
    return np.asarray(x / np.linalg.norm(x, axis=-1, keepdims=True))


def clustered_pairs(x: np.ndarray, cosine: float = CLUSTERED_COSINE) -> np.ndarray:
    """The share of the pairs of different tokens of x (..., n, d) whose directions have a larger
    cosine -> (...), from 0 to 1.

    A token of norm 0 has no direction: then the share is NaN.
    """
    return over_leading_axes(lambda tokens: _share(_directions(tokens), cosine), x)


def order_parameter(x: np.ndarray) -> np.ndarray:
    """The norm of the mean direction of the tokens x (..., n, d) -> (...): 1 where all agree, 0
    where they cancel.
    """
    return over_leading_axes(
        lambda tokens: float(np.linalg.norm(_directions(tokens).mean(axis=0))), x
    )


def _directions(tokens: np.ndarray) -> np.ndarray:
    largest = np.abs(tokens).max(
        axis=1, keepdims=True
    )  # first: squares of huge or tiny numbers are lost
    with np.errstate(invalid="ignore"):
        scaled = tokens / largest
        return scaled / np.linalg.norm(scaled, axis=1, keepdims=True)


def _share(directions: np.ndarray, cosine: float) -> float:
    n = len(directions)
    if not np.isfinite(directions).all():
        return float("nan")
    rows = max(1, PAIRS_AT_ONCE // n)
    near = sum(
        int((directions[begin : begin + rows] @ directions.T > cosine).sum())
        for begin in range(0, n, rows)
    )
    return (near - n) / (n * (n - 1))  # each token agrees with itself


@observables.register("clustered_pairs")
@time_by_time()
def observe_clustered_pairs(run: Trajectory) -> ValueAt:
    """The share of the pairs of tokens x whose directions have a cosine above 0.999, (*batch,
    T).
    """
    if run.n < 2:
        raise ValueError(
            "The observable clustered_pairs needs at least two tokens, but this run has one. Leave"
            " it out."
        )
    states, _ = run.scaled_x()
    return lambda at: clustered_pairs(states[..., at, :, :])


@observables.register("order_parameter")
@time_by_time()
def observe_order_parameter(run: Trajectory) -> ValueAt:
    """The norm of the mean direction of the tokens x: 1 where all agree, about 1 / sqrt(n) where
    they are random, (*batch, T).
    """
    states, _ = run.scaled_x()
    return lambda at: order_parameter(states[..., at, :, :])


def direction_count(x: np.ndarray, scale: float) -> int:
    """Return the number of directions of the tokens x (n, d); 0 where they are not known.

    Unit vectors that a chain of steps of at most `scale` joins are one direction.
    """
    return int(cluster_count(unit(x), scale))
