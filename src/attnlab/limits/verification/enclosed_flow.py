"""One step of a proof checked again: the defect of its polynomial, and the error bound at its end. No code of the prover is used.

Values are computed with 160 bits, so that their rounding is charged as a whole; bounds are rounded up by MPFR. The formulas are
in docs/limits.md, "What proof=True proves".
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import gmpy2
import numpy as np

from attnlab.limits.verification.enclosed_numbers import (
    TINY,
    as_fraction,
    as_number,
    downwards,
    evaluate,
    exp,
    norms,
    root,
    smaller,
    upwards,
    values,
)
from attnlab.limits.verification.record import require

NODES = 42
NEGLIGIBLE = -60.0
ELLIPSES = (4.0, 3.0, 5.0, 6.0, 2.5, 8.0, 2.0, 10.0)
ROOM = 1.01


@dataclass(frozen=True, eq=False)
class Flow:
    """The equation of different tokens: P_ij proportional to counts_j exp(x_i^T M x_j) where i sees j; x_i' = V sum P_ij x_j."""

    rates: np.ndarray               # (d,) doubles: V is diagonal
    M: np.ndarray                   # (d, d) exact fractions
    seen: np.ndarray                # (m, m)
    counts: np.ndarray              # (m,) whole numbers
    start: np.ndarray               # (m, d) doubles


@dataclass(frozen=True, eq=False)
class Step:
    """What a proof says about one step; the fields are those of a Proof, for one step, as doubles."""

    h: float
    coefficients: np.ndarray
    leader: np.ndarray
    pieces: int
    defect: np.ndarray
    tube: np.ndarray
    radius: np.ndarray


@dataclass(eq=False)
class Row:
    """Bounds about one row on each piece: of the columns j that it sees, without its leader."""

    columns: np.ndarray             # (J,)
    score: np.ndarray               # (pieces, J): at the middle
    off: np.ndarray                 # (pieces, J)
    reach: np.ndarray               # (pieces, J)
    w_size: np.ndarray              # (J,)


