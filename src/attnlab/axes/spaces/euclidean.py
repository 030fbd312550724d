"""R^d."""

from __future__ import annotations

import numpy as np

from attnlab.axes.spaces import spaces


@spaces.register("euclidean")
class Euclidean:
    """Tokens are in R^d."""

    is_linear = True

    def check(self, x: np.ndarray) -> np.ndarray:
        """Every token is in R^d."""
        return x

    def project(self, x: np.ndarray, velocity: np.ndarray) -> np.ndarray:
        """Every velocity is tangent."""
        return velocity

    def retract(self, x: np.ndarray) -> np.ndarray:
        """Return the tokens unchanged."""
        return x
