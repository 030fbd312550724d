"""How far apart the tokens are: pairwise distances, diameter, smallest distance.

Differences are taken before squares, so that the distances inside a tight cluster keep their digits.
"""

from __future__ import annotations

import numpy as np

from attnlab.analysis import followed, observables, over_leading_axes
from attnlab.types import Trajectory


def pairwise_distances(x: np.ndarray) -> np.ndarray:
    """|x_i - x_j| for all tokens x (..., n, d) -> (..., n, n)."""
    from scipy.spatial.distance import cdist

    flat = np.asarray(x, dtype=float).reshape(-1, *np.shape(x)[-2:])
    n = flat.shape[-2]
    return np.array([cdist(tokens, tokens) for tokens in flat]).reshape(*np.shape(x)[:-1], n)


def diameter(x: np.ndarray) -> np.ndarray:
    """max_ij |x_i - x_j| of tokens x (..., n, d) -> (...); 0 for one token."""
    from scipy.spatial.distance import pdist

    return over_leading_axes(lambda tokens: pdist(tokens).max(initial=0.0), np.asarray(x, dtype=float))


def min_distance(x: np.ndarray) -> np.ndarray:
    """min_{i != j} |x_i - x_j| of tokens x (..., n, d) -> (...); infinite for one token."""
    from scipy.spatial.distance import pdist

    return over_leading_axes(lambda tokens: pdist(tokens).min(initial=np.inf), np.asarray(x, dtype=float))


@observables.register("diameter")
def observe_diameter(run: Trajectory) -> np.ndarray:
    """The diameter of the tokens z (x on the sphere), (*batch, T)."""
    return diameter(followed(run))


@observables.register("min_distance")
def observe_min_distance(run: Trajectory) -> np.ndarray:
    """The smallest distance between two tokens z (x on the sphere), (*batch, T)."""
    return min_distance(followed(run))
