"""P_ij = exp(s_ij) / (number of tokens that i sees): the sum in softmax is replaced by a count."""

from __future__ import annotations

import numpy as np

from attnlab.axes.gaps import find_gaps, relative_weights
from attnlab.axes.kernels import kernels


@kernels.register("exp_mean")
class ExpMean:
    """exp(beta <Q x_i, K x_j>) divided by the number of tokens seen."""

    rows_sum_to_one, is_row_local, hardens = False, True, False
    is_exponential, has_scale = True, True

    def weights(self, scores: np.ndarray, seen: np.ndarray) -> np.ndarray:
        """The weights of scores (..., n, n)."""
        return self.scaled_weights(scores, np.ones(()), seen)

    def scaled_weights(
        self, scores: np.ndarray, factor: np.ndarray, seen: np.ndarray
    ) -> np.ndarray:
        """The weights of factor * scores; factor >= 0 may be as large as 1e300."""
        gaps, top = find_gaps(scores, seen)
        with np.errstate(over="ignore", invalid="ignore"):
            return (
                relative_weights(gaps, factor)
                * np.exp(top * factor)
                / seen.sum(axis=-1, keepdims=True)
            )
