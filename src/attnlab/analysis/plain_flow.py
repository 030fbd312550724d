"""The flow by SciPy and NumPy alone, for comparison with runs of the engine. It shares no code with the engine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from attnlab.types import Weights

TOLERANCE = 1e-11


def flow_by_scipy(weights: Weights, x0: np.ndarray, times: float | Sequence[float] | np.ndarray, *, rtol: float = TOLERANCE,
                  atol: float | None = None) -> np.ndarray:
    """The tokens x (n, d) at one time, or (T, n, d) at several, by DOP853 on x' = sum_h softmax(x M_h x^T) x V_h^T.

    x0: (n, d), the tokens at t = 0. rtol, atol: tolerances of SciPy; atol is rtol where it is not given.
    """
    from scipy.integrate import solve_ivp
    from scipy.special import softmax

    M, V = weights.M, weights.full_V

    def velocity(_: float, flat: np.ndarray) -> np.ndarray:
        x = flat.reshape(x0.shape)
        slope = np.zeros_like(x)
        for scores, values in zip(M, V, strict=True):
            slope += softmax(x @ scores @ x.T, axis=1) @ x @ values.T
        return slope.ravel()

    asked = None if np.ndim(times) == 0 else np.asarray(times, dtype=float)
    end = float(times) if asked is None else float(asked[-1])                                       # type: ignore[arg-type]
    found = solve_ivp(velocity, (0.0, end), x0.ravel(), method="DOP853", t_eval=asked, rtol=rtol,
                      atol=rtol if atol is None else atol).y
    return found[:, -1].reshape(x0.shape) if asked is None else found.T.reshape(len(asked), *x0.shape)


def rescaled_by_scipy(weights: Weights, x0: np.ndarray, tau: float, rtol: float = TOLERANCE) -> np.ndarray:
    """z (n, d) at tau = Ht for V_h = I, by DOP853 on dz/dtau = mean_h P_h z - z, P_h = softmax(e^{2 tau} z M_h z^T)."""
    from scipy.integrate import solve_ivp
    from scipy.special import softmax

    M = weights.M

    def velocity(s: float, flat: np.ndarray) -> np.ndarray:
        z = flat.reshape(x0.shape)
        return (softmax(np.exp(2 * s) * (z @ M @ z.T), axis=2).mean(axis=0) @ z - z).ravel()

    return solve_ivp(velocity, (0.0, tau), x0.ravel(), method="DOP853", rtol=rtol, atol=rtol).y[:, -1].reshape(x0.shape)
