"""V from the Gaussian orthogonal ensemble."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.starts import as_generator
from attnlab.types import Weights
from attnlab.weights import family, square_dimension


@family("goe", promises=("is_symmetric_value", "is_spd_scores"))
def goe(d: int, *, rng: Any = None) -> Weights:
    """V = (G + G^T) / sqrt(2 d) with G iid standard normal, Q = K = I.

    Off the diagonal the entries have variance 1/d, on it 2/d: as d grows the eigenvalues follow the
    semicircle law on [-2, 2].
    """
    d = square_dimension(d)
    G = as_generator(rng).standard_normal((d, d))
    return Weights(V=(G + G.T) / np.sqrt(2 * d))
