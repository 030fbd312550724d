"""What limits are made of: row i of U(t) says how much of each first token is in token i by then.

z(t) = U(t) z(0) for V_h = I, with stochastic U; see propagators.py, which computes U. As t grows,
the rows of one cluster become equal: each cluster is a fixed mixture of first tokens.
"""

from __future__ import annotations

import numpy as np

from attnlab.analysis.propagators import plain_propagator
from attnlab.types import Trajectory, Weights

LATE = 9.0
"""The tau at which SciPy's U is compared with U(infinity)."""


def mixture_error(U: np.ndarray, z: np.ndarray, x0: np.ndarray, labels: np.ndarray) -> float:
    """Return how far U (n, n) is from mixtures with the limits z (n, d) of the tokens x0 (n, d).

    The larger of two distances: of rows of U in one cluster, and of U x0 from z over the largest
    entry of x0.
    """
    apart = max(float(np.ptp(U[labels == k], axis=0).max()) for k in range(labels.max() + 1))
    return max(apart, float(np.abs(U @ x0 - z).max() / np.abs(x0).max()))


def late_difference(
    weights: Weights, x0: np.ndarray, U: np.ndarray, z: np.ndarray, leaders: np.ndarray
) -> float:
    """Return how far U(infinity) and z are from SciPy's at LATE, in the rows of the leaders.

    A leader attends to itself alone by then, up to exp(-e^{2 tau}), so its row has come to rest.
    Other rows come like e^{-tau}. Distances of z are relative to the largest entry of x0.
    """
    n = len(x0)
    other_z, other_U, _ = plain_propagator(weights, x0, LATE, np.full(n, 1 / n))
    apart = np.abs(other_z - z)[leaders].max() / np.abs(x0).max()
    return float(max(np.abs(other_U - U)[leaders].max(), apart))


def lost_attention(run: Trajectory, tokens: np.ndarray) -> np.ndarray:
    """Return the integrals of 1 - P_ii over the saved times, for some tokens i; one head.

    U_ii' >= -(1 - P_ii) U_ii, since no other token takes anything away: U_ii >= exp(-integral).
    The integral is by the trapezoidal rule.
    """
    from scipy.integrate import trapezoid
    from scipy.special import softmax

    scores = run.x[:, tokens] @ run.dynamics.weights.M[0] @ np.swapaxes(run.x, 1, 2)
    P = softmax(scores, axis=2)
    return np.asarray(trapezoid(1 - P[:, np.arange(len(tokens)), tokens], run.times, axis=0))
