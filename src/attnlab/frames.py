"""Compute the two frames of a run from its stored form: x, and z = e^{-tW} x. The results are
read-only arrays.

States (*batch, T, n, d) belong to times (T,) and have their own scale, e^{log_scale}, log_scale
(*batch, T).
"""

from __future__ import annotations

import numpy as np

from attnlab.exponential import Exponential, Matrix

SINGULAR = (
    "z = R^{-k} x needs R = I + dt sum_h V_h to be invertible, but it is singular. Use run.x."
)
DROWNED = 1e-6
"""z is refused if rounding alone gives it a larger relative error than this."""


class DrownedInRounding(ArithmeticError):
    """Raised when z cannot be computed because rounding in x has destroyed it."""


def read_only(array: np.ndarray) -> np.ndarray:
    """Return a read-only view of the array."""
    view = np.asarray(array).view()
    view.setflags(write=False)
    return view


def apply_exponential(
    states: np.ndarray,
    times: np.ndarray,
    log_scale: np.ndarray,
    generator: Matrix | None,
    name: str,
) -> np.ndarray:
    """Return e^{log_scale} e^{tA} states (None: A = 0). An OverflowError names the time after which
    `name` is too large.
    """
    if generator is None and not np.any(log_scale):
        return read_only(states)
    exponential = Exponential(
        generator if generator is not None else Matrix(full=np.zeros((states.shape[-1],) * 2))
    )
    out = np.empty(states.shape)
    for i, t in enumerate(times):
        out[..., i, :, :] = exponential.apply_scaled(
            float(t), states[..., i, :, :], log_scale[..., i]
        )
    return _representable(out, states, times, name)


def unwind(
    states: np.ndarray,
    times: np.ndarray,
    log_scale: np.ndarray,
    basis: np.ndarray,
    growth: np.ndarray,
    turn: np.ndarray,
    dt: float | None,
) -> np.ndarray:
    """Return z of states in eigen-coordinates: e^{log_scale} basis e^{-t blocks} states. The growth
    cancels in the exponents.

    Layers have (I + dt blocks)^{-k} instead of e^{-t blocks}. With 1 + dt (a + ib) = sign e^{dt
    (growth + i turn)} the formula is the same.
    """
    sign = np.ones((1, 1, states.shape[-1]))
    is_pair = turn != 0.0
    if dt is not None:
        imaginary = turn + np.concatenate([[0.0], turn[:-1]])  # on both rows of a pair
        factor = 1.0 + dt * (growth + 1j * imaginary)
        if np.abs(factor).min() < 1e-14:
            raise ValueError(SINGULAR)
        is_odd = np.rint(times / dt)[:, None, None] % 2 == 1
        sign = np.where((factor.real < 0) & (imaginary == 0) & is_odd, -1.0, 1.0)  # (T, 1, d)
        growth, turn = np.log(np.abs(factor)) / dt, np.angle(factor) / dt
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        shrink = np.exp(log_scale[..., None] - times[:, None] * growth)[
            ..., None, :
        ]  # (*batch, T, 1, d)
        z = np.where(states == 0.0, 0.0, states * shrink) * sign  # 0 times inf is 0 here
    for row in np.flatnonzero(is_pair):
        angle = (turn[row] * times)[:, None]
        first, second = z[..., row], z[..., row + 1]
        z[..., row], z[..., row + 1] = (
            np.cos(angle) * first - np.sin(angle) * second,
            np.sin(angle) * first + np.cos(angle) * second,
        )
    with np.errstate(invalid="ignore"):  # infinity minus infinity is refused below, with a sentence
        z = z @ basis.T
    return _representable(z, states, times, "z")


def unwind_layers(
    states: np.ndarray, times: np.ndarray, log_scale: np.ndarray, total: Matrix, dt: float
) -> np.ndarray:
    """Return z = R^{-k} x, R = I + dt W, for layers without eigen-coordinates."""
    R = np.eye(states.shape[-1]) + dt * total.dense()
    if np.linalg.cond(R) > 1e14:
        raise ValueError(SINGULAR)
    inverse = np.linalg.inv(R)
    power, exponent, done = np.eye(len(R)), 0.0, 0
    out = np.empty(states.shape)
    for i, k in enumerate(np.rint(times / dt).astype(int)):
        for _ in range(k - done):
            power = power @ inverse
            size = np.abs(power).max()
            if not 1e-100 < size < 1e100:
                power, exponent = power / size, exponent + np.log(size)
        done = k
        half = np.exp(0.5 * (log_scale[..., i] + exponent))[..., None, None]
        out[..., i, :, :] = (states[..., i, :, :] @ power.T) * half * half
    return _representable(out, states, times, "z")


def check_not_drowned(
    z: np.ndarray,
    states: np.ndarray,
    times: np.ndarray,
    log_scale: np.ndarray,
    total: Matrix,
    dt: float | None,
) -> None:
    """Raise an ArithmeticError if rounding in x destroys a slow coordinate of z.

    e^{-tW} multiplies the rounding of x, 1e-16 |x|, by up to e^{-lambda t}, lambda the smallest
    real part.
    """
    eigenvalues = total.eigenvalues
    slowest = (
        eigenvalues.real.min() if dt is None else np.log(np.abs(1.0 + dt * eigenvalues).min()) / dt
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        log_x = log_scale + np.log(np.abs(states).max(axis=(-2, -1)))
        log_loss = log_x - slowest * times - np.log(np.abs(z).max(axis=(-2, -1)))
    lost = log_loss > np.log(DROWNED / 2.0**-52)
    if lost.any():
        first = times[np.nonzero(lost)[-1].min()]
        raise DrownedInRounding(
            f"run.z is unreliable from t = {first:g} on: V has no well-conditioned eigenbasis, so"
            " rounding in x destroys the slow coordinates of z. Use run.x, earlier times, or"
            ' integrate with frame="z".'
        )


def _representable(out: np.ndarray, states: np.ndarray, times: np.ndarray, name: str) -> np.ndarray:
    """Return `out`. Raise OverflowError if it left the range of double precision while `states` did
    not.
    """
    lost = ~np.isfinite(out) & np.isfinite(states)
    if lost.any():
        first = times[np.nonzero(lost.any(axis=(-2, -1)))[-1].min()]
        other = "run.z, or run.scaled_x() for x = e^s y" if name == "x" else "run.x"
        raise OverflowError(
            f"{name} exceeds the range of double precision from t = {first:g} on. Use {other}."
        )
    return read_only(out)
