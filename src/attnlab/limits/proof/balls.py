"""The steps of a proof with more digits: values are balls (python-flint), which contain the true
ones, whatever rounding does. Errors of tokens, and how they grow, stay in doubles.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.limits.proof.equation import UP, Equation, NotProved
from attnlab.limits.proof.expansion import Digits, choose_factor
from attnlab.limits.proof.exponentials import UNIT
from attnlab.limits.proof.pairs import Pairs
from attnlab.limits.proof.ranges import Known, Polynomials

INSTALL = (
    'doubles are too coarse for this start; `pip install "attnlab[proof]"` adds python-flint, with'
    " which the same call tries more digits"
)


def load_flint() -> Any:
    """The module flint, or NotProved with what to install."""
    try:
        import flint
    except ImportError:
        raise NotProved(INSTALL) from None
    return flint


class Balls:
    """Numbers are balls, kept between steps as sums of `parts` doubles: an Arithmetic."""

    def __init__(self, equation: Equation, parts: int):
        self.equation, self.digits = equation, Digits(parts)
        self.flint, self.bits = load_flint(), 64 + 64 * parts
        arb = self.flint.arb
        self._as_ball = np.frompyfunc(arb, 1, 1)
        self._exp = np.frompyfunc(arb.exp, 1, 1)
        self._middle = np.frompyfunc(arb.mid, 1, 1)
        self._radius = np.frompyfunc(lambda ball: float(ball.rad()), 1, 1)
        self._above = np.frompyfunc(lambda ball: float(ball.abs_upper()), 1, 1)
        with self.flint.ctx.workprec(self.bits):
            fractions = [self.flint.fmpq(one.numerator, one.denominator) for one in self._entries()]
            self.M = np.array([arb(one) for one in fractions], dtype=object).reshape(
                equation.V.shape
            )
            at = self._balls(self.digits.at)
            powers = [np.full(len(at), arb(1), dtype=object)]
            for _ in range(self.digits.order):
                powers.append(powers[-1] * at)
            slopes = [powers[0] * 0, *(k * powers[k - 1] for k in range(1, len(powers)))]
            self._powers, self._slopes = (self._matrix(np.array(one).T) for one in (powers, slopes))

    def _entries(self) -> list:
        return [value for row in self.equation.M_exact for value in row]

    def _balls(self, values: np.ndarray) -> np.ndarray:
        """Each double as a ball of radius 0."""
        return np.asarray(self._as_ball(np.asarray(values, dtype=object)))

    def _sum(self, parts: np.ndarray) -> np.ndarray:
        """The sum along the first axis, as balls."""
        return np.asarray(self._balls(parts).sum(axis=0))

    def _split(self, balls: np.ndarray) -> np.ndarray:
        """(parts, ...) doubles whose sum is near the middle of each ball."""
        rest, found = self._middle(balls), []
        for _ in range(self.digits.parts):
            found.append(rest.astype(float))
            rest = rest - self._balls(found[-1])
        return np.array(found)

    def _rounded(self, balls: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(doubles, what they are off by at most)."""
        value = balls.astype(float)
        off = self._radius(balls).astype(float)
        return value, 2.0 * (2.0 * UNIT * np.abs(value) + off) + 1e-290

    def _matrix(self, values: np.ndarray) -> Any:
        return self.flint.arb_mat(*values.shape, list(values.ravel()))

    def _product(self, matrix: Any, values: np.ndarray) -> np.ndarray:
        """The matrix applied along the first axis of an array of balls."""
        found = matrix * self._matrix(values.reshape(len(values), -1))
        shape = (found.nrows(), *values.shape[1:])
        return np.array(found.entries(), dtype=object).reshape(shape)

    def scores(self, x: np.ndarray) -> np.ndarray:
        """See Arithmetic."""
        with self.flint.ctx.workprec(self.bits):
            tokens = self._sum(x)
            scores = tokens @ self.M @ tokens.T
            guess = np.where(self.equation.seen, scores.astype(float), -np.inf)
            best = guess.argmax(axis=1)
            for _ in range(2):  # the first guess is rounded
                apart = (scores - scores[np.arange(len(best)), best][:, None]).astype(float)
                apart = np.where(self.equation.seen, apart, -np.inf)
                best = apart.argmax(axis=1)
        return np.asarray(apart - np.maximum(apart.max(axis=1, keepdims=True), 0.0))

    def expand(
        self, x: np.ndarray, leader: np.ndarray, pairs: Pairs, h: float
    ) -> tuple[np.ndarray, float]:
        """See Arithmetic."""
        equation, order = self.equation, self.digits.order
        n, d = x.shape[1:]
        has, place = np.unique(pairs.row, return_inverse=True)
        m, rows = len(pairs.row), len(has)
        near = Pairs(place.ravel(), pairs.column, pairs.leader)
        with self.flint.ctx.workprec(self.bits):
            arb = self.flint.arb

            def empty(*shape: int) -> np.ndarray:
                return np.full(shape, arb(0), dtype=object)

            c, y = empty(order + 1, n, d), empty(order, rows, d)
            q, w = empty(order, m, d), empty(order, m, d)
            g, E, Z = empty(order, m), empty(order, m), empty(order, rows)
            counts, of_leader = (
                self._balls(one)
                for one in (equation.counts[pairs.column], equation.counts[leader[has]])
            )
            step, V = arb(h), self._balls(equation.V.T)
            c[0] = self._sum(x)
            for k in range(order):
                to = c[k][leader]
                if rows:
                    q[k] = (c[k][has] @ self.M)[near.row]
                    w[k] = c[k][pairs.column] - c[k][pairs.leader]
                    g[k] = (q[: k + 1] * w[k::-1]).sum(axis=(0, 2))
                    if k == 0:
                        E[0] = counts * self._exp(g[0])
                    else:
                        slopes = np.arange(1, k + 1, dtype=object)[:, None]
                        E[k] = (slopes * g[1 : k + 1] * E[k - 1 :: -1]).sum(axis=0) / k
                    Z[k] = near.add_rows(E[k], rows, 0)
                    y[k] = near.add_rows((E[: k + 1, :, None] * w[k::-1]).sum(axis=0), rows, 0)
                    if k == 0:
                        Z[0] = Z[0] + of_leader
                    else:
                        y[k] = y[k] - (Z[1 : k + 1, :, None] * y[k - 1 :: -1]).sum(axis=0)
                    y[k] = y[k] / Z[0][:, None]
                    to[has] = to[has] + y[k]
                c[k + 1] = (to @ V) * (step / (k + 1))
            steepest = float(np.abs(g[1].astype(float)).max(initial=0.0))
            longer = h * choose_factor(c.astype(float), steepest, self.digits)
            factor, power = arb(longer) / step, arb(1)  # the step is exactly the double `longer`
            for k in range(1, order + 1):
                power = power * factor
                c[k] = c[k] * power
            found = self._split(c)
        found[:, 0] = x
        return found, longer

    def polynomials(self, c: np.ndarray, pairs: Pairs) -> Polynomials:
        """See Arithmetic."""
        poly = self.flint.arb_poly
        with self.flint.ctx.workprec(self.bits):
            p = self._sum(c)
            q = p @ self.M
            w = p[:, pairs.column] - p[:, pairs.leader]
            q_poly = [[poly(list(one)) for one in token.T] for token in q.transpose(1, 0, 2)]
            g = np.zeros((2 * len(p) - 1, len(pairs.row)), dtype=object)
            zero = self.flint.arb(0)
            for place, (row, apart) in enumerate(zip(pairs.row, w.transpose(1, 2, 0), strict=True)):
                found = sum(
                    one * poly(list(other)) for one, other in zip(q_poly[row], apart, strict=True)
                )
                values = found.coeffs()
                g[:, place] = values + [zero] * (len(g) - len(values))
            known: list[Known] = []
            for balls in (q, w):
                value, off = self._rounded(balls)
                error = np.sqrt((off**2).sum(axis=2)) * UP
                norm = np.sqrt((value**2).sum(axis=2)) * UP + error
                known.append(Known(value, norm, error))
            value, off = self._rounded(g)
        return Polynomials(known[0], known[1], Known(value, np.abs(value) * UP + off, off))

    def at_nodes(self, c: np.ndarray, h: float, leader: np.ndarray, pairs: Pairs) -> np.ndarray:
        """See Arithmetic."""
        equation = self.equation
        with self.flint.ctx.workprec(self.bits):
            V, coefficients = self._balls(equation.V.T), self._sum(c)
            p = self._product(self._powers, coefficients)
            v = self._product(self._slopes, coefficients) / self.flint.arb(h) - p[:, leader] @ V
            counts = self._balls(equation.counts)
            R = v * counts[leader][:, None]
            has = np.unique(pairs.row)
            if len(has):
                q = p[:, has] @ self.M
                w = p[:, pairs.column] - p[:, pairs.leader]
                near = Pairs(np.searchsorted(has, pairs.row), pairs.column, pairs.leader)
                E = self._exp((q[:, near.row] * w).sum(axis=2)) * counts[pairs.column]
                Z = near.add_rows(E, len(has), 1)
                N = near.add_rows(E[..., None] * w, len(has), 1)
                R[:, has] = R[:, has] + Z[..., None] * v[:, has] - N @ V
            found = self._above(R).astype(float)
        return np.asarray(np.sqrt((found**2).sum(axis=2)).max(axis=0) * UP)

    def end_of(self, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """See Arithmetic."""
        with self.flint.ctx.workprec(self.bits):
            end = self._balls(c).sum(axis=(0, 1))
            found = self._split(end)
            off = self._above(end - self._sum(found)).astype(float)
        return found, np.sqrt((off**2).sum(axis=1)) * UP
