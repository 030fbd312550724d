"""No drift: attention alone moves the tokens."""

from __future__ import annotations

import numpy as np

from attnlab.axes.drifts import drifts


@drifts.register("none")
class Still:
    """Attention alone moves the tokens."""

    is_none = True

    def __call__(self, x: np.ndarray, t: float) -> np.ndarray:
        """Nothing."""
        return np.zeros_like(x)
