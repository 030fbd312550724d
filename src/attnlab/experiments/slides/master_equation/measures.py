"""What the parts of the master equation measure: of U(infinity), of an error at its start, of directions."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from scipy.integrate import trapezoid
from scipy.special import softmax

from attnlab.analysis.clusters import cluster_count, cluster_labels
from attnlab.analysis.distances import diameter
from attnlab.analysis.propagators import plain_propagator
from attnlab.analysis.spectra import is_good_triple
from attnlab.engine import simulate
from attnlab.experiments.common.heads import synthetic_heads
from attnlab.types import Weights

LATE = 9.0
"""tau at which SciPy's U is put beside U(infinity)."""

LOST_SAVES = 1001
"""Times for the integral of 1 - P: 1/40 apart up to 25."""

ONE_DIRECTION = 0.1
"""Unit vectors that a chain of steps of at most this length joins are one direction: about six degrees, a reading of the word."""


def late_difference(weights: Weights, x0: np.ndarray, U: np.ndarray, z: np.ndarray, leaders: np.ndarray) -> float:
    """How far U(infinity) and z (relative to the largest entry of x0) are from SciPy's at LATE, in the rows of the leaders.

    A leader attends to itself alone by then, up to exp(-e^{2 tau}), so its row has come; those of others come like e^{-tau}.
    """
    n = len(x0)
    other_z, other_U, _ = plain_propagator(weights, x0, LATE, np.full(n, 1 / n))
    return float(max(np.abs(other_U - U)[leaders].max(), np.abs(other_z - z)[leaders].max() / np.abs(x0).max()))


def start_of(error: np.ndarray, moments: np.ndarray) -> tuple[float, float]:
    """(error / t^2 extrapolated to t = 0, the slope of log error in log t) from the first moments after 0."""
    coefficient = np.polyfit(moments[1:4], error[1:4] / moments[1:4] ** 2, 1)[1]
    return float(coefficient), float(np.polyfit(np.log(moments[1:10]), np.log(error[1:10]), 1)[0])


def lost_attention(weights: Weights, x0: np.ndarray, tokens: np.ndarray, tau: float) -> np.ndarray:
    """The integrals of 1 - P_ii over time, up to tau, of some tokens i; one head with V = I.

    U_ii' >= -(1 - P_ii) U_ii, since all that others bring is not negative: so U_ii >= exp(-integral).
    """
    run = simulate(weights, x0, t_end=tau, saves=LOST_SAVES, rtol=1e-8, throw=False)
    P = softmax(run.x[:, tokens] @ weights.M[0] @ np.swapaxes(run.x, 1, 2), axis=2)
    return np.asarray(trapezoid(1 - P[:, np.arange(len(tokens)), tokens], run.times, axis=0))


def mixture_error(U: np.ndarray, z: np.ndarray, x0: np.ndarray, labels: np.ndarray) -> float:
    """How far rows of U of one cluster are apart, or U x0 is from z, relative to the largest entry of x0."""
    apart = max(float(np.ptp(U[labels == k], axis=0).max()) for k in range(labels.max() + 1))
    return max(apart, float(np.abs(U @ x0 - z).max() / np.abs(x0).max()))


def clusters_of(z: np.ndarray, x0: np.ndarray, close: float) -> Any:
    """Labels of the clusters of z (n, d), at a fraction `close` of the diameter of the first tokens."""
    return cluster_labels(z, close * float(diameter(x0)))


def foretold_tokens(vector: np.ndarray) -> np.ndarray:
    """Where exp(tA) x0 points in the end: the real part of the eigenvector (n, d), turned so that its largest entry is real."""
    largest = vector.ravel()[np.argmax(np.abs(vector))]
    return np.asarray((vector * (abs(largest) / largest)).real)


def direction_count(x: np.ndarray) -> int:
    """The number of directions of the tokens (n, d); 0 where they are not known."""
    return int(cluster_count(x / np.linalg.norm(x, axis=1, keepdims=True), ONE_DIRECTION))


@cache
def seed_of_head(many: int, d: int, is_good: bool) -> int:
    """The seed of the many-th synthetic head, counted from seed 100 on, that is (or is not) a good triple."""
    seed = 100 if many == 1 else seed_of_head(many - 1, d, is_good) + 1
    while is_good_triple(synthetic_heads(1, d, "own", rng=seed)) != is_good:
        seed += 1
    return seed
