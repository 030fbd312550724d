"""P_ij = 1 / |C_i| on the set C_i of tokens with the highest score, else 0: softmax with beta at
infinity.
"""

from __future__ import annotations

import numpy as np

from attnlab.axes.gaps import find_gaps
from attnlab.axes.kernels import kernels


@kernels.register("hardmax")
class Hardmax:
    """Row i attends to its tokens with the highest score, equally to exact ties."""

    rows_sum_to_one, is_row_local, hardens = True, True, True
    has_scale = True

    def weights(self, scores: np.ndarray, seen: np.ndarray) -> np.ndarray:
        """The weights of scores (..., n, n)."""
        return self.scaled_weights(scores, np.ones(()), seen)

    def scaled_weights(
        self, scores: np.ndarray, factor: np.ndarray, seen: np.ndarray
    ) -> np.ndarray:
        """The weights of factor * scores; at factor 0 all tokens are tied."""
        gaps, _ = find_gaps(scores, seen)
        chosen = ((gaps == 0) | ((factor == 0) & ~np.isneginf(gaps))).astype(float)
        chosen[np.isnan(gaps)] = np.nan
        return chosen / chosen.sum(axis=-1, keepdims=True)
