"""What is known about scores and distances of pairs of tokens on each piece of a step, along the
polynomial.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from attnlab.limits.proof.equation import UP, Equation
from attnlab.limits.proof.pairs import Pairs

MOST_PIECES = 512
CHANGE = 0.15
"""A score may change by about this much in a piece, in either direction from the middle."""

GROWTH = 0.2
"""The largest row sum of the comparison matrix times the length of a piece."""

ROUNDING = 1e-13
"""Charged for the rounding of the value and the slope of a polynomial at the middle of a piece,
relative to the sums of the moduli of their terms.
"""

FINE = 128
"""Into how many parts a step is cut to see when a pair comes to count."""


class Sums(NamedTuple):
    """Sums of moduli of coefficients: bounds of a polynomial, its slope and its second
    derivative.
    """

    size: np.ndarray
    slope: np.ndarray
    bend: np.ndarray


@dataclass(frozen=True, eq=False)
class Known:
    """Polynomials in s: rounded coefficients, bounds of the norms of the true ones, and bounds of
    what the rounded ones are off by. The first axis is the power of s.
    """

    value: np.ndarray
    norm: np.ndarray
    error: np.ndarray

    def scaled(self, factor: float) -> Known:
        """The polynomials in s / factor; factor is a power of two, so nothing is rounded."""
        powers = factor ** np.arange(len(self.norm))
        return Known((powers * self.value.T).T, (powers * self.norm.T).T, (powers * self.error.T).T)

    def sums(self, reach: float) -> Sums:
        """Bounds for all complex |s| <= reach."""
        k = np.arange(len(self.norm))
        powers = reach**k
        falls = np.array([powers, k * powers / reach, k * (k - 1) * powers / reach**2]) * UP
        return Sums(*(falls @ self.norm * UP + 1e-300))

    @cached_property
    def on_step(self) -> Sums:
        """The Sums for 0 <= s <= 1."""
        return self.sums(1.0)

    def rounding(self) -> np.ndarray:
        """What values and slopes in doubles are off by for 0 <= s <= 1, each at most this."""
        size, slope, _ = self.on_step
        return np.asarray(
            (ROUNDING * (size + slope) + (1.0 + np.arange(len(self.error))) @ self.error) * UP
            + 1e-300
        )


@dataclass(frozen=True, eq=False)
class Polynomials:
    """What is Known over a step of M^T p_i, p_j - p_l, and their product, the score of a pair."""

    q: Known  # (order + 1, n, d)
    w: Known  # (order + 1, pairs, d)
    g: Known  # (2 order + 1, pairs)

    def scaled(self, factor: float) -> Polynomials:
        """Those of a shorter step."""
        return Polynomials(*(one.scaled(factor) for one in (self.q, self.w, self.g)))


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
    w: np.ndarray  # (pieces, pairs, d): p_j - p_l at the middle
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
        known, square = self.polynomials, 0.5 * radius**2
        return Offs(
            *(
                (radius * slope + square * one.sums(reach).bend) * UP
                for slope, one in zip(self.slopes, (known.g, known.w, known.q), strict=True)
            )
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
    middle = (np.arange(pieces) + 0.5) / pieces

    def at(known: Known) -> tuple[np.ndarray, np.ndarray]:
        """(values, slopes) at the middles."""
        order = np.arange(len(known.value))
        falls = np.where(order > 0, order * middle[:, None] ** np.maximum(order - 1, 0), 0.0)
        return (
            np.tensordot(middle[:, None] ** order, known.value, axes=1),
            np.tensordot(falls, known.value, axes=1),
        )

    _, q_slope = at(polynomials.q)
    w, w_slope = at(polynomials.w)
    score, slope = at(polynomials.g)
    return Ranges(
        pieces,
        polynomials,
        pairs,
        w,
        score,
        Offs(
            np.abs(slope),
            np.sqrt((w_slope**2).sum(axis=2)) * UP,
            np.sqrt((q_slope**2).sum(axis=2)) * UP,
        ),
        Offs(polynomials.g.rounding(), polynomials.w.rounding(), polynomials.q.rounding()),
    )


def highest_scores(polynomials: Polynomials) -> np.ndarray:
    """Bounds (FINE, pairs) of the score on each of FINE parts of the step."""
    g, half = polynomials.g, 0.5 / FINE
    middle = (np.arange(FINE) + 0.5) / FINE
    order = np.arange(len(g.value))
    falls = np.where(order > 0, order * middle[:, None] ** np.maximum(order - 1, 0), 0.0)
    score, slope = middle[:, None] ** order @ g.value, np.abs(falls @ g.value)
    return np.asarray(
        score + (half * slope + 0.5 * half**2 * g.on_step.bend + 2.0 * g.rounding()) * UP
    )


def choose_pieces(equation: Equation, h: float, polynomials: Polynomials) -> int:
    """About how many pieces a step needs: a guess."""
    g, at = polynomials.g.value, np.linspace(0.0, 1.0, 9)
    score = at[:, None] ** np.arange(len(g)) @ g
    is_close = (score > -30.0).any(axis=0)
    change = np.abs(np.diff(score[:, is_close], axis=0)).max(initial=0.0) * 8.0
    return int(
        np.clip(np.ceil(max(change / (2.0 * CHANGE), h * equation.V_norm / GROWTH)), 1, MOST_PIECES)
    )
