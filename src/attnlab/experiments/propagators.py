"""The matrix U(t) of z(t) = U(t) z(0) for V_h = I, by tokens that carry their names, by SciPy, and with P frozen at t = 0.

Time is tau = H t, so that z' = (P - I) z with the mean P of the heads, whatever their number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from attnlab.types import Weights


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
    return np.asarray(_every_attention(weights, x).mean(axis=0))


def _every_attention(weights: Weights, x: np.ndarray) -> np.ndarray:
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


def second_order(weights: Weights, x0: np.ndarray) -> np.ndarray:
    """P'(0) z(0) / 2 (n, d), per tau: P_ij' = P_ij (s_ij' - sum_l P_il s_il') in each head, s' from x' = P x."""
    P = _every_attention(weights, x0)
    velocity = P.mean(axis=0) @ x0
    Q, K = np.swapaxes(weights.Q, 1, 2), np.swapaxes(weights.K, 1, 2)
    scores = (velocity @ Q) @ np.swapaxes(x0 @ K, 1, 2) + (x0 @ Q) @ np.swapaxes(velocity @ K, 1, 2)
    slope = P * (scores - (P * scores).sum(axis=2, keepdims=True))
    return np.asarray(slope.mean(axis=0) @ x0 / 2)


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


def plain_value_propagator(weights: Weights, x0: np.ndarray, t: float) -> np.ndarray:
    """G (nd, nd) with x(t) = G x(0) for any V_h, by SciPy's DOP853: G' = (sum_h P_h kron V_h) G along x itself."""
    from scipy.integrate import solve_ivp

    size, V = x0.size, weights.full_V

    def velocity(_: float, flat: np.ndarray) -> np.ndarray:
        P = _every_attention(weights, flat[:size].reshape(x0.shape))
        moves = sum(np.kron(one, value) for one, value in zip(P, V, strict=True))
        return np.concatenate([moves @ flat[:size], (moves @ flat[size:].reshape(size, size)).ravel()])

    start = np.concatenate([x0.ravel(), np.eye(size).ravel()])
    end = solve_ivp(velocity, (0.0, t), start, method="DOP853", rtol=1e-11, atol=1e-12).y[:, -1]
    return np.asarray(end[size:].reshape(size, size))


def compressed(weights: Weights, x0: np.ndarray, d: int) -> tuple[Weights, np.ndarray]:
    """Heads and tokens seen in the d principal directions of the tokens: Q B, K B, B^T V B and x B."""
    basis = np.linalg.svd(x0, full_matrices=False)[2][:d].T
    return Weights(Q=weights.Q @ basis, K=weights.K @ basis, V=basis.T @ weights.full_V @ basis,
                   source=f"{weights.source}, in {d} principal directions"), x0 @ basis


def clusters_of(z: np.ndarray, x0: np.ndarray, close: float) -> Any:
    """Labels of the clusters of z (n, d), at a fraction `close` of the diameter of the first tokens."""
    from attnlab.analysis.clusters import cluster_labels
    from attnlab.analysis.distances import diameter

    return cluster_labels(z, close * float(diameter(x0)))
