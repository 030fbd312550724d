"""P_ij = 1 / (1 + e^-(s_ij + bias)): every pair on its own, no competition between tokens."""

from __future__ import annotations

import numpy as np

from attnlab.axes.kernels import kernels
from attnlab.checks import real_number


@kernels.register("sigmoid")
class Sigmoid:
    """P_ij = 1 / (1 + e^-(s_ij + bias)); bias = -log(number of tokens seen) unless given."""

    rows_sum_to_one, is_row_local, hardens = False, True, False

    def __init__(self, bias: float | None = None):
        self.bias = None if bias is None else real_number("bias of the kernel sigmoid", bias)

    def weights(self, scores: np.ndarray, seen: np.ndarray) -> np.ndarray:
        """The weights of scores (..., n, n)."""
        bias = -np.log(seen.sum(axis=-1, keepdims=True)) if self.bias is None else self.bias
        shifted = scores + bias
        small = np.exp(-np.abs(shifted))  # never overflows
        return np.where(seen, np.where(shifted >= 0, 1.0, small) / (1.0 + small), 0.0)
