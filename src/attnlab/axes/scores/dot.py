"""s_ij = <Q x_i, K x_j>."""

from __future__ import annotations

import numpy as np

from attnlab.axes.scores import scores


@scores.register("dot")
class Dot:
    """s_ij = <Q x_i, K x_j>, the inner product."""

    is_dot = True

    def compare(self, queries: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """The inner products."""
        return queries @ np.swapaxes(keys, -1, -2)
