"""Groups of tokens at a stated scale: single linkage.

Two tokens are in one cluster when a chain of tokens joins them whose steps are at most `scale` long. The grouping does not
depend on the order of the tokens, and groups of diameter below the scale that are farther than it apart are found as they are.
"""

from __future__ import annotations

import numpy as np

from attnlab.analysis import followed, observables
from attnlab.analysis.distances import diameter
from attnlab.starts import positive_number
from attnlab.types import Trajectory

OBSERVED_SCALE = 0.01
"""The observable cluster_count groups at this fraction of the first diameter, the resolution of the checks (design.md, 5)."""


def cluster_labels(x: np.ndarray, scale: float) -> np.ndarray:
    """The cluster of each token of x (..., n, d) -> (..., n) integers, numbered by their first token; -1 where not finite."""
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


def cluster_centres(x: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The means of the tokens x (..., n, d) of each label 0, 1, ... of labels (n,) -> (..., count, d); label -1 is left out."""
    members = np.asarray(labels) == np.arange(np.max(labels) + 1)[:, None]          # (count, n)
    return (members / members.sum(axis=1, keepdims=True)) @ np.asarray(x, dtype=float)


@observables.register("cluster_count")
def observe_cluster_count(run: Trajectory) -> np.ndarray:
    """The number of clusters of the tokens z (x on the sphere) at 1 % of their first diameter, (*batch, T)."""
    x = followed(run)
    counts = np.full(x.shape[:-2], np.nan)
    for member in np.ndindex(run.batch):
        scale = OBSERVED_SCALE * float(diameter(x[(*member, 0)]))
        finite = np.isfinite(x[member]).all(axis=(-2, -1))
        # equal tokens stay equal: one cluster, at any scale
        counts[(*member, finite)] = cluster_count(x[(*member, finite)], scale) if scale > 0 else 1
    return counts
