"""Velocities as in the paper, in plain NumPy. Slow and readable: all fast code must equal this.

    frame x   x_i' = sum_h sum_j P^h_ij V_h x_j
    frame z   z_i' = sum_h sum_j P^h_ij e^{-tW} V_h e^{tW} (z_j - z_i),   W = sum_h V_h,   P from x = e^{tW} z

The attention matrix is the same in both frames. On the sphere the velocity is projected on the
tangent space.
"""

from __future__ import annotations

import numpy as np

from attnlab.axes.outputs import check_speed, check_tokens
from attnlab.axes.together import check_rescaled
from attnlab.dynamics.attention import attention_matrices
from attnlab.exponential import Exponential
from attnlab.types import Dynamics


def values(dynamics: Dynamics, P: np.ndarray, y: np.ndarray) -> np.ndarray:
    """sum_h sum_j P^h_ij V_h y_j for P (..., h, n, n), y (..., n, d)."""
    means = P @ y[..., None, :, :]  # (..., h, n, d)
    if dynamics.weights.is_factored:
        B, C = dynamics.weights.V
        return ((means @ np.swapaxes(C, 1, 2)) @ np.swapaxes(B, 1, 2)).sum(axis=-3)
    return (means @ np.swapaxes(dynamics.weights.V, 1, 2)).sum(axis=-3)


def velocity_x(
    dynamics: Dynamics, x: np.ndarray, log_scale: float = 0.0, t: float = 0.0
) -> np.ndarray:
    """x' / e^{log_scale} (..., n, d) of the tokens e^{log_scale} x at time t."""
    if dynamics.feedforward.acts_on_z:
        raise ValueError('The feed-forward variant is an equation for z. Use frame="z".')
    return check_tokens(
        "geometry",
        dynamics.geometry,
        dynamics.geometry.project(x, output_x(dynamics, x, log_scale, t)),
        x,
    )


def output_x(
    dynamics: Dynamics, x: np.ndarray, log_scale: float = 0.0, t: float = 0.0
) -> np.ndarray:
    """Return x' / e^{log_scale} of the tokens e^{log_scale} x, before the projection on the tangent
    space.
    """
    read = (
        x
        if dynamics.read.is_identity
        else check_tokens("read", dynamics.read, dynamics.read(x * np.exp(log_scale)), x)
    )
    output = values(dynamics, attention_matrices(dynamics, x, log_scale), read)
    output = check_tokens("write", dynamics.write, dynamics.write(output), x)
    if not dynamics.speed.is_constant:
        output = check_speed(dynamics.speed, t) * output
    if not (dynamics.read.is_identity and dynamics.write.is_identity):
        output = output * np.exp(-log_scale)
    if dynamics.feedforward.is_none or dynamics.feedforward.acts_on_z:
        return output
    added = check_tokens(
        "drift", dynamics.feedforward, dynamics.feedforward(x * np.exp(log_scale), t), x
    )
    return output + added * np.exp(-log_scale)


def velocity_z(dynamics: Dynamics, z: np.ndarray, t: float, log_scale: float = 0.0) -> np.ndarray:
    """z' / e^{log_scale} (..., n, d) of the rescaled tokens e^{log_scale} z at time t."""
    check_rescaled(dynamics)
    weights = dynamics.weights
    grow, shrink = Exponential(weights.total), Exponential(weights.total.scaled(-1.0))
    P = attention_matrices(dynamics, grow.apply(t, z), log_scale + grow.rate * t)
    if not dynamics.kernel.rows_sum_to_one:  # the literal derivative of e^{-tW} x
        differences, rest = P @ z[..., None, :, :], -weights.total.apply(z)
    else:
        differences, rest = (
            P @ z[..., None, :, :] - z[..., None, :, :],
            np.zeros_like(z),
        )  # (..., h, n, d)
    if weights.heads == 1:  # V commutes with its own exponential
        drift = differences[..., 0, :, :] @ weights.full_V[0].T + rest
    else:
        lifted = grow.apply(t, differences) @ np.swapaxes(weights.full_V, 1, 2)
        drift = shrink.apply(t, lifted.sum(axis=-3)) * np.exp((grow.rate + shrink.rate) * t) + rest
    if not dynamics.feedforward.acts_on_z:
        return drift
    return check_tokens("drift", dynamics.feedforward, dynamics.feedforward(drift, t), z)
