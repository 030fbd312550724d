"""The flow once more, by SciPy and NumPy alone: what the engine is compared with."""

from __future__ import annotations

import numpy as np

from attnlab.types import Weights


def z_by_scipy(weights: Weights, x0: np.ndarray, tau: float, rtol: float = 1e-11) -> np.ndarray:
    """z (n, d) at tau = Ht for V_h = I, by DOP853 on dz/dtau = mean_h P_h z - z, P_h = softmax(e^{2 tau} z M_h z^T)."""
    from scipy.integrate import solve_ivp
    from scipy.special import softmax

    M = weights.M

    def velocity(s: float, flat: np.ndarray) -> np.ndarray:
        z = flat.reshape(x0.shape)
        return (softmax(np.exp(2 * s) * (z @ M @ z.T), axis=2).mean(axis=0) @ z - z).ravel()

    return solve_ivp(velocity, (0.0, tau), x0.ravel(), method="DOP853", rtol=rtol, atol=rtol).y[:, -1].reshape(x0.shape)


def by_scipy(weights: Weights, x0: np.ndarray, t: float) -> np.ndarray:
    """The tokens x (n, d) at time t by DOP853 on x' = sum_h softmax(x M_h x^T) x V_h^T, tolerance 1e-11."""
    from scipy.integrate import solve_ivp
    from scipy.special import softmax

    M, V = weights.M, weights.full_V

    def velocity(_: float, flat: np.ndarray) -> np.ndarray:
        x = flat.reshape(x0.shape)
        slope = np.zeros_like(x)
        for scores, values in zip(M, V, strict=True):
            slope += softmax(x @ scores @ x.T, axis=1) @ x @ values.T
        return slope.ravel()

    return solve_ivp(velocity, (0.0, t), x0.ravel(), method="DOP853", rtol=1e-11, atol=1e-11).y[:, -1].reshape(x0.shape)
