"""What the two arithmetics of a proof have in common, `doubles` and `balls`.

Tokens and coefficients have a first axis of parts. The value is the exact sum of the parts, each of
which is a double: one part in plain doubles, more in balls.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from attnlab.limits.proof.pairs import Pairs
from attnlab.limits.proof.ranges import Polynomials

STEEPEST = 0.4
"""An exponent may change by this part of the order in a step: beyond, small last coefficients say
nothing.
"""

MOST_LONGER = 30.0
"""A step is longer than the one before it by this factor at most."""


@dataclass(frozen=True)
class Digits:
    """How fine the steps of a proof are, if a number has so many parts."""

    parts: int

    @property
    def order(self) -> int:
        """Of a polynomial."""
        return 12 + 12 * self.parts

    @property
    def nodes(self) -> int:
        """At which the defect is evaluated."""
        return 8 + 32 * self.parts

    @property
    def smallest(self) -> float:
        """The last coefficient of a step, relative to the token. A step is shortened until what the
        nodes can miss is below it, relative to the velocity; or four times.
        """
        return float(10.0 ** (-1 - 16 * self.parts))

    @property
    def negligible(self) -> float:
        """A score that stays below the leader's by this is left out of sums and charged
        instead.
        """
        return -20.0 - 40.0 * self.parts

    @property
    def almost_negligible(self) -> float:
        """Pairs with a larger score enter the polynomial. A step ends before another pair comes to
        count.
        """
        return self.negligible - 15.0

    @property
    def at(self) -> np.ndarray:
        """The Chebyshev nodes on [0, 1], rounded."""
        return np.asarray(0.5 + 0.5 * np.cos(np.pi * (np.arange(self.nodes) + 0.5) / self.nodes))

    @property
    def lebesgue(self) -> float:
        """The Lebesgue constant of the nodes; 1.0001 is for nodes that are off by less than
        1e-10.
        """
        return 1.0001 * (2.0 / math.pi * math.log(self.nodes) + 1.0)


class Arithmetic(Protocol):
    """What the loop over the steps asks an arithmetic for."""

    digits: Digits

    def scores(self, x: np.ndarray) -> np.ndarray:
        """The scores (n, n) of tokens x (parts, n, d), less the largest one of each row that is
        seen: a guess.
        """

    def expand(
        self, x: np.ndarray, leader: np.ndarray, pairs: Pairs, h: float
    ) -> tuple[np.ndarray, float]:
        """Coefficients (parts, order + 1, n, d) of p(s), 0 <= s <= 1, x(t + s h) = p(s), and the
        step h that they are for: a guess that starts at x. Other pairs are left out.
        """

    def polynomials(self, c: np.ndarray, pairs: Pairs) -> Polynomials:
        """What is Known about the polynomial with coefficients c (parts, order + 1, n, d)."""

    def at_nodes(self, c: np.ndarray, h: float, leader: np.ndarray, pairs: Pairs) -> np.ndarray:
        """A bound (n,) of |R_i| at the nodes, by `defect`."""

    def end_of(self, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(the polynomial at s = 1, rounded (parts, n, d); a bound of what rounding made of it,
        (n,)).
        """


def choose_factor(c: np.ndarray, steepest: float, digits: Digits) -> float:
    """How much longer a step can be than the one that the coefficients c (order + 1, n, d) are
    for; `steepest` is the largest slope of a score.
    """
    size, order = np.sqrt((c**2).sum(axis=2)), len(c) - 1
    scale = np.maximum(size[0], 1e-3 * float(size[0].max()))
    with np.errstate(divide="ignore", invalid="ignore"):
        factors = [(digits.smallest * scale / size[k]) ** (1.0 / k) for k in (order - 1, order)]
    factor = min(float(np.min(factors)), MOST_LONGER)
    if steepest > 0.0:
        factor = min(factor, STEEPEST * order / steepest)
    return factor if 0.0 < factor < np.inf else 0.25
