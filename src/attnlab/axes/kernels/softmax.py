"""P_ij = exp(s_ij) / sum_l exp(s_il) over the tokens l that i sees: the attention of the paper."""

from __future__ import annotations

import numpy as np

from attnlab.axes.gaps import find_gaps, relative_weights
from attnlab.axes.kernels import kernels


@kernels.register("softmax")
class Softmax:
    """P_ij = exp(beta <Q x_i, K x_j>) divided by its sum over the tokens seen."""

    rows_sum_to_one, is_row_local, hardens = True, True, True
    is_softmax, is_exponential, has_scale = True, True, True

    def weights(self, scores: np.ndarray, seen: np.ndarray) -> np.ndarray:
        """The weights of scores (..., n, n)."""
        return self.scaled_weights(scores, np.ones(()), seen)

    def scaled_weights(
        self, scores: np.ndarray, factor: np.ndarray, seen: np.ndarray
    ) -> np.ndarray:
        """The weights of factor * scores; factor >= 0 may be as large as 1e300."""
        gaps, _ = find_gaps(scores, seen)
        relative = relative_weights(gaps, factor)
        return relative / relative.sum(axis=-1, keepdims=True)
