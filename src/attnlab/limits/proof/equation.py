"""The equation that a proof is about, x_i' = V sum_j P_ij x_j, with what its rounded matrices are
off by.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from attnlab.axes.together import plain_axes
from attnlab.types import Dynamics

MOST_TOKENS, MOST_COORDINATES = 200, 12
"""A proof of more would take minutes and hundreds of megabytes."""

SMALLEST, LARGEST = 1e-60, 1e60
"""Sizes of tokens. With 80 digits their errors are 1e-80 of that, and norms take squares, which must
not underflow.
"""

UP = 1.0 + 1e-9
"""Sums and products of positive doubles are rounded by far less; this makes an upper bound of
them.
"""


class NotProved(Exception):
    """Why there is no proof, in a sentence."""


@dataclass(frozen=True, eq=False)
class Equation:
    """Softmax attention of one head in R^d; P_ij is proportional to count_j exp(x_i^T M x_j) where
    token i sees token j.
    """

    V: np.ndarray  # (d, d), exact
    M: np.ndarray  # (d, d), beta Q^T K, rounded
    M_error: np.ndarray  # (d, d), a bound of what M is off by
    seen: np.ndarray  # (n, n)
    counts: np.ndarray  # (n,): how many equal tokens each different one stands for
    x0: np.ndarray  # (n, d): the different tokens
    number: np.ndarray  # (tokens,): which different token each token is
    V_norm: float
    M_norm: float  # bounds of the matrix norms, from above
    M_size: np.ndarray  # (d, d), a bound of |M|
    M_units: int  # a product with M is off by this many 2^-53 of what |M| gives
    M_exact: list[list[Fraction]]  # (d, d)

    @property
    def V_size(self) -> np.ndarray:
        """|V|, entry by entry."""
        return np.abs(self.V)

    @property
    def V_units(self) -> int:
        """A product with V is off by this many 2^-53 of what |V| gives."""
        return int((self.V != 0.0).sum(axis=1).max(initial=1))


def take_equation(dynamics: Dynamics, x0: np.ndarray) -> Equation:
    """The Equation, or NotProved."""
    n, d = x0.shape
    weights = dynamics.weights
    if not (
        dynamics.geometry.is_linear
        and dynamics.kernel.is_softmax
        and dynamics.feedforward.is_none
        and all(plain_axes(dynamics).values())
    ):
        raise NotProved("proofs are for softmax attention in R^d without a feed-forward part")
    if dynamics.dt is not None:
        raise NotProved("proofs are for continuous time, not for residual layers")
    if not (dynamics.mask.sees_all or dynamics.mask.is_causal):
        raise NotProved("proofs are for tokens that see all, or all before them")
    if weights.heads > 1 or weights.is_factored:
        raise NotProved("proofs are for one head with V given as one matrix")
    V = weights.full_V[0]
    if n > MOST_TOKENS or d > MOST_COORDINATES:
        raise NotProved(
            f"proofs are for at most {MOST_TOKENS} tokens in at most {MOST_COORDINATES} coordinates"
        )
    size = np.abs(x0).max(axis=1)
    if ((size != 0.0) & ~((size >= SMALLEST) & (size <= LARGEST))).any():
        raise NotProved(
            f"proofs are for tokens of sizes from {SMALLEST:g} to {LARGEST:g}; tokens that are c times"
            " larger have the same limits, c times larger, if beta is c^2 times smaller"
        )
    if dynamics.mask.is_causal:
        number, counts, first = np.arange(n), np.ones(n, dtype=int), np.arange(n)
        seen = np.tri(n, dtype=bool)
    else:
        _, first, number, counts = np.unique(
            x0, axis=0, return_index=True, return_inverse=True, return_counts=True
        )
        order = np.argsort(first)
        place = np.argsort(order)
        first, counts, number = first[order], counts[order], place[number.ravel()]
        seen = np.ones((len(first), len(first)), dtype=bool)
    M_exact = exact_scores(weights.Q[0], weights.K[0], dynamics.beta)
    M = np.array([[float(value) for value in row] for row in M_exact])
    error = UP * np.array(
        [
            [float(abs(value - Fraction(kept))) for value, kept in zip(*rows, strict=True)]
            for rows in zip(M_exact, M.tolist(), strict=True)
        ]
    )
    size = (np.abs(M) + error) * UP
    is_plain = (
        np.array_equal(M, M[0, 0] * np.eye(d)) and abs(np.frexp(M[0, 0])[0]) == 0.5
    )  # +-2^k I: nothing is rounded
    units = 0 if is_plain else int((M != 0.0).sum(axis=0).max()) + 1
    return Equation(
        V,
        M,
        error,
        seen,
        counts.astype(float),
        np.ascontiguousarray(x0[first]),
        number,
        bound_norm(np.abs(V)),
        bound_norm(size),
        size,
        units,
        M_exact,
    )


def bound_norm(size: np.ndarray) -> float:
    """A bound of the norm of a matrix whose entries have at most these moduli."""
    scale = 2.0 ** int(np.frexp(size.max(initial=0.0))[1])  # squares must not underflow
    size = size / scale
    by_sums = float(np.sqrt(size.sum(axis=0).max() * size.sum(axis=1).max()))
    return min(float(np.sqrt((size**2).sum())), by_sums) * scale * UP


def exact_scores(Q: np.ndarray, K: np.ndarray, beta: float) -> list[list[Fraction]]:
    """beta Q^T K, exact."""
    left, right = (
        [[Fraction(float(value)) for value in column] for column in array.T] for array in (Q, K)
    )
    return [
        [Fraction(beta) * sum(a * b for a, b in zip(one, other, strict=True)) for other in right]
        for one in left
    ]
