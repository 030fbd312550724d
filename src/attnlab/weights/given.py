"""Matrices written out."""

from __future__ import annotations

from typing import Any

from attnlab.types import Weights
from attnlab.weights import family


@family("given", example={"V": [[1.0, 0.5], [0.0, -0.5]]})
def given(
    Q: Any = None,
    K: Any = None,
    V: Any = None,
    *,
    B: Any = None,
    C: Any = None,
    d: int | None = None,
) -> Weights:
    """The given matrices: Q, K (k, d) or (h, k, d), and V (d, d) or (h, d, d), or V = B C by its
    factors.

    The factors are B (d, r), C (r, d), or (h, d, r), (h, r, d). Q and K are the identity by
    default; d is checked. A matrix that is given once belongs to all heads. For d = 1, a number is
    a matrix: V = 1.0.
    """
    if (B is None) != (C is None):
        raise ValueError("Give both factors B and C of V = B C, or V itself; got only one factor.")
    if (V is None) == (B is None):
        raise ValueError("The family given needs either V, or its factors B and C with V = B C.")
    weights = Weights(Q=Q, K=K, V=V if V is not None else (B, C))
    if d is not None and d != weights.d:
        raise ValueError(
            f"The matrices given act on dimension {weights.d}, but d = {d}. Correct one of the two."
        )
    return weights
