"""No noise."""

from __future__ import annotations

import numpy as np

from attnlab.axes.noises import noises


@noises.register("none")
class Quiet:
    """No noise."""

    is_none = True

    def increment(self, rng: np.random.Generator, x: np.ndarray, dt: float) -> np.ndarray:
        """Nothing."""
        return np.zeros_like(x)
