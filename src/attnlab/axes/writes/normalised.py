"""The output of attention moves the token at speed 1."""

from __future__ import annotations

import numpy as np

from attnlab.axes.writes import writes


@writes.register("normalised")
class Normalised:
    """The output of attention over its norm: every token moves at speed 1."""

    def __call__(self, output: np.ndarray) -> np.ndarray:
        """Return the output divided by its norm; 0 where it is 0."""
        norm = np.linalg.norm(output, axis=-1, keepdims=True)
        return output / np.where(norm > 0.0, norm, 1.0)
