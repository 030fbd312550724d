"""Attention reads the direction x / |x|."""

from __future__ import annotations

import numpy as np

from attnlab.axes.reads import reads


@reads.register("unit_norm")
class UnitNorm:
    """Attention and values read theta = x / |x|."""

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """The directions of the tokens."""
        with np.errstate(invalid="ignore", divide="ignore"):
            unit = x / np.abs(x).max(axis=-1, keepdims=True)  # taken out first: squares overflow
            return unit / np.linalg.norm(unit, axis=-1, keepdims=True)
