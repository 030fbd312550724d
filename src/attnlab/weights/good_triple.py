"""Good triples: the hypothesis of the three-hyperplanes theorem."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.starts import as_generator, positive_number
from attnlab.types import Weights
from attnlab.weights import family, square_dimension
from attnlab.weights.spectrum import oblique_basis, real_form


def random_eigenvalues(count: int, largest: float, rng: np.random.Generator) -> list[Any]:
    """Numbers and pairs [re, im] that stand for `count` eigenvalues of modulus at most `largest`;
    half of the draws are pairs.
    """
    values: list[Any] = []
    left = count
    while left > 0:
        modulus = largest * rng.random()
        if left > 1 and rng.random() < 0.5:
            angle = np.pi * rng.random()
            values.append([modulus * np.cos(angle), modulus * np.sin(angle)])
            left -= 2
        else:
            values.append(float(modulus * rng.choice([-1.0, 1.0])))
            left -= 1
    return values


@family("good_triple", promises=("is_good_triple",))
def good_triple(d: int, leading: float = 1.0, gap: float = 0.3, *, rng: Any = None) -> Weights:
    """(Q, K, V) with lambda_1 = leading > 0 simple, all other |lambda_k| <= leading - gap, and <Q
    phi_1, K phi_1> > 0 (Def. 4.1).

    V = S D S^{-1} with an oblique basis S (condition 10), so V is not normal, and complex pairs
    occur below lambda_1. Q is oblique too, and K is Gaussian but for K phi_1 = Q phi_1: M = Q^T K
    is neither symmetric nor definite in general.
    """
    d, leading, gap = (
        square_dimension(d),
        positive_number("leading", leading),
        positive_number("gap", gap),
    )
    if gap > leading:
        raise ValueError(
            f"gap must be at most leading = {leading}, because a modulus is not negative; got"
            f" {gap}."
        )
    rng = as_generator(rng)
    D = real_form([leading, *random_eigenvalues(d - 1, leading - gap, rng)])
    S = oblique_basis(d, rng)
    phi = S[:, 0] / np.linalg.norm(S[:, 0])
    Q = oblique_basis(d, rng)
    K = rng.standard_normal((d, d))
    K += np.outer(Q @ phi - K @ phi, phi)
    return Weights(Q=Q, K=K, V=S @ D @ np.linalg.inv(S))
