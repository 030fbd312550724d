"""Attention reads sqrt(d) x / |x|: pre-norm with RMSNorm."""

from __future__ import annotations

import numpy as np

from attnlab.axes.reads import reads
from attnlab.checks import not_negative


@reads.register("rms_norm")
class RmsNorm:
    """Attention and values read x / sqrt(mean of x^2 + eps), which is sqrt(d) x / |x| for eps =
    0.
    """

    def __init__(self, eps: float = 0.0):
        self.eps = not_negative("eps of the read rms_norm", eps)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Tokens of root mean square 1."""
        root = np.sqrt(self.eps)
        size = np.maximum(
            np.abs(x).max(axis=-1, keepdims=True), root
        )  # taken out first: squares overflow
        with np.errstate(invalid="ignore", divide="ignore"):
            unit = x / size
            return unit / np.sqrt(
                np.square(unit).mean(axis=-1, keepdims=True) + np.square(root / size)
            )
