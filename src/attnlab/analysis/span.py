"""The same flow in fewer dimensions: in the span that the tokens cannot leave."""

from __future__ import annotations

import numpy as np

from attnlab.types import Weights


def in_span(weights: Weights, x0: np.ndarray) -> tuple[Weights, np.ndarray, np.ndarray]:
    """(weights, y0 (n, r), basis (d, r)) of the same flow in an orthonormal basis of the span of
    the tokens: x = y basis^T.

    For V_h = I only: velocities are combinations of tokens, so tokens stay in their span, which has
    n dimensions at most.
    """
    d = weights.d
    if weights.is_factored or not np.array_equal(weights.full_V, identities(weights.heads, d)):
        raise ValueError("Only with V_h = I do tokens stay in the span that they start in.")
    basis = _row_basis(x0, max(x0.shape) * np.finfo(float).eps)
    if basis.shape[1] == d:
        return weights, np.array(x0), np.eye(d)
    reduced = Weights(
        Q=weights.Q @ basis,
        K=weights.K @ basis,
        V=identities(weights.heads, basis.shape[1]),
        source=f"{weights.source}, in the span of the tokens",
    )
    return reduced, x0 @ basis, basis


def in_reach(
    weights: Weights, x0: np.ndarray, tolerance: float | None = None
) -> tuple[Weights, np.ndarray]:
    """(weights, y0) of the same flow, V_h = B_h C_h, in an orthonormal basis of the tokens and the
    ranges of all B_h.

    Velocities are in these ranges, so tokens stay there: 32 heads of rank r in d dimensions need n
    + 32 r of them at most. tolerance: directions below this part of the largest singular value are
    left out; by default d times the rounding error.
    """
    B, C = weights.V
    every = np.concatenate([x0, *np.moveaxis(B, 1, 2)])
    basis = _row_basis(every, weights.d * np.finfo(float).eps if tolerance is None else tolerance)
    if basis.shape[1] == weights.d:
        return weights, x0
    return (
        Weights(
            Q=weights.Q @ basis,
            K=weights.K @ basis,
            V=(basis.T @ B, C @ basis),
            source=weights.source,
        ),
        x0 @ basis,
    )


def identities(count: int, d: int) -> np.ndarray:
    """`count` identity matrices (count, d, d)."""
    return np.repeat(np.eye(d)[None], count, axis=0)


def _row_basis(rows: np.ndarray, tolerance: float) -> np.ndarray:
    """An orthonormal basis (d, r) of the span of rows (m, d)."""
    _, sizes, directions = np.linalg.svd(rows, full_matrices=False)
    return np.asarray(directions[sizes > sizes[0] * tolerance].T)
