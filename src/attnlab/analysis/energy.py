"""The interaction energies that are monotone along the flow.

Exponentials of scores leave the range of double precision soon in Euclidean space, so logarithms
are computed first.
"""

from __future__ import annotations

import numpy as np

from attnlab.analysis import observables
from attnlab.analysis.distances import PAIRS_AT_ONCE
from attnlab.analysis.under_way import ValueAt, time_by_time
from attnlab.types import Trajectory


def log_pair_sum(
    x: np.ndarray, beta: float = 1.0, log_scale: np.ndarray | float = 0.0
) -> np.ndarray:
    """The logarithm of sum_ij exp(beta <x_i, x_j>) of the tokens e^{log_scale} x, x (..., n, d),
    log_scale (...) -> (...).

    With beta = 1 this is log L of section 8 of the paper, non-increasing for V = -I.
    """
    x = np.asarray(x, dtype=float)
    with np.errstate(over="ignore", invalid="ignore"):
        factor = beta * np.exp(2 * np.asarray(log_scale))[..., None, None]
        rows = max(1, PAIRS_AT_ONCE // x.shape[-2])
        parts = [
            _log_sum(x[..., begin : begin + rows, :], x, factor)
            for begin in range(0, x.shape[-2], rows)
        ]
        return parts[0] if len(parts) == 1 else np.logaddexp.reduce(parts, axis=0)


def _log_sum(rows: np.ndarray, x: np.ndarray, factor: np.ndarray) -> np.ndarray:
    """The logarithm of the sum over some rows i and all j of exp(factor <x_i, x_j>)."""
    products = rows @ np.swapaxes(x, -1, -2)  # (..., rows, n)
    exponents = np.where(products == 0, 0.0, factor * products)
    top = exponents.max(axis=(-2, -1))
    logarithm = np.log(np.exp(exponents - top[..., None, None]).sum(axis=(-2, -1))) + top
    return np.where(np.isinf(top), top, logarithm)


def interaction_energy(
    x: np.ndarray, beta: float = 1.0, log_scale: np.ndarray | float = 0.0
) -> np.ndarray:
    """E = (1 / (2 beta n^2)) sum_ij exp(beta <x_i, x_j>) of the tokens e^{log_scale} x, x (..., n,
    d) -> (...).

    Non-decreasing on the sphere for Q = K = V = I (arXiv 2312.10794). Infinite beyond double
    precision: then use `log_pair_sum`.
    """
    if beta == 0:
        raise ValueError("The interaction energy divides by beta, which must not be 0.")
    with np.errstate(over="ignore"):
        return np.exp(log_pair_sum(x, beta, log_scale) - 2 * np.log(np.shape(x)[-2])) / (2 * beta)


@observables.register("energy")
@time_by_time()
def observe_energy(run: Trajectory) -> ValueAt:
    """The interaction energy (1 / (2 beta n^2)) sum_ij exp(beta <x_i, x_j>) of the tokens x,
    (*batch, T).
    """
    states, log_scale = run.scaled_x()
    return lambda at: interaction_energy(
        states[..., at, :, :], run.dynamics.beta, log_scale[..., at]
    )
