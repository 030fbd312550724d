"""What is known about scores and distances of pairs of tokens on each piece of a step, along the
polynomial.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from attnlab.limits.proof.equation import UP, Equation
from attnlab.limits.proof.expansion import Pairs

MOST_PIECES = 512
CHANGE = 0.15
"""A score may change by about this much in a piece, in either direction from the middle."""

GROWTH = 0.2
"""The largest row sum of the comparison matrix times the length of a piece."""

ROUNDING = 1e-13
"""Charged for the rounding of a polynomial or a product at the middle of a piece, relative to the
sum of its terms."""


class Sums(NamedTuple):
    """Sums of norms of coefficients: bounds of a polynomial, its slope and its second
    derivative.
    """

    size: np.ndarray
    slope: np.ndarray
    bend: np.ndarray


@dataclass(frozen=True, eq=False)
class Polynomials:
    """The coefficients of M^T p_i and of p_j - p_l over a step, and bounds of their norms."""

    q: np.ndarray  # (order + 1, n, d)
    w: np.ndarray  # (order + 1, pairs, d)
    q_norm: np.ndarray  # (order + 1, n)
    w_norm: np.ndarray  # (order + 1, pairs)
    M_off: np.ndarray  # (n,): by how much the rounding of M moves M^T p_i

    def sums(self, reach: float) -> tuple[Sums, Sums]:
        """(Sums of q (n,), Sums of w (pairs,)) for all complex |s| <= reach."""
        k = np.arange(len(self.q))
        powers = reach**k
        falls = np.array([powers, k * powers / reach, k * (k - 1) * powers / reach**2]) * UP
        return Sums(*(falls @ self.q_norm * UP)), Sums(*(falls @ self.w_norm * UP))

    @cached_property
    def on_step(self) -> tuple[Sums, Sums]:
        """The Sums for 0 <= s <= 1."""
        return self.sums(1.0)


def take_polynomials(equation: Equation, c: np.ndarray, pairs: Pairs) -> Polynomials:
    """The Polynomials of coefficients c (order + 1, n, d)."""
    w = c[:, pairs.column] - c[:, pairs.leader]
    M_off = (
        np.sqrt((equation.M_error**2).sum())
        * np.sqrt((np.abs(c) ** 2).sum(axis=2)).sum(axis=0)
        * UP
    )
    return Polynomials(
        c @ equation.M,
        w,
        np.sqrt(((np.abs(c) @ equation.M_size) ** 2).sum(axis=2)) * UP,
        np.sqrt((w**2).sum(axis=2)) * UP,
        M_off,
    )


class Offs(NamedTuple):
    """By how much values differ from those at the middle of a piece."""

    score: np.ndarray  # (pieces, pairs)
    w: np.ndarray  # (pieces, pairs)
    q: np.ndarray  # (pieces, n)


@dataclass(frozen=True, eq=False)
class Ranges:
    """What is known on each piece about tokens on the polynomial; `pieces` many, of equal
    length.
    """

    pieces: int
    polynomials: Polynomials
    pairs: Pairs
    q: np.ndarray  # (pieces, n, d): M^T p_i at the middle
    w: np.ndarray  # (pieces, pairs, d): p_j - p_l
    score: np.ndarray  # (pieces, pairs)
    slopes: Offs  # of the score, and norms of those of w and q
    rounding: Offs  # of the values at the middle

    @property
    def half(self) -> float:
        """Half of the length of a piece."""
        return 0.5 / self.pieces

    def offs(self, radius: float, reach: float) -> Offs:
        """The Offs for all complex s within `radius` of the middle, where |s| <= reach; without
        rounding.
        """
        q, w = self.polynomials.sums(reach)
        row, square = self.pairs.row, 0.5 * radius**2
        bend = q.bend[row] * w.size + 2.0 * q.slope[row] * w.slope + q.size[row] * w.bend
        return Offs(
            (radius * self.slopes.score + square * bend) * UP,
            (radius * self.slopes.w + square * w.bend) * UP,
            (radius * self.slopes.q + square * q.bend) * UP,
        )

    @cached_property
    def on_piece(self) -> Offs:
        """The Offs for all times of a piece, with rounding."""
        return Offs(
            *(
                (off + more) * UP
                for off, more in zip(self.offs(self.half, 1.0), self.rounding, strict=True)
            )
        )

    @property
    def reach(self) -> np.ndarray:
        """The largest |p_j - p_l|, (pieces, pairs)."""
        return np.asarray((np.sqrt((self.w**2).sum(axis=2)) + self.on_piece.w) * UP)


def find_ranges(polynomials: Polynomials, pairs: Pairs, pieces: int) -> Ranges:
    """The Ranges on so many pieces."""
    order = np.arange(len(polynomials.q))
    middle = (np.arange(pieces) + 0.5) / pieces
    powers = middle[:, None] ** order
    falls = np.where(order > 0, order * middle[:, None] ** np.maximum(order - 1, 0), 0.0)
    (q, q_slope), (w, w_slope) = (
        [np.tensordot(matrix, array, axes=1) for matrix in (powers, falls)]
        for array in (polynomials.q, polynomials.w)
    )
    slope = np.abs(
        (q_slope[:, pairs.row] * w).sum(axis=2) + (q[:, pairs.row] * w_slope).sum(axis=2)
    )
    q_sums, w_sums = polynomials.on_step
    q_rounding = ROUNDING * (q_sums.size + q_sums.slope) + polynomials.M_off
    w_rounding = ROUNDING * (w_sums.size + w_sums.slope)
    score_rounding = (
        q_rounding[pairs.row] * (w_sums.size + w_sums.slope)
        + (q_sums.size + q_sums.slope)[pairs.row] * w_rounding
    )
    return Ranges(
        pieces,
        polynomials,
        pairs,
        q,
        w,
        (q[:, pairs.row] * w).sum(axis=2),
        Offs(slope, np.sqrt((w_slope**2).sum(axis=2)) * UP, np.sqrt((q_slope**2).sum(axis=2)) * UP),
        Offs(score_rounding, w_rounding, q_rounding),
    )


def choose_pieces(equation: Equation, h: float, polynomials: Polynomials, pairs: Pairs) -> int:
    """About how many pieces a step needs: a guess."""
    order, at = np.arange(len(polynomials.q)), np.linspace(0.0, 1.0, 9)
    powers = at[:, None] ** order
    row = np.tensordot(powers, polynomials.q, axes=1)[:, pairs.row]
    score = (row * np.tensordot(powers, polynomials.w, axes=1)).sum(axis=2)
    is_close = (score > -30.0).any(axis=0)
    change = np.abs(np.diff(score[:, is_close], axis=0)).max(initial=0.0) * 8.0
    return int(
        np.clip(np.ceil(max(change / (2.0 * CHANGE), h * equation.V_norm / GROWTH)), 1, MOST_PIECES)
    )
