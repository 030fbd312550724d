"""Residual layers: the discrete recursion that a stack of identical attention layers runs.

R^d      x_i <- x_i + dt sum_h sum_j P^h_ij V_h x_j           rescaled: z^k = R^{-k} x^k, R = I + dt sum_h V_h
sphere   the same, then divided by its norm (a post-norm layer)
"""

from __future__ import annotations

import numpy as np

from attnlab.axes.outputs import check_tokens
from attnlab.dynamics.reference import output_x
from attnlab.types import Dynamics


def next_layer(
    dynamics: Dynamics, x: np.ndarray, log_scale: float = 0.0, t: float = 0.0
) -> np.ndarray:
    """The tokens after the layer at time t, over e^{log_scale}, of the tokens e^{log_scale} x (...,
    n, d).
    """
    assert dynamics.dt is not None
    moved = x + dynamics.dt * output_x(dynamics, x, log_scale, t)
    return check_tokens("geometry", dynamics.geometry, dynamics.geometry.retract(moved), x)
