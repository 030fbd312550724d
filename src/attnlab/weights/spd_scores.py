"""V = I with random symmetric positive definite scores."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.starts import as_generator
from attnlab.types import Weights
from attnlab.weights import family, square_dimension
from attnlab.weights.spectrum import orthogonal_basis


def spd_root(d: int, condition: float, rng: np.random.Generator) -> np.ndarray:
    """A = U diag(sqrt(m)) U^T (d, d), U Haar, m log-uniform on [condition^{-1/2},
    condition^{1/2}].
    """
    if not 1.0 <= condition <= 1e8:
        raise ValueError(f"condition must be between 1 and 1e8, got {condition!r}.")
    U = orthogonal_basis(d, rng)
    m = condition ** rng.uniform(-0.5, 0.5, d)
    return (U * np.sqrt(m)) @ U.T


@family("spd_scores", promises=("is_multiple_of_identity", "is_spd_scores"))
def spd_scores(d: int, condition: float = 10.0, *, rng: Any = None) -> Weights:
    """V = I and Q = K = A, so that M = Q^T K = A^2 is random symmetric positive definite
    (hypothesis of section 3 of the paper).

    The eigenvectors of M are Haar-distributed, its eigenvalues log-uniform on [condition^{-1/2},
    condition^{1/2}], so that its condition number is at most `condition`.
    """
    A = spd_root(square_dimension(d), condition, as_generator(rng))
    return Weights(Q=A, K=A, V=np.eye(d))
