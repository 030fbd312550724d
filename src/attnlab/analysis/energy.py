"""The interaction energies that are monotone along the flow.

Exponentials of scores leave the range of double precision soon in Euclidean space, so logarithms are computed first.
"""

from __future__ import annotations

import numpy as np

from attnlab.analysis import observables
from attnlab.types import Trajectory


def log_pair_sum(x: np.ndarray, beta: float = 1.0, log_scale: np.ndarray | float = 0.0) -> np.ndarray:
    """The logarithm of sum_ij exp(beta <x_i, x_j>) of the tokens e^{log_scale} x, x (..., n, d), log_scale (...) -> (...).

    With beta = 1 this is log L of section 8 of the paper, non-increasing for V = -I.
    """
    x = np.asarray(x, dtype=float)
    with np.errstate(over="ignore", invalid="ignore"):
        products = x @ np.swapaxes(x, -1, -2)                                                    # (..., n, n)
        factor = beta * np.exp(2 * np.asarray(log_scale))[..., None, None]
        exponents = np.where(products == 0, 0.0, factor * products)
        top = exponents.max(axis=(-2, -1))
        logarithm = np.log(np.exp(exponents - top[..., None, None]).sum(axis=(-2, -1))) + top
    return np.where(np.isinf(top), top, logarithm)


def interaction_energy(x: np.ndarray, beta: float = 1.0, log_scale: np.ndarray | float = 0.0) -> np.ndarray:
    """E = (1 / (2 beta n^2)) sum_ij exp(beta <x_i, x_j>) of the tokens e^{log_scale} x, x (..., n, d) -> (...).

    Non-decreasing on the sphere for Q = K = V = I (arXiv 2312.10794). Infinite beyond double precision: then use `log_pair_sum`.
    """
    if beta == 0:
        raise ValueError("The interaction energy divides by beta, which must not be 0.")
    with np.errstate(over="ignore"):
        return np.exp(log_pair_sum(x, beta, log_scale) - 2 * np.log(np.shape(x)[-2])) / (2 * beta)


@observables.register("energy")
def observe_energy(run: Trajectory) -> np.ndarray:
    """The interaction energy (1 / (2 beta n^2)) sum_ij exp(beta <x_i, x_j>) of the tokens x, (*batch, T)."""
    states, log_scale = run.scaled_x()
    return interaction_energy(states, run.dynamics.beta, log_scale)
