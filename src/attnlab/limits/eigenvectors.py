"""Why V has no basis of eigenvectors to compute a limit in."""

from __future__ import annotations

import numpy as np

from attnlab.engine.coordinates import MOST_DENSE
from attnlab.exponential import EIGENBASIS_LIMIT
from attnlab.types import Weights

ZERO = 1e-10
"""Eigenvalues and singular values below this part of the largest count as 0 here: it only chooses the words."""

JORDAN = (
    "{whose} have condition number {condition:.2g}, and at most {most:g} is accepted: V has a Jordan block, or one to within "
    "rounding. Its exponentials carry polynomial factors, for which there is no certificate. A small perturbation of V makes it "
    "diagonalizable."
)


def explain_missing_basis(weights: Weights) -> str:
    """Say what is wrong with the eigenvectors of V (one head), for which no well-conditioned basis was found."""
    total = weights.total
    if total.left is not None and total.right is not None:
        return _explain_factors(total.left, total.right)
    V = total.dense()
    if len(V) > MOST_DENSE:
        return (f"The eigenvectors of a full V are computed up to d = {MOST_DENSE}, got d = {len(V)}. Give V as factors (B, C) "
                "if its rank is small.")
    values, vectors = np.linalg.eig(V)
    sizes = np.linalg.svd(V, compute_uv=False)
    is_zero = np.abs(values) <= ZERO * max(float(np.abs(values).max()), ZERO * float(sizes[0]))
    zeros, kernel = int(is_zero.sum()), int((sizes <= ZERO * sizes[0]).sum())
    others = _condition(vectors[:, ~is_zero])
    if zeros > kernel or not others < EIGENBASIS_LIMIT or zeros < 2:
        whose, condition = "The eigenvectors of V", _condition(vectors)
        return JORDAN.format(whose=whose, condition=condition, most=EIGENBASIS_LIMIT)
    return (
        f"V has rank {len(V) - zeros} of d = {len(V)}, so 0 is a repeated eigenvalue. The computed basis of eigenvectors has "
        f"condition number {_condition(vectors):.2g}, and at most {EIGENBASIS_LIMIT:g} is accepted. The cause is the many "
        f"eigenvectors of 0, not a Jordan block: those of the other eigenvalues have condition {others:.2g}. Give V as factors "
        "(B, C), which need no eigenvectors of 0."
    )


def _explain_factors(left: np.ndarray, right: np.ndarray) -> str:
    d, r = left.shape
    small = right @ left
    vectors = np.linalg.eig(small)[1]
    condition, smallest = _condition(vectors), float(np.linalg.cond(small))
    if not condition < EIGENBASIS_LIMIT:
        return JORDAN.format(whose="The eigenvectors of C B, V = B C,", condition=condition, most=EIGENBASIS_LIMIT)
    what = f"V = B C has rank {r} of d = {d}. There is no Jordan block: the eigenvectors of C B have condition {condition:.2g}. "
    if smallest > EIGENBASIS_LIMIT:
        return (f"{what}But C B itself has condition {smallest:.2g}, and at most {EIGENBASIS_LIMIT:g} is accepted: beyond, its "
                "smallest eigenvalues cannot be separated well from the repeated eigenvalue 0 of V.")
    return (f"{what}But together with the kernel of C they are ill-conditioned as a basis: the kernel is too close to the range "
            "of B.")


def _condition(vectors: np.ndarray) -> float:
    return float(np.linalg.cond(vectors)) if vectors.size else 1.0
