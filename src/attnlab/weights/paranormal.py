"""Good triples with multiplicity: the hypothesis of the theorem on polytopes times subspaces."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.starts import as_generator, positive_number, whole_number
from attnlab.types import Weights
from attnlab.weights import family, square_dimension
from attnlab.weights.good_triple import random_eigenvalues
from attnlab.weights.spd_scores import spd_root
from attnlab.weights.spectrum import oblique_basis, orthogonal_basis, real_form


@family("paranormal", promises=("is_paranormal", "is_spd_scores"))
def paranormal(
    d: int,
    multiplicity: int | None = None,
    leading: float = 1.0,
    gap: float = 0.3,
    oblique: bool = True,
    condition: float = 10.0,
    *,
    rng: Any = None,
) -> Weights:
    """V = leading Id on F, spectral radius of V on G <= leading - gap, R^d = F + G, M symmetric
    positive definite (Def. 5.1).

    multiplicity : dim F, by default d - 1 (1 for d = 1).
    oblique : F and G are spanned by columns of a basis of condition number 10; otherwise F is
    orthogonal to G. condition : bound on the condition number of M; Q = K = M^{1/2} as in
    `spd_scores`.
    """
    d, leading, gap = (
        square_dimension(d),
        positive_number("leading", leading),
        positive_number("gap", gap),
    )
    multiplicity = (
        max(1, d - 1) if multiplicity is None else whole_number("multiplicity", multiplicity)
    )
    if multiplicity > d:
        raise ValueError(
            f"multiplicity is the dimension of F, so at most d = {d}, got {multiplicity}."
        )
    if gap > leading:
        raise ValueError(
            f"gap must be at most leading = {leading}, because a modulus is not negative; got"
            f" {gap}."
        )
    rng = as_generator(rng)
    A = spd_root(d, condition, rng)
    S = oblique_basis(d, rng) if oblique else orthogonal_basis(d, rng)
    on_G = real_form(random_eigenvalues(d - multiplicity, leading - gap, rng))
    below = on_G - leading * np.eye(d - multiplicity)
    # leading I + (something that is exactly 0 on F), so that V is the exact multiple of I where G =
    # 0
    V = leading * np.eye(d) + S[:, multiplicity:] @ below @ np.linalg.inv(S)[multiplicity:]
    return Weights(Q=A, K=A, V=V)
