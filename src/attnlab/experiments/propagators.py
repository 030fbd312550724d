"""The matrix U(t) of z(t) = U(t) z(0) for V_h = I, by tokens that carry their names, by SciPy, and with P frozen at t = 0.

Time is tau = H t, so that z' = (P - I) z with the mean P of the heads, whatever their number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from attnlab.types import Weights

LATE = 9.0
"""tau at which SciPy's U is put beside U(infinity)."""

LOST_SAVES = 1001
"""Times for the integral of 1 - P: 1/40 apart up to 25."""


def carrying(weights: Weights, x0: np.ndarray) -> tuple[Weights, np.ndarray]:
    """(weights, tokens) with n further coordinates, at first a unit vector a token, which no score looks at.

    With V_h = I these coordinates of z are the rows of U, since they obey the same linear equation.
    """
    n, d = x0.shape
    blind = np.zeros((weights.heads, weights.Q.shape[1], n))
    Q, K = (np.concatenate([matrix, blind], axis=2) for matrix in (weights.Q, weights.K))
    V = np.repeat(np.eye(d + n)[None], weights.heads, axis=0)
    return Weights(Q=Q, K=K, V=V, source=f"{weights.source}, tokens with names"), np.concatenate([x0, np.eye(n)], axis=1)


def mean_attention(weights: Weights, x: np.ndarray) -> np.ndarray:
    """The mean of P_h over the heads (n, n), in plain NumPy and SciPy."""
    return np.asarray(every_attention(weights, x).mean(axis=0))


def every_attention(weights: Weights, x: np.ndarray) -> np.ndarray:
    """P_h of every head (h, n, n), in plain NumPy and SciPy."""
    from scipy.special import softmax

    return np.asarray(softmax((x @ np.swapaxes(weights.Q, 1, 2)) @ np.swapaxes(x @ np.swapaxes(weights.K, 1, 2), 1, 2), axis=2))


def generator(weights: Weights, x0: np.ndarray) -> np.ndarray:
    """A = P(0) - I."""
    return mean_attention(weights, x0) - np.eye(len(x0))


def frozen(A: np.ndarray, x0: np.ndarray, moments: Sequence[float] | np.ndarray) -> np.ndarray:
    """exp(tau A) x0 (moment, n, d) by the eigenvectors of A; its eigenvalue 0 is exactly 0, so that any tau may be asked for."""
    values, right = np.linalg.eig(A)
    values = np.where(np.arange(len(values)) == np.argmax(values.real), 0.0, values)
    parts = np.linalg.solve(right, x0.astype(complex))
    return np.stack([((right * np.exp(tau * values)) @ parts).real for tau in moments])


def plain_propagator(weights: Weights, x0: np.ndarray, tau: float, p0: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(z, U, p) at tau by SciPy's DOP853: z' = (P - I) z, U' = (P - I) U, p' = (P^T - I) p, p(0) = p0."""
    from scipy.integrate import solve_ivp

    n, d = x0.shape

    def velocity(s: float, flat: np.ndarray) -> np.ndarray:
        both, p = flat[:-n].reshape(n, d + n), flat[-n:]
        P = mean_attention(weights, np.exp(s) * both[:, :d])
        return np.concatenate([(P @ both - both).ravel(), P.T @ p - p])

    start = np.concatenate([np.concatenate([x0, np.eye(n)], axis=1).ravel(), p0])
    end = solve_ivp(velocity, (0.0, tau), start, method="DOP853", rtol=1e-11, atol=1e-12).y[:, -1]
    both = end[:-n].reshape(n, d + n)
    return both[:, :d], both[:, d:], end[-n:]


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
    from scipy.integrate import trapezoid
    from scipy.special import softmax

    from attnlab.engine import simulate

    run = simulate(weights, x0, t_end=tau, saves=LOST_SAVES, rtol=1e-8, throw=False)
    P = softmax(run.x[:, tokens] @ weights.M[0] @ np.swapaxes(run.x, 1, 2), axis=2)
    return np.asarray(trapezoid(1 - P[:, np.arange(len(tokens)), tokens], run.times, axis=0))


def mixture_error(U: np.ndarray, z: np.ndarray, x0: np.ndarray, labels: np.ndarray) -> float:
    """How far rows of U of one cluster are apart, or U x0 is from z, relative to the largest entry of x0."""
    apart = max(float(np.ptp(U[labels == k], axis=0).max()) for k in range(labels.max() + 1))
    return max(apart, float(np.abs(U @ x0 - z).max() / np.abs(x0).max()))


def clusters_of(z: np.ndarray, x0: np.ndarray, close: float) -> Any:
    """Labels of the clusters of z (n, d), at a fraction `close` of the diameter of the first tokens."""
    from attnlab.analysis.clusters import cluster_labels
    from attnlab.analysis.distances import diameter

    return cluster_labels(z, close * float(diameter(x0)))
