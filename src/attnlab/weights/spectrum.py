"""V with given eigenvalues; and the random bases that other families use."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np

from attnlab.capacity import check_memory
from attnlab.registry import unknown_name
from attnlab.starts import as_generator
from attnlab.types import Weights
from attnlab.weights import MATRICES_AT_ONCE, family

OBLIQUE_CONDITION = 10.0
"""The condition number of a random oblique basis: clearly not orthogonal, but its inverse loses
only one digit.
"""

BASES = ("orthogonal", "random", "identity")


def orthogonal_basis(d: int, rng: np.random.Generator) -> np.ndarray:
    """A Haar-distributed orthogonal matrix (d, d)."""
    q, r = np.linalg.qr(rng.standard_normal((d, d)))
    return q * np.where(
        np.diag(r) < 0, -1.0, 1.0
    )  # without the signs the law depends on LAPACK's convention


def oblique_basis(d: int, rng: np.random.Generator) -> np.ndarray:
    """S = U diag(s) W (d, d) with Haar U, W and s from 1 to OBLIQUE_CONDITION in geometric
    progression.
    """
    return (orthogonal_basis(d, rng) * np.geomspace(1.0, OBLIQUE_CONDITION, d)) @ orthogonal_basis(
        d, rng
    )


def real_form(eigenvalues: Sequence[Any]) -> np.ndarray:
    """The block diagonal matrix with these eigenvalues: a number is itself, a pair [re, im] the
    block [[re, im], [-im, re]].
    """
    sizes = [1 if isinstance(value, numbers.Real) else 2 for value in eigenvalues]
    check_memory(
        f"Matrices of {sum(sizes)} eigenvalues",
        MATRICES_AT_ONCE * sum(sizes) ** 2,
        "Give fewer of them.",
    )
    blocks = np.zeros((sum(sizes), sum(sizes)))
    start = 0
    for value, size in zip(eigenvalues, sizes, strict=True):
        if size == 1:
            blocks[start, start] = value
        else:
            try:
                real, imaginary = (float(part) for part in value)
            except (TypeError, ValueError):
                raise ValueError(
                    "An eigenvalue must be a number, or a pair [re, im] for re + i im and re - i"
                    f" im, got {value!r}."
                ) from None
            blocks[start : start + 2, start : start + 2] = [[real, imaginary], [-imaginary, real]]
        start += size
    return blocks


@family("spectrum", promises=("is_spd_scores",), example={"eigenvalues": [1.0, [-0.25, 0.5]]})
def spectrum(
    d: int | None = None, *, eigenvalues: Sequence[Any], basis: str = "orthogonal", rng: Any = None
) -> Weights:
    """V = S D S^{-1} with D the real form of `eigenvalues`, Q = K = I.

    d : optional; must be the number of eigenvalues, pairs counted twice.
    eigenvalues : real numbers, and pairs [re, im] for the conjugate pair re +- i im, which counts
    for two dimensions. basis : "orthogonal", S Haar-distributed (V is normal); "random", S oblique
    with condition number 10; "identity", V = D.
    """
    if not isinstance(eigenvalues, list | tuple | np.ndarray) or len(eigenvalues) == 0:
        raise ValueError(
            "eigenvalues must be a list of at least one number or pair [re, im], got"
            f" {eigenvalues!r}."
        )
    D = real_form(eigenvalues)
    size = len(D)
    if d is not None and d != size:
        raise ValueError(
            f"eigenvalues stand for {size} dimensions (a pair [re, im] for two), but d = {d}."
            " Correct one of them."
        )
    if basis not in BASES:
        raise unknown_name("basis", basis, BASES)
    if basis == "identity":
        return Weights(V=D)
    S = (
        orthogonal_basis(size, as_generator(rng))
        if basis == "orthogonal"
        else oblique_basis(size, as_generator(rng))
    )
    return Weights(V=S @ D @ (S.T if basis == "orthogonal" else np.linalg.inv(S)))
