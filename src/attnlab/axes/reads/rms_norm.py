"""Attention reads sqrt(d) x / |x|: pre-norm with RMSNorm."""

from __future__ import annotations

import numpy as np

from attnlab.axes.reads import reads
from attnlab.checks import not_negative


@reads.register("rms_norm")
class RmsNorm:
    """Attention and values read x / sqrt(mean of x^2 + eps), which is sqrt(d) x / |x| for eps = 0."""

    def __init__(self, eps: float = 0.0):
        self.eps = not_negative("eps of the read rms_norm", eps)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Tokens of root mean square 1."""
        size = np.abs(x).max(axis=-1, keepdims=True)                       # taken out first: squares overflow
        if self.eps > 0.0:
            return x / np.sqrt(np.square(x).mean(axis=-1, keepdims=True) + self.eps)
        with np.errstate(invalid="ignore", divide="ignore"):
            unit = x / size
            return unit / np.sqrt(np.square(unit).mean(axis=-1, keepdims=True))
