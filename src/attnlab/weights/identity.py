"""V = c I, Q = K = I."""

from __future__ import annotations

import numbers

import numpy as np

from attnlab.types import Weights
from attnlab.weights import family, square_dimension


@family("identity", promises=("is_multiple_of_identity", "is_spd_scores"))
def identity(d: int, scale: float = 1.0) -> Weights:
    """V = scale I_d, Q = K = I_d. The case of sections 3 and 8 of the paper: scale = 1 gives
    polytopes, -1 collapse to 0.
    """
    d = square_dimension(d)
    if not isinstance(scale, numbers.Real) or not np.isfinite(scale):
        raise ValueError(f"scale must be a finite number, got {scale!r}.")
    return Weights(V=float(scale) * np.eye(d))
