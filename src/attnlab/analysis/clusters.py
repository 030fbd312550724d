"""Groups of tokens at a stated scale: single linkage.

Two tokens are in one cluster when a chain of tokens joins them whose steps are at most `scale`
long. The grouping does not depend on the order of the tokens, and groups of diameter below the
scale that are farther than it apart are found as they are.
"""

from __future__ import annotations

import numpy as np

from attnlab.analysis import followed, observables
from attnlab.analysis.distances import diameter
from attnlab.analysis.growing import growing_parts
from attnlab.analysis.under_way import ValueAt, time_by_time
from attnlab.starts import positive_number
from attnlab.types import Trajectory

OBSERVED_SCALE = 0.01
"""cluster_count and cluster_count_all group at this fraction of the first diameter, the resolution
of the checks.
"""


def cluster_labels(x: np.ndarray, scale: float) -> np.ndarray:
    """The cluster of each token of x (..., n, d) -> (..., n) integers, numbered by their first
    token; -1 where not finite.
    """
    x = np.asarray(x, dtype=float)
    scale = positive_number("scale", scale)
    flat = x.reshape(-1, *x.shape[-2:])
    return np.array([_labels(tokens, scale) for tokens in flat], dtype=int).reshape(x.shape[:-1])


def _labels(tokens: np.ndarray, scale: float) -> np.ndarray:
    """Breadth first, one row of distances at a time: O(n^2 d) work, O(n d) memory."""
    labels = np.full(len(tokens), -1)
    unseen = np.isfinite(tokens).all(axis=1)
    count = 0
    while unseen.any():
        waiting = [int(np.argmax(unseen))]
        unseen[waiting] = False
        while waiting:
            token = waiting.pop()
            labels[token] = count
            candidates = np.flatnonzero(unseen)
            near = candidates[np.linalg.norm(tokens[candidates] - tokens[token], axis=1) <= scale]
            unseen[near] = False
            waiting.extend(near.tolist())
        count += 1
    return labels


def cluster_count(x: np.ndarray, scale: float) -> np.ndarray:
    """The number of clusters of x (..., n, d) at that scale -> (...) integers."""
    return cluster_labels(x, scale).max(axis=-1) + 1


def covering_count(x: np.ndarray, radius: float) -> int:
    """How many tokens of x (n, d), each the farthest from those before it, have all others within
    `radius`.

    They are more than `radius` apart, so fewer balls of half that radius do not cover x. Chains do
    not matter, as they do for clusters: tokens that fill a line are many, however close each is to
    the next.
    """
    x = np.asarray(x, dtype=float)
    distance, count = np.linalg.norm(x - x[0], axis=1), 1
    while distance.max() > radius:
        distance = np.minimum(distance, np.linalg.norm(x - x[int(distance.argmax())], axis=1))
        count += 1
    return count


def cluster_centres(x: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The means of the tokens x (..., n, d) of each label 0, 1, ... of labels (n,) -> (..., count,
    d); label -1 is left out.
    """
    members = np.asarray(labels) == np.arange(np.max(labels) + 1)[:, None]  # (count, n)
    return (members / members.sum(axis=1, keepdims=True)) @ np.asarray(x, dtype=float)


def _count_over_times(run: Trajectory, x: np.ndarray) -> ValueAt:
    """The number of clusters of x (*batch, T, n, d) at a time, at 1 % of the first diameter of each
    member of the batch.
    """
    scales = {
        member: OBSERVED_SCALE * float(diameter(x[(*member, 0)]))
        for member in np.ndindex(run.batch)
    }

    def count_at(at: int) -> np.ndarray:
        counts = np.full(run.batch, np.nan)
        for member, scale in scales.items():
            tokens = x[(*member, at)]
            if np.isfinite(tokens).all() and np.isfinite(
                scale
            ):  # the distance of finite tokens may overflow
                # equal tokens stay equal: one cluster, at any scale
                counts[member] = cluster_count(tokens, scale) if scale > 0 else 1
        return counts

    return count_at


@observables.register("cluster_count")
@time_by_time()
def observe_cluster_count(run: Trajectory) -> ValueAt:
    """The number of clusters in the growing directions F of sum_h V_h, at 1 % of the first diameter
    there, (*batch, T).

    F is where the limit is counted: tokens that agree there and differ elsewhere are one cluster.
    In all of R^d, as cluster_count_all, on the sphere (of x) and where nothing grows.
    """
    return _count_over_times(run, growing_parts(run))


@observables.register("cluster_count_all")
@time_by_time()
def observe_cluster_count_all(run: Trajectory) -> ValueAt:
    """The number of clusters of the tokens z (x on the sphere) in all of R^d, at 1 % of their first
    diameter, (*batch, T).
    """
    return _count_over_times(run, followed(run))


def adjusted_rand_index(one: np.ndarray, other: np.ndarray) -> float:
    """Return the adjusted Rand index of two partitions, labels (n,): 1 for the same, 0 in the mean
    for unrelated ones.
    """
    table = np.array(
        [[np.sum((one == a) & (other == b)) for b in np.unique(other)] for a in np.unique(one)],
        dtype=float,
    )

    def pairs(counts: np.ndarray) -> float:
        return float((counts * (counts - 1) / 2).sum())

    both, rows, columns = pairs(table), pairs(table.sum(axis=1)), pairs(table.sum(axis=0))
    expected = rows * columns / (len(one) * (len(one) - 1) / 2)
    largest = (rows + columns) / 2
    return (both - expected) / (largest - expected) if largest != expected else 1.0


def differing_pairs(one: np.ndarray, other: np.ndarray) -> int:
    """Return how many pairs of tokens are together in one partition and apart in the other.

    one, other: labels (n,); what the labels are called does not matter.
    """
    return int(np.sum((one[:, None] == one) != (other[:, None] == other))) // 2
