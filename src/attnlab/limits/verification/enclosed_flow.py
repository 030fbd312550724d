"""One step of a proof checked again: the defect of its polynomial. No code of the prover is used.

Values are computed with 160 bits or more, so that their rounding is charged as a whole; bounds are
rounded up by MPFR. The formulas are in docs/limits.md, "What proof=True proves".
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import gmpy2
import numpy as np

from attnlab.limits.verification.enclosed_numbers import (
    as_fraction,
    as_number,
    downwards,
    evaluate,
    exp,
    norms,
    tiny,
    upwards,
    values,
)
from attnlab.limits.verification.record import require

ELLIPSES = (4.0, 3.0, 5.0, 6.0, 2.5, 8.0, 2.0, 10.0)


@dataclass(frozen=True, eq=False)
class Flow:
    """The equation of different tokens: P_ij proportional to counts_j exp(x_i^T M x_j) where i sees
    j; x_i' = V sum P_ij x_j.
    """

    V: np.ndarray  # (d, d) doubles
    M: np.ndarray  # (d, d) exact fractions
    seen: np.ndarray  # (m, m)
    counts: np.ndarray  # (m,) whole numbers
    start: np.ndarray  # (m, d) doubles

    @property
    def V_norm(self) -> float:
        """A bound of the norm of V."""
        return norm_above(np.abs(self.V))


def norm_above(size: np.ndarray) -> float:
    """A bound of the norm of a matrix whose entries have at most these moduli."""
    top = float(size.max(initial=0.0))
    if top == 0.0:
        return 0.0
    size = size / top  # so that no square underflows
    by_sums = math.sqrt(float(size.sum(axis=0).max()) * float(size.sum(axis=1).max()))
    return min(by_sums, math.sqrt(float((size**2).sum()))) * top * (1.0 + 1e-12)


@dataclass(frozen=True, eq=False)
class Step:
    """What a proof says about one step; the fields are those of a Proof, for one step, as
    doubles.
    """

    h: float
    coefficients: np.ndarray
    leader: np.ndarray
    pieces: int
    defect: np.ndarray
    tube: np.ndarray
    radius: np.ndarray
    rest: np.ndarray  # (rest, order + 1, m, d): what is added to the coefficients

    @property
    def parts(self) -> int:
        """How many doubles a coefficient is the sum of."""
        return 1 + len(self.rest)

    @property
    def nodes(self) -> int:
        """At how many nodes the defect is evaluated."""
        return 10 + 32 * self.parts

    @property
    def negligible(self) -> float:
        """A score that stays below the leader's by this is left out and charged."""
        return -20.0 - 40.0 * self.parts

    def exact(self) -> np.ndarray:
        """The coefficients as MPFR numbers, to the precision that is set."""
        return np.asarray(sum(map(as_number, self.rest), as_number(self.coefficients)))


