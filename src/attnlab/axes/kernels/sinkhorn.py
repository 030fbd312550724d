"""The doubly stochastic scaling of e^s: rows and columns sum to 1 (Sinkhorn's iteration, in
logarithms).
"""

from __future__ import annotations

import numpy as np

from attnlab.axes.kernels import kernels

MOST_ITERATIONS = 20_000
TOLERANCE = 1e-13
"""The tolerance of the sums, with a margin to the documented 1e-12."""


@kernels.register("sinkhorn")
class Sinkhorn:
    """P = diag(u) e^s diag(v) with rows and columns that sum to 1. Every token must see every
    other.
    """

    rows_sum_to_one, is_row_local, hardens = True, False, False

    def weights(self, scores: np.ndarray, seen: np.ndarray) -> np.ndarray:
        """Return the weights of scores (..., n, n). If the iteration does not settle, they are NaN,
        and the run ends there.
        """
        masked = np.where(seen, scores, -np.inf)
        flat = masked.reshape(-1, *masked.shape[-2:])
        return np.stack([_balance(one) for one in flat]).reshape(scores.shape)


def _balance(log_weights: np.ndarray) -> np.ndarray:
    """The scaling of one matrix e^s (n, n)."""
    for iteration in range(MOST_ITERATIONS):
        log_weights = log_weights - _log_sum(log_weights, axis=0)
        log_weights = log_weights - _log_sum(log_weights, axis=1)
        if iteration % 8 == 0 or iteration < 8:
            columns = np.exp(log_weights).sum(axis=0)
            if not np.abs(columns - 1.0).max() > TOLERANCE:
                break
    else:
        return np.full_like(log_weights, np.nan)
    weights = np.exp(log_weights)
    return weights / weights.sum(axis=1, keepdims=True)


def _log_sum(array: np.ndarray, axis: int) -> np.ndarray:
    top = array.max(axis=axis, keepdims=True)
    with np.errstate(divide="ignore"):
        total: np.ndarray = top + np.log(np.exp(array - top).sum(axis=axis, keepdims=True))
    return total
