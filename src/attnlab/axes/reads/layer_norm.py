"""Attention reads (x - mean) / deviation: pre-norm with LayerNorm."""

from __future__ import annotations

import numpy as np

from attnlab.axes.reads import reads
from attnlab.checks import not_negative


@reads.register("layer_norm")
class LayerNorm:
    """Attention and values read (x - mean) / sqrt(variance + eps) over the coordinates of a
    token.
    """

    def __init__(self, eps: float = 0.0):
        self.eps = not_negative("eps of the read layer_norm", eps)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Tokens of mean 0 and variance 1."""
        centred = x - x.mean(axis=-1, keepdims=True)
        with np.errstate(invalid="ignore", divide="ignore"):
            return centred / np.sqrt(np.square(centred).mean(axis=-1, keepdims=True) + self.eps)
