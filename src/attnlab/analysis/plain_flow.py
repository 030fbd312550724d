"""The flow by SciPy and NumPy alone, for comparison with runs of the engine. It shares no code with
the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from attnlab.types import FeedForward, Weights

TOLERANCE = 1e-11


def flow_by_scipy(
    weights: Weights,
    x0: np.ndarray,
    times: float | Sequence[float] | np.ndarray,
    *,
    rtol: float = TOLERANCE,
    atol: float | None = None,
) -> np.ndarray:
    """The tokens x (n, d) at one time, or (T, n, d) at several, by DOP853 on x' = sum_h softmax(x
    M_h x^T) x V_h^T.

    x0: (n, d), the tokens at t = 0. rtol, atol: tolerances of SciPy; atol is rtol where it is not
    given.
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
    end = float(times) if asked is None else float(asked[-1])  # type: ignore[arg-type]
    found = solve_ivp(
        velocity,
        (0.0, end),
        x0.ravel(),
        method="DOP853",
        t_eval=asked,
        rtol=rtol,
        atol=rtol if atol is None else atol,
    ).y
    return (
        found[:, -1].reshape(x0.shape) if asked is None else found.T.reshape(len(asked), *x0.shape)
    )


def rescaled_by_scipy(
    weights: Weights, x0: np.ndarray, tau: float, rtol: float = TOLERANCE
) -> np.ndarray:
    """z (n, d) at tau = Ht for V_h = I, by DOP853 on dz/dtau = mean_h P_h z - z, P_h = softmax(e^{2
    tau} z M_h z^T).
    """
    from scipy.integrate import solve_ivp
    from scipy.special import softmax

    M = weights.M

    def velocity(s: float, flat: np.ndarray) -> np.ndarray:
        z = flat.reshape(x0.shape)
        return (softmax(np.exp(2 * s) * (z @ M @ z.T), axis=2).mean(axis=0) @ z - z).ravel()

    return (
        solve_ivp(velocity, (0.0, tau), x0.ravel(), method="DOP853", rtol=rtol, atol=rtol)
        .y[:, -1]
        .reshape(x0.shape)
    )


def frame_velocity(
    V: np.ndarray, M: np.ndarray, after: FeedForward | None = None
) -> Callable[[float, np.ndarray], np.ndarray]:
    """Return f(t, z) = z' (n, d) of one head: z_i' = W sigma(V sum_j P_ij (z_j - z_i)), P the
    softmax of x M x^T, x = e^{tV} z.

    V: (d, d), diagonalisable. after: W and sigma; without it the velocity is V sum_j P_ij (z_j -
    z_i).
    """
    values, right = np.linalg.eig(V)
    left = np.linalg.inv(right)

    def velocity(t: float, z: np.ndarray) -> np.ndarray:
        x = z @ ((right * np.exp(t * values)) @ left).real.T
        scores = x @ M @ x.T
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        pulled = np.asarray((weights @ z - z) @ V.T)
        if after is None:
            return pulled
        bent = np.tanh(pulled) if after.sigma == "tanh" else np.maximum(pulled, 0.0)
        return bent if after.W is None else np.asarray(bent @ after.W.T)

    return velocity


def frame_by_scipy(
    V: np.ndarray,
    M: np.ndarray,
    z0: np.ndarray,
    times: Sequence[float] | np.ndarray,
    after: FeedForward | None = None,
    *,
    rtol: float = TOLERANCE,
    atol: float = TOLERANCE,
) -> np.ndarray:
    """z = e^{-tV} x (T, n, d) at some times, by DOP853 on `frame_velocity`. z0: (n, d), the tokens
    at t = 0.
    """
    from scipy.integrate import solve_ivp

    velocity = frame_velocity(V, M, after)
    found = solve_ivp(
        lambda t, flat: velocity(t, flat.reshape(z0.shape)).ravel(),
        (0.0, float(times[-1])),
        z0.ravel(),
        method="DOP853",
        rtol=rtol,
        atol=atol,
        t_eval=np.asarray(times),
    )
    return found.y.T.reshape(len(times), *z0.shape)


def tangent_by_scipy(
    V: np.ndarray,
    M: np.ndarray,
    x0: np.ndarray,
    t: float,
    rtol: float = 1e-9,
    atol: float = TOLERANCE,
) -> np.ndarray:
    """The derivative (nd, nd) of the tokens at t by the tokens x0 (n, d) at 0, for one head, from
    the Jacobian in closed form.
    """
    from scipy.integrate import solve_ivp

    n, d = x0.shape

    def rate(_: float, state: np.ndarray) -> np.ndarray:
        at, D = state[: n * d].reshape(n, d), state[n * d :].reshape(n * d, n * d)
        scores = at @ M @ at.T
        P = np.exp(scores - scores.max(axis=1, keepdims=True))
        P /= P.sum(axis=1, keepdims=True)
        mean = P @ at
        apart = at[None] - mean[:, None]  # (i, m, d)
        J = np.einsum("im,ab->iamb", P, V) + np.einsum("im,ac,imc,ib->iamb", P, V, apart, at @ M)
        covariance = np.einsum("im,imc,ime->ice", P, apart, apart)
        J[np.arange(n), :, np.arange(n), :] += V @ covariance @ M.T
        return np.concatenate([(mean @ V.T).ravel(), (J.reshape(n * d, n * d) @ D).ravel()])

    start = np.concatenate([x0.ravel(), np.eye(n * d).ravel()])
    return (
        solve_ivp(rate, (0, t), start, method="DOP853", rtol=rtol, atol=atol)
        .y[n * d :, -1]
        .reshape(n * d, n * d)
    )


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

    options: dict[str, Any] = {"method": "DOP853", "rtol": 1e-12, "atol": 1e-14, "t_eval": times}
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