class Checked:
    """One step, with what several checks need."""

    def __init__(self, flow: Flow, step: Step, highest: np.ndarray, scores: np.ndarray):
        """highest: bounds (m, m) of the scores of pairs, above their leader's, during the step.
        scores: bounds (2 order + 1, m, m) of their first coefficients, and of the moduli of others.
        """
        self.flow, self.step, self.highest, self.scores = flow, step, highest, scores
        self.tiny = tiny(step.parts)
        with values(step.parts):
            self.c = step.exact()
            self.q = self.c @ as_number(flow.M)
            factors = as_number(np.arange(1.0, len(self.c)))[:, None, None]
            self.V = as_number(flow.V)
            # coefficients of p' - V p_l, per unit of time
            self.v = -self.c[:, step.leader] @ self.V.T
            self.v[:-1] += self.c[1:] * factors / gmpy2.mpfr(step.h)
        with upwards():
            self.c_norms = norms(self.c)
            self.V_norm = gmpy2.mpfr(flow.V_norm)

    def check_defect(self) -> float:
        """Each stored bound of |p' - f(p)| holds. Returns the largest found bound, relative to the
        stored one.
        """
        with values(self.step.parts):
            count = self.step.nodes
            nodes = np.array(
                [
                    (1 + gmpy2.cos(gmpy2.const_pi() * (2 * k + 1) / (2 * count))) / 2
                    for k in range(count)
                ],
                dtype=object,
            )
            p = evaluate(self.c, nodes)
            q = (
                p
                if (self.flow.M == np.eye(len(self.flow.M), dtype=int)).all()
                else evaluate(self.q, nodes)
            )
            v = evaluate(self.v, nodes)
        worst = 0.0
        for i, stored in enumerate(map(float, self.step.defect)):
            found = self._row_defect(i, p, q[:, i], v[:, i], stored)
            require(
                found <= stored,
                f"In row {i} the polynomial fails the equation by up to {float(found):.3g}, and the"
                f" bound that is stored is {stored:.3g}.",
            )
            worst = max(worst, float(found) / stored)
        return worst

    def _row_defect(self, i: int, p: np.ndarray, q: np.ndarray, v: np.ndarray, enough: float):
        leader, counts = int(self.step.leader[i]), self.flow.counts
        sees = self.flow.seen[i].copy()
        sees[leader] = False
        is_in = sees & ~(self.highest[i] < self.step.negligible)
        js, out = np.flatnonzero(is_in), np.flatnonzero(sees & ~is_in)
        with values(self.step.parts):
            of_leader = gmpy2.mpfr(int(counts[leader]))
            w = p[:, js] - p[:, [leader]]
            E = exp((q[:, None] * w).sum(axis=-1)) * as_number(counts[js].astype(float))
            Z = E.sum(axis=1) + of_leader
            R = Z[:, None] * v - (E[:, :, None] * w).sum(axis=1) @ self.V.T
            w_all = self.c[:, js] - self.c[:, [leader]]
        with upwards():
            at_nodes = norms(R).max() + self._rounding(i, js)
            lebesgue = gmpy2.mpfr(1.0001) * (
                2 * gmpy2.log(gmpy2.mpfr(self.step.nodes)) / gmpy2.const_pi() * (1 + 1e-20) + 1
            )
            lost = gmpy2.mpfr(0)
            if len(out):
                weights = exp(as_number(self.highest[i, out])) * as_number(
                    counts[out].astype(float)
                )
                with values(self.step.parts):
                    apart = self.c[:, out] - self.c[:, [leader]]
                fast, reach = norms(self.v[:, i]).sum(), norms(apart).sum(axis=0)
                lost = (weights * (fast + self.V_norm * reach)).sum()
            best = gmpy2.inf()
            for rho in ELLIPSES:  # until one shows what is wanted
                found = (
                    lebesgue * at_nodes + self._missed(i, js, w_all, rho, lebesgue) + lost
                ) / of_leader
                best = found if found < best else best
                if best <= enough:
                    break
            return best

    def _missed(self, i: int, js: np.ndarray, w_all: np.ndarray, rho: float, lebesgue):
        """What the nodes can miss, from a bound on an ellipse. Rounding is upwards.

        On the ellipse |s| <= most_s, so the real part of a score is at most its value at s = 0,
        plus the bounds of its other terms.
        """
        leader = int(self.step.leader[i])
        rho = gmpy2.mpfr(rho)
        most_s = (1 + (rho + 1 / rho) / 2) / 2
        powers = np.array([most_s**k for k in range(len(self.scores))], dtype=object)
        v = (powers[: len(self.c), None] * abs(self.v[:, i])).sum(axis=0)
        w = (powers[: len(self.c), None, None] * abs(w_all)).sum(axis=0)
        scores = (powers[:, None] * as_number(self.scores[:, i, js])).sum(axis=0)
        E = exp(scores) * as_number(self.flow.counts[js].astype(float))
        Z = E.sum() + int(self.flow.counts[leader])
        N = (E[:, None] * w).sum(axis=0)
        size = norms(Z * v + abs(self.V) @ N)
        return (1 + lebesgue) * 2 * size * rho / (rho - 1) / _power_down(rho, self.step.nodes)

    def _rounding(self, i: int, js: np.ndarray):
        """What rounding makes of R at the nodes, where 0 <= s <= 1, so that scores are at most
        `highest`. Rounding is upwards.
        """
        leader, count = int(self.step.leader[i]), len(self.c)
        p, q = self.c_norms.sum(axis=0), norms(abs(self.q[:, i])).sum()
        E = exp(as_number(self.highest[i, js])) * as_number(self.flow.counts[js].astype(float))
        Z = E.sum() + int(self.flow.counts[leader])
        of_scores = self.tiny * (1 + q * (p[js] + p[leader])) * count**2
        terms = (
            Z * (p[i] * count / self.step.h + self.V_norm * p[leader])
            + self.V_norm * (E * (p[js] + p[leader])).sum()
        )
        return 8 * terms * (self.tiny * count**2 + of_scores.sum())


def _power_down(rho, exponent: int):
    with downwards():
        return rho**exponent


def distance(step: Step, start: np.ndarray) -> np.ndarray:
    """Bounds of how far the polynomial at s = 1 is from the sum of the parts `start` (parts, m, d),
    (m,): both are exact.
    """
    end = sum(as_fraction(one).sum(axis=0) for one in (step.coefficients, *step.rest))
    apart = abs(end - as_fraction(start).sum(axis=0))
    with upwards():
        return norms(as_number(apart))


def check_numbers(step: Step) -> None:
    """The numbers of a step are such that the checks mean something."""
    require(np.isfinite(step.h) and step.h > 0.0, "The length of a step is not positive.")
    require(1 <= step.pieces <= 4096, "A step must have between 1 and 4096 pieces.")
    require(
        np.isfinite(step.coefficients).all()
        and np.isfinite(step.rest).all()
        and 2 <= len(step.coefficients) <= 128
        and step.parts <= 8,
        "A polynomial is not finite.",
    )
    for name in ("defect", "tube", "radius"):
        array = getattr(step, name)
        require(
            np.isfinite(array).all() and (array >= 0.0).all(),
            f"{name} must be numbers that are not negative.",
        )
    require(math.isfinite(float(np.abs(step.coefficients).max())), "A polynomial is not finite.")
