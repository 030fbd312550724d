"""The flow once more, by SciPy and NumPy alone: what a run of the engine is compared with. It shares no code with the engine."""

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


def polygon_radius(n: int, times: np.ndarray) -> np.ndarray:
    """Return the radius of z at these times of a regular n-gon that starts with radius 1.

    One head with Q = K = V = I. By symmetry z stays a regular polygon: r' = r (c - 1), c the mean
    cosine that a token attends to.
    """
    from scipy.integrate import solve_ivp
    from scipy.special import softmax

    cosines = np.cos(2 * np.pi * np.arange(n) / n)

    def slope(t: float, r: np.ndarray) -> np.ndarray:
        return np.asarray(r * (softmax(r[0] ** 2 * np.exp(2 * t) * cosines) @ cosines - 1))

    options = {"method": "DOP853", "rtol": 1e-12, "atol": 1e-14, "t_eval": times}
    return np.asarray(solve_ivp(slope, (0.0, times[-1]), [1.0], **options).y[0])


def euler_steps(weights: Weights, x0: np.ndarray, dt: float, count: int) -> np.ndarray:
    """Return x (count + 1, n, d) by Euler's steps x + dt sum_h softmax(x M_h x^T) x V_h^T."""
    from scipy.special import softmax

    x, pairs = [x0], list(zip(weights.M, weights.full_V, strict=True))
    for _ in range(count):
        now = x[-1]
        x.append(now + dt * sum(softmax(now @ M @ now.T, axis=1) @ now @ V.T for M, V in pairs))
    return np.array(x)


def factors_of(weights: Weights) -> tuple[np.ndarray, np.ndarray]:
    """Return (B, C) with V = B C for one head; B = I where V has no factors."""
    if weights.is_factored:
        return weights.V[0][0], weights.V[1][0]
    return np.eye(weights.d), weights.V[0]


def exponential_by_scipy(weights: Weights, x: np.ndarray, t: float) -> np.ndarray:
    """Return e^(tV) x (d,) for one head, by SciPy's expm_multiply on the factors of V.

    A token that attends to itself alone moves like this.
    """
    from scipy.sparse.linalg import LinearOperator, expm_multiply

    B, C = factors_of(weights)

    def forth(y: np.ndarray) -> np.ndarray:
        return B @ (C @ y)

    def back(y: np.ndarray) -> np.ndarray:
        return C.T @ (B.T @ y)

    shape = (weights.d, weights.d)
    V = LinearOperator(shape, matvec=forth, rmatvec=back, matmat=forth, dtype=float)
    return np.asarray(expm_multiply(t * V, x, traceA=t * float(np.sum(B * C.T))))