class Checked:
    """One step, with what several checks need."""

    def __init__(self, flow: Flow, step: Step):
        self.flow, self.step = flow, step
        with values():
            self.c = as_number(step.coefficients)
            self.M = as_number(flow.M)
            self.q = self.c @ self.M
            factors = as_number(np.arange(1.0, len(self.c)))[:, None, None]
            self.slope = self.c[1:] * factors                               # coefficients of p'
            self.q_slope = self.q[1:] * factors
            self.v = -self.c[:, step.leader] * as_number(flow.rates)        # coefficients of p' - V p_l, per unit of time
            self.v[:-1] += self.slope / gmpy2.mpfr(step.h)
            middle = (as_number(np.arange(step.pieces, dtype=float)) + 0.5) / step.pieces
            self.middles = [evaluate(one, middle) for one in (self.c, self.slope, self.q, self.q_slope)]
        with upwards():
            self.c_norms = norms(self.c)
            self.p_size = self.c_norms.sum(axis=0)
            self.q_sizes = _weighted_sums(norms(self.q))
            self.M_norm = _matrix_norm(self.M)
            self.V_norm = gmpy2.mpfr(float(np.abs(flow.rates).max()))
        self.rows = [self._row(i) for i in range(len(flow.start))] if step.pieces else []

    def _row(self, i: int) -> Row:
        step, leader = self.step, int(self.step.leader[i])
        sees = self.flow.seen[i].copy()
        sees[leader] = False
        js = np.flatnonzero(sees)
        with values():
            p, p1, q, q1 = self.middles
            q, q1 = q[:, [i]], q1[:, [i]]
            w, w1 = p[:, js] - p[:, [leader]], p1[:, js] - p1[:, [leader]]
            score = (q * w).sum(axis=-1)
            slope = (q1 * w + q * w1).sum(axis=-1)
            w_all = self.c[:, js] - self.c[:, [leader]]
        with upwards():
            half = gmpy2.mpfr(1) / (2 * step.pieces)
            w_sizes = _weighted_sums(norms(w_all))
            q_sizes = [size[i] for size in self.q_sizes]
            rounding = TINY * (self.p_size[js] + self.p_size[leader]) * len(self.c) ** 2
            bend = q_sizes[2] * w_sizes[0] + 2 * q_sizes[1] * w_sizes[1] + q_sizes[0] * w_sizes[2]
            off = half * abs(slope) + half * half / 2 * bend + rounding * (q_sizes[0] + q_sizes[1])
            reach = norms(w) + half * norms(w1) + half * half / 2 * w_sizes[2] + rounding
        return Row(js, score, off, reach, w_sizes[0])

    def check_defect(self) -> float:
        """Each stored bound of |p' - f(p)| holds. Returns the largest found bound, relative to the stored one."""
        with values():
            N = np.arange(NODES)
            nodes = np.array([(1 + gmpy2.cos(gmpy2.const_pi() * (2 * int(k) + 1) / (2 * NODES))) / 2 for k in N], dtype=object)
            p = evaluate(self.c, nodes)
            q = p if (self.flow.M == np.eye(len(self.M), dtype=int)).all() else evaluate(self.q, nodes)
            v = evaluate(self.v, nodes)
        worst = 0.0
        for i, row in enumerate(self.rows):
            stored = float(self.step.defect[i])
            found = self._row_defect(i, row, p, q[:, i], v[:, i], stored)
            require(found <= stored, f"In row {i} the polynomial fails the equation by up to {float(found):.3g}, and the bound "
                                     f"that is stored is {stored:.3g}.")
            worst = max(worst, float(found) / stored)
        return worst

    def _row_defect(self, i: int, row: Row, p: np.ndarray, q: np.ndarray, v: np.ndarray, enough: float):
        leader, counts = int(self.step.leader[i]), self.flow.counts
        with upwards():
            highest = (row.score + row.off).max(axis=0) if len(row.columns) else np.zeros(0, dtype=object)
        is_in = np.array([not value < NEGLIGIBLE for value in highest], dtype=bool)
        js = row.columns[is_in]
        with values():
            rates = as_number(self.flow.rates)
            of_leader = gmpy2.mpfr(int(counts[leader]))
            w = p[:, js] - p[:, [leader]]
            E = exp((q[:, None] * w).sum(axis=-1)) * as_number(counts[js].astype(float))
            Z = E.sum(axis=1) + of_leader
            R = Z[:, None] * v - (E[:, :, None] * w).sum(axis=1) * rates
            w_all = self.c[:, js] - self.c[:, [leader]]
            start = (self.q[0, i] * w_all[0]).sum(axis=-1) - (abs(self.q[0, i]) * abs(w_all[0])).sum(axis=-1)
        with upwards():
            at_nodes = norms(R).max()
            lebesgue = gmpy2.mpfr(1.0001) * (2 * gmpy2.log(gmpy2.mpfr(NODES)) / gmpy2.const_pi() * (1 + TINY) + 1)
            lost = gmpy2.mpfr(0)
            if not is_in.all():
                out = row.columns[~is_in]
                weights = exp(highest[~is_in]) * as_number(counts[out].astype(float))
                fast = norms(self.v[:, i]).sum()
                lost = (weights * (fast + self.V_norm * row.w_size[~is_in])).sum()
            best = gmpy2.inf()
            for rho in ELLIPSES:                                            # until one shows what is wanted
                found = (lebesgue * at_nodes + self._missed(i, js, w_all, rho, start, lebesgue) + lost) / of_leader
                best = found if found < best else best
                if best <= enough:
                    break
            return best

    def _missed(self, i: int, js: np.ndarray, w_all: np.ndarray, rho: float, start: np.ndarray, lebesgue):
        """What the nodes can miss, and the rounding of the values at the nodes, from a bound on an ellipse. Rounding is upwards.

        On the ellipse |s| <= most_s, so the real part of a score is at most its value at s = 0, minus the constant term of the
        majorant, which `start` has, plus the majorant.
        """
        leader = int(self.step.leader[i])
        rho = gmpy2.mpfr(rho)
        most_s = (1 + (rho + 1 / rho) / 2) / 2
        powers = np.array([most_s**k for k in range(len(self.c))], dtype=object)
        q, v = (powers[:, None] * abs(self.q[:, i])).sum(axis=0), (powers[:, None] * abs(self.v[:, i])).sum(axis=0)
        w = (powers[:, None, None] * abs(w_all)).sum(axis=0)
        p = (powers[:, None] * self.c_norms).sum(axis=0)                      # of norms
        rounding = TINY * (1 + norms(q) * (p[js] + p[leader])) * len(self.c) ** 2
        E = exp(start + ((q * w).sum(axis=-1) + rounding)) * as_number(self.flow.counts[js].astype(float))
        Z = E.sum() + int(self.flow.counts[leader])
        N = (E[:, None] * w).sum(axis=0)
        rough = Z * (p[i] * len(self.c) / self.step.h + self.V_norm * p[leader]) + self.V_norm * (E * (p[js] + p[leader])).sum()
        size = norms(Z * v + as_number(abs(self.flow.rates)) * N)
        tail = (1 + lebesgue) * 2 * size * rho / (rho - 1) / _power_down(rho, NODES)
        return tail + 4 * lebesgue * (size + rough) * (TINY * len(self.c) ** 2 + rounding.sum())

    def check_radius(self, e: np.ndarray) -> float:
        """From errors of at most e (m,) at the start, the stored radius holds at the end. Returns the ratio."""
        step = self.step
        with upwards():
            tube, defect, length = as_number(step.tube), as_number(step.defect) * step.h, gmpy2.mpfr(1) / step.pieces
            for piece in range(step.pieces):
                A = self._comparison(piece, tube)
                plain = A.astype(float)
                low, off = e.astype(float), defect.astype(float)
                radius = ROOM * (low + off / step.pieces)
                for _ in range(60):
                    radius = ROOM * (low + (plain @ radius + off) / step.pieces)
                radius = np.minimum(radius, step.tube)
                slope = A @ as_number(radius) + defect
                require((e + length * slope < as_number(radius)),
                        f"On piece {piece} the true tokens need not stay inside the tube that is stored.")
                e = e + length * (defect + A @ (e + length / 2 * slope))
            require(e <= as_number(step.radius), "The radius at the end of a step is stored as "
                    f"{float(step.radius[int(np.argmax((e / as_number(step.radius + 1e-300)).astype(float)))]):.3g}, "
                    f"and the error bound is up to {float((e / as_number(step.radius + 1e-300)).max()):.3g} times as large.")
            return float((e / as_number(step.radius + 1e-300)).max())

    def _comparison(self, piece: int, tube: np.ndarray) -> np.ndarray:
        """A on one piece, (m, m), per unit of s. Rounding is upwards."""
        m = len(self.rows)
        A = np.full((m, m), gmpy2.mpfr(0), dtype=object)
        for i, row in enumerate(self.rows):
            js, leader = row.columns, int(self.step.leader[i])
            counts, of_leader = as_number(self.flow.counts[js].astype(float)), gmpy2.mpfr(int(self.flow.counts[leader]))
            around = tube[js] + tube[leader]
            off = row.off[piece] + self.q_sizes[0][i] * around + self.M_norm * tube[i] * (row.w_size + around)
            most = counts * exp(row.score[piece] + off)
            inverse = exp(off - row.score[piece])                            # 1 / the least weight, from above
            with downwards():
                least = counts / inverse
                total = least.sum()
                bottom, bottom_leader = of_leader + most + _sums_of_others(least), of_leader + total
            weight = smaller(most / bottom, gmpy2.mpfr(1))
            reach = row.reach[piece] + around
            mean = (weight * reach).sum()
            size = self.q_sizes[0][i] + self.M_norm * tube[i]
            A[i, js] = weight * (1 + (reach + mean) * size)
            A[i, leader] += of_leader / bottom_leader * (1 + mean * size)
            A[i, i] += self.M_norm * (weight * reach * reach).sum()
        return A * (self.V_norm * self.step.h)


