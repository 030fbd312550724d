"""Why V has no eigen-coordinates: a Jordan block, eigenvectors that are nearly dependent, or one
that nearly lies in the kernel.

V = B C of rank r has the r eigenvalues of S = C B, those that are not 0, and a kernel of dimension
d - r. If S is singular, 0 has fewer eigenvectors than its multiplicity: V has a Jordan block there.
If S is almost singular, an eigenvector of S is well separated from the others of S and still almost
lies in the kernel of V.
"""

from __future__ import annotations

import numpy as np

from attnlab.engine.coordinates import MOST_DENSE
from attnlab.exponential import EIGENBASIS_LIMIT, Matrix

DEFECTIVE = 1e7
"""A Jordan block of two rows makes the computed eigenvectors dependent to about 1e-8, a larger one
to less.
"""

SINGULAR = 1e12
"""A matrix of larger condition is singular to within rounding."""

NO_CERTIFICATE = (
    "Rounding hides its structure in this form. Limits are certified where it is exact: give tokens"
    " and weights in a basis in which V = D + N as one matrix, D diagonal, N strictly triangular, N_ab"
    " = 0 where D_aa and D_bb differ. "
)
PERTURB = "Or perturb V a little, which makes it diagonalizable."
OTHERWISE = (
    f"Eigen-coordinates are used up to condition {EIGENBASIS_LIMIT:g}. `simulate` needs none."
)


def say_why_no_basis(V: Matrix) -> str:
    """The reason in words, for V of which `choose_coordinates` found no eigenbasis."""
    from scipy import linalg

    d = (V.left if V.full is None else V.full).shape[0]  # type: ignore[union-attr]
    if not V.is_factored and d > MOST_DENSE:
        return (
            f"V is a full matrix with d = {d}, and eigenvectors are computed up to d ="
            f" {MOST_DENSE}. Give V as factors B C where its rank is small."
        )
    left, right = _full_rank_factors(V)
    rank = left.shape[1]
    small = right @ left
    values, dual, vectors = linalg.eig(small, left=True, right=True)
    lifted = left @ vectors
    lifted = lifted / np.linalg.norm(lifted, axis=0)
    condition, of_small = float(np.linalg.cond(lifted)), float(np.linalg.cond(small))
    kind = (
        "its eigenvectors have"
        if rank == d
        else f"the eigenvectors of its {rank} eigenvalues that are not 0 have"
    )
    if condition > DEFECTIVE:
        worst = complex(values[np.abs((dual.conj() * vectors).sum(axis=0)).argmin()])
        return (
            f"V has a Jordan block near the eigenvalue {_number(worst)}, or one to within rounding:"
            f" {kind} condition {condition:.0e}. {NO_CERTIFICATE}{PERTURB}"
        )
    if rank < d and of_small > SINGULAR:
        return (
            "V has a Jordan block at the eigenvalue 0, or one to within rounding: its rank is"
            f" {rank}, but fewer eigenvalues are not 0. {NO_CERTIFICATE}{PERTURB}"
        )
    if rank == d or condition > EIGENBASIS_LIMIT:
        return (
            f"V has no well-conditioned basis of eigenvectors: {kind} condition {condition:.2g}."
            f" {OTHERWISE}"
        )
    frame = np.linalg.qr(right.T, mode="complete")[0]  # rows of V first, then its kernel
    together = float(np.linalg.cond(np.hstack([lifted, frame[:, rank:]])))
    if together <= EIGENBASIS_LIMIT and not V.is_factored:
        return (
            f"0 is an eigenvalue of V of multiplicity {d - rank}, and the eigenvectors that were"
            " computed for it are nearly dependent. Give V as factors B C: then its kernel is kept"
            " apart."
        )
    distance = np.linalg.norm(
        frame[:, :rank].T @ lifted, axis=0
    )  # of eigenvectors of length 1 from the kernel
    nearest = int(distance.argmin())
    return (
        f"V has no well-conditioned basis of eigenvectors. Its rank is {rank} in d = {d}, and"
        f" {kind} condition {condition:.2g}. But one of them, of the eigenvalue"
        f" {_number(complex(values[nearest]))}, is within {distance[nearest]:.1g} of the kernel of"
        f" V; with the kernel the condition is {together:.2g}. {OTHERWISE}"
    )


def _full_rank_factors(V: Matrix) -> tuple[np.ndarray, np.ndarray]:
    """(B, C) with V = B C and as many columns of B as V has rank."""
    if V.left is None or V.right is None:
        full = V.dense()
        U, sizes, W = np.linalg.svd(full)
        rank = int((sizes > len(full) * np.finfo(float).eps * sizes[0]).sum())
        return (
            (full, np.eye(len(full)))
            if rank == len(full)
            else (U[:, :rank] * sizes[:rank], W[:rank])
        )
    one, R = np.linalg.qr(V.left)
    other, L = np.linalg.qr(V.right.T)
    U, sizes, W = np.linalg.svd(R @ L.T)
    rank = int((sizes > len(one) * np.finfo(float).eps * sizes[0]).sum())
    return one @ U[:, :rank] * sizes[:rank], W[:rank] @ other.T


def _number(value: complex) -> str:
    return (
        f"{value.real:.3g}"
        if abs(value.imag) <= 1e-6 * abs(value)
        else f"{value.real:.3g} ± {abs(value.imag):.3g}i"
    )
