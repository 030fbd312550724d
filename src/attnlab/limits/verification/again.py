"""Where a limit that is computed once more must start, and end, if its integration did not begin at
the time 0.
"""

from __future__ import annotations

import numpy as np

from attnlab.exponential import Exponential
from attnlab.types import Limit


def start_of(limit: Limit, begin: float) -> np.ndarray:
    """The tokens at the time `begin`; x0 of the Limit is what they are unwound to the time 0,
    e^{-begin V} x.
    """
    return limit.x0 if begin == 0.0 else _moved(limit, limit.x0, begin)


def from_start(limit: Limit, ends: np.ndarray, begin: float) -> np.ndarray:
    """Limits (n, d) of tokens that start at `begin`, unwound to the time 0 in the same way."""
    return ends if begin == 0.0 else _moved(limit, ends, -begin)


def _moved(limit: Limit, x: np.ndarray, t: float) -> np.ndarray:
    total, dt = limit.dynamics.weights.total, limit.dynamics.dt
    if dt is None:
        return np.asarray(Exponential(total).apply_scaled(t, x, np.zeros(())))
    step = np.linalg.matrix_power(
        np.eye(len(total.dense())) + dt * total.dense(), abs(round(t / dt))
    )
    return x @ (step if t > 0 else np.linalg.inv(step)).T