def _sums_of_others(least: np.ndarray) -> np.ndarray:
    """For each number the sum of all others, as sums from either end. Rounding is downwards."""
    zero = np.array([gmpy2.mpfr(0)], dtype=object)
    before = np.concatenate([zero, np.cumsum(least)[:-1]])
    after = np.concatenate([np.cumsum(least[::-1])[::-1][1:], zero])
    return before + after


def _weighted_sums(norm: np.ndarray) -> list[np.ndarray]:
    """Sums over the coefficients, without factor, times k, and times k (k - 1). Rounding is upwards."""
    k = np.arange(len(norm)).reshape(-1, *[1] * (norm.ndim - 1)).astype(object)
    return [norm.sum(axis=0), (k * norm).sum(axis=0), (k * (k - 1) * norm).sum(axis=0)]


def _matrix_norm(M: np.ndarray):
    """A bound of the norm of a matrix: Frobenius', or the root of the largest row sum times the largest column sum."""
    size = abs(M) * (1 + gmpy2.mpfr(TINY))
    frobenius, sums = root((size * size).sum()), root(size.sum(axis=0).max() * size.sum(axis=1).max())
    return frobenius if frobenius < sums else sums


def _power_down(rho, exponent: int):
    with downwards():
        return rho**exponent


def distance(coefficients: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Bounds of how far the polynomial at s = 1 is from `start` (m, d), (m,): both are exact doubles."""
    apart = abs(as_fraction(coefficients).sum(axis=0) - as_fraction(start))
    with upwards():
        return norms(as_number(apart))


def check_numbers(step: Step) -> None:
    """The numbers of a step are such that the checks mean something."""
    require(np.isfinite(step.h) and step.h > 0.0, "The length of a step is not positive.")
    require(1 <= step.pieces <= 4096, "A step must have between 1 and 4096 pieces.")
    require(np.isfinite(step.coefficients).all() and 2 <= len(step.coefficients) <= 64, "A polynomial is not finite.")
    for name in ("defect", "tube", "radius"):
        array = getattr(step, name)
        require(np.isfinite(array).all() and (array >= 0.0).all(), f"{name} must be numbers that are not negative.")
    require(math.isfinite(float(np.abs(step.coefficients).max())), "A polynomial is not finite.")
