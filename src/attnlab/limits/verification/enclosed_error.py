"""How far the true tokens are from the polynomials of a proof, followed again step by step. No code
of the prover is used.

The differences lie in {G r : |r_a| <= sizes_a}. In a step, G obeys the linearised equation, and
what that leaves out, E, begins at 0 and is bounded by the comparison system (docs/limits.md, "What
proof=True proves"). Everything here is a bound, or a matrix of which only the difference to the
true one counts. So doubles suffice: sums of numbers that are not negative are multiplied by UP, and
what rounding makes of values is charged, relative to the sums of the moduli of their terms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from attnlab.limits.verification.enclosed_flow import Flow, Step, norm_above
from attnlab.limits.verification.enclosed_numbers import as_number, tiny, values
from attnlab.limits.verification.record import require

UP = 1.0 + 1e-8
VALUES = 1e-13
"""Of values of polynomials of order below 256, and of products over at most 12 coordinates: a
hundred times what there is."""

COEFFICIENTS = 1e-10
"""Of the Taylor coefficients of J: thousands of times what there is."""

SMALL = 1e-9
"""A weight is no part of J on a piece where its product with distances and scores stays below
this.
"""

SMALLEST = 1e-290
"""Charged for numbers that are too small for doubles."""

FINE = 384
"""Into how many parts a step is cut to bound the scores on it."""

DISCS = (3.0, 4.5, 6.0, 10.0)
TERMS = 6
"""The order of the moved set on a piece, as a polynomial in the time."""


def exponential(x: np.ndarray) -> np.ndarray:
    """e^x, off by less than 1e-11, relative: e^{x / 1024} by 18 Taylor terms, squared ten times.
    Beyond |x| = 600: at the edge.
    """
    y = np.clip(x, -600.0, 600.0) / 1024.0
    value = np.ones_like(y)
    for k in range(17, 0, -1):
        value = 1.0 + y * value / k
    for _ in range(10):
        value = value * value
    return value


def above(x: np.ndarray) -> np.ndarray:
    """A bound of e^x from above, infinite beyond 600."""
    return np.where(x > 600.0, np.inf, exponential(x) * UP)


def below(x: np.ndarray) -> np.ndarray:
    """A bound of e^x from below."""
    return np.where(x < -600.0, 0.0, exponential(x) / UP)


def lengths(array: np.ndarray) -> np.ndarray:
    """Bounds of the norms along the last axis."""
    return np.asarray(np.sqrt((array**2).sum(axis=-1)) * UP)


def series(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The product of two Taylor polynomials of order 2, without higher terms."""
    return np.stack(
        [
            one[0] * other[0],
            one[0] * other[1] + one[1] * other[0],
            one[0] * other[2] + one[1] * other[1] + one[2] * other[0],
        ]
    )


@dataclass(frozen=True, eq=False)
class ErrorSet:
    """{G r : |r| <= sizes} over all coordinates of m tokens."""

    G: np.ndarray
    sizes: np.ndarray

    def norms(self, m: int) -> np.ndarray:
        """Bounds (m,) for each token."""
        return lengths((np.abs(self.G) @ self.sizes).reshape(m, -1))


class Sizes:
    """Bounds of M^T p (m,), of p_j - p_l (m, m) and of scores (m, m), of their slopes and second
    derivatives, for |s| <= reach.
    """

    def __init__(self, q: np.ndarray, w: np.ndarray, g: np.ndarray, reach: float):
        """q (order + 1, m), w (order + 1, m, m) and g (2 order + 1, m, m) bound coefficients."""
        self.q, self.w, self.g = (self._sums(one, reach) for one in (q, w, g))

    @staticmethod
    def _sums(bounds: np.ndarray, reach: float) -> list[np.ndarray]:
        k = np.arange(len(bounds), dtype=float)
        powers = (reach**k, k * reach ** (k - 1.0), k * (k - 1.0) * reach ** (k - 2.0))
        return [np.tensordot(power, bounds, axes=1) * UP + SMALLEST for power in powers]


class Followed:
    """One step along which an ErrorSet is followed."""

    def __init__(self, flow: Flow, step: Step):
        self.flow, self.step = flow, step
        self.m, self.d = flow.start.shape
        self.M = flow.M.astype(float)
        self.M_size = np.abs(self.M) * UP
        self.M_norm = norm_above(self.M_size) * UP
        self.V_norm = flow.V_norm * UP
        self.counts = np.where(flow.seen, flow.counts, 0.0)
        self.half = 0.5 / step.pieces
        c = step.coefficients
        self.w = c[:, None] - c[:, step.leader][:, :, None]
        for part in step.rest:
            self.w = self.w + (part[:, None] - part[:, step.leader][:, :, None])
        beyond = np.abs(step.rest).sum(axis=0)
        self.w_off = VALUES * lengths(np.abs(self.w)) + 2.0**-52 * (
            lengths(beyond)[:, None] + lengths(beyond[:, step.leader])[:, :, None]
        )
        self.w_off[:, np.arange(self.m), step.leader] = 0.0  # 0 is exact
        self.bounds = (lengths(np.abs(c) @ self.M_size), lengths(self.w) + self.w_off)
        self.g, self.g_off = self._scores()
        self.on_step = Sizes(*self.bounds, np.abs(self.g) + self.g_off, 1.0)
        self.g_rounding = self._charged(self.g, self.g_off)
        near = self.highest() > step.negligible - 10.0
        near[np.arange(self.m), step.leader] = False
        if len(step.rest) and near.any():
            self._improve(*np.nonzero(near & flow.seen))
            self.on_step = Sizes(*self.bounds, np.abs(self.g) + self.g_off, 1.0)
            self.g_rounding = self._charged(self.g, self.g_off)
        self.on_discs = [
            Sizes(*self.bounds, np.abs(self.g) + self.g_off, 1.0 + (disc - 1.0) * self.half)
            for disc in DISCS
        ]
        self.top = self.highest()
        q, w = self.on_step.q, self.on_step.w
        self.q_rounding = VALUES * (q[0] + q[1])
        orders = 1.0 + np.arange(len(c))
        self.w_rounding = VALUES * (w[0] + w[1]) + np.tensordot(orders, self.w_off, axes=1) * UP

    def _charged(self, g: np.ndarray, off: np.ndarray) -> np.ndarray:
        """What values and slopes of the scores are off by, (m, m)."""
        orders = 1.0 + np.arange(len(g))
        return np.asarray(np.tensordot(orders, off + VALUES * np.abs(g), axes=1) * UP + SMALLEST)

    def _scores(self) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients (2 order + 1, m, m) of the scores above their leader's, in doubles, and
        bounds of what they are off by.
        """
        q, count = self.step.coefficients @ self.M, len(self.w)
        q_bound, w_bound = self.bounds
        g, off = np.zeros((2, 2 * count - 1, self.m, self.m))
        for a in range(count):
            g[a : a + count] += np.einsum("ib,kijb->kij", q[a], self.w)
            off[a : a + count] += q_bound[a][:, None] * (VALUES * w_bound + self.w_off)
        return g, off * UP

    def _improve(self, row: np.ndarray, column: np.ndarray) -> None:
        """The scores of some pairs, computed with many digits."""
        with values(self.step.parts):
            p = self.step.exact()
            q = (p @ as_number(self.flow.M))[:, row]
            w = p[:, column] - p[:, self.step.leader[row]]
            g = np.zeros((2 * len(p) - 1, len(row)), dtype=object)
            for a in range(len(p)):
                g[a : a + len(p)] += (q[a] * w).sum(axis=2)
            found = g.astype(float)
        q_bound, w_bound = self.bounds[0][:, row], self.bounds[1][:, row, column]
        charged = np.zeros(found.shape)
        for a in range(len(p)):
            charged[a : a + len(p)] += q_bound[a] * w_bound
        p_bound = lengths(self.step.coefficients)
        around = p_bound[:, column] + p_bound[:, self.step.leader[row]]
        for a in range(len(p)):  # of differences of rounded tokens
            charged[a : a + len(p)] += q_bound[a] * around
        self.g[:, row, column] = found
        self.g_off[:, row, column] = (
            2.0**-50 * np.abs(found) + tiny(self.step.parts) * charged
        ) * UP

    def bounded_scores(self) -> np.ndarray:
        """Bounds (2 order + 1, m, m) of the scores' first coefficients, and of the moduli of the
        others.
        """
        return np.concatenate([self.g[:1], np.abs(self.g[1:])]) + self.g_off * UP

    def highest(self) -> np.ndarray:
        """Bounds (m, m) of the scores above their leader's, on the polynomial during the whole
        step.
        """
        half, k = 0.5 / FINE, np.arange(len(self.g))
        middle = (2.0 * np.arange(FINE)[:, None] + 1.0) * half
        flat = self.g.reshape(len(k), -1)
        slope = np.abs((k * middle ** np.maximum(k - 1, 0)) @ flat)
        off = 0.5 * half**2 * self.on_step.g[2].ravel() + 2.0 * self.g_rounding.ravel()
        found = (middle**k @ flat + (half * slope + off) * UP).max(axis=0)
        return np.asarray(found.reshape(self.m, self.m))

    def _series(self, middle: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Series in half lengths at the middle of a piece: M^T p (3, m, d), p_j - p_{leader of i}
        (3, m, m, d), scores (3, m, m).
        """

        def at_middle(coefficients: np.ndarray) -> np.ndarray:
            k = np.arange(len(coefficients))
            shifts = [
                np.array([math.comb(int(j), a) for j in k])
                * middle ** np.maximum(k - a, 0)
                * self.half**a
                for a in range(3)
            ]
            return np.stack([np.tensordot(shift, coefficients, axes=1) for shift in shifts])

        q = at_middle(self.step.coefficients) @ self.M
        return q, at_middle(self.w), at_middle(self.g)

    def follow(self, before: ErrorSet) -> tuple[np.ndarray, np.ndarray]:
        """(G at the end of the step, bounds (m,) of the rest E); or Failed."""
        step, G, E = self.step, before.G, np.zeros(self.m)
        length, defect = 1.0 / step.pieces, step.defect * step.h * UP
        lever = 1.0 + self.on_step.q[0][:, None] * self.on_step.w[0]  # of a weight, on errors
        for number in range(step.pieces):
            q, w, g = self._series((2 * number + 1) * self.half)
            off = (np.abs(g[1]) + 0.5 * self.half**2 * self.on_step.g[2] + self.g_rounding) * UP
            is_kept = self.counts * above(np.minimum(g[0] + off, self.top)) > SMALL / lever
            is_kept[np.arange(self.m), step.leader] = True
            P, xbar, J = self._linearised(g, q, w, is_kept)
            G, during, apart, left_out, rounding = self._moved(
                G, J * (step.h * length), before.sizes, is_kept
            )
            A, made = self._at_tokens(g, off, q, w, P, xbar, is_kept, during, apart)
            made = (made + defect + left_out / length) * UP
            radius = 1.01 * (E + length * made)
            for _ in range(60):
                radius = 1.01 * (E + length * (A @ radius + made))
            slope = (A @ radius + made) * UP
            require(
                (E + length * slope) * UP < radius,
                f"On piece {number} no radius is found that the rest stays within.",
            )
            require(
                radius <= step.tube,
                f"On piece {number} the rest need not stay inside the tube that is stored.",
            )
            E = (E + length * (made + A @ (E + 0.5 * length * slope)) + rounding) * UP
        return G, E

    def _at_tokens(
        self,
        g: np.ndarray,
        off: np.ndarray,
        q: np.ndarray,
        w: np.ndarray,
        P: np.ndarray,
        xbar: np.ndarray,
        is_kept: np.ndarray,
        during: np.ndarray,
        apart: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """(A (m, m), a bound (m,) of the true derivative minus J, on the moved set), per unit of s.

        Tokens are within `during` plus the tube of p, and differences x_k - x_l within `apart` plus
        two tubes. The parts of a row that P weighs map equal v_k to their value, in J and in truth,
        so only v_k - v_l counts there.
        """
        leader, tube = self.step.leader, self.step.tube
        on_step, counts, index = self.on_step, self.counts, np.arange(self.m)
        far, around = (during + tube) * UP, (apart + tube[None, :] + tube[leader][:, None]) * UP
        around[index, leader] = 0.0
        q_off = self.M_norm * far * UP
        tube_off = (on_step.q[0][:, None] * around + q_off[:, None] * (on_step.w[0] + around)) * UP
        most = counts * above(np.minimum(g[0] + off, self.top) + tube_off)
        least = counts * below(g[0] - off - tube_off)
        rest = np.maximum(least.sum(axis=1)[:, None] / UP - least * UP, 0.0)
        highest = np.where(np.isinf(most), 1.0, np.minimum(most / (most + rest) * UP, 1.0))
        highest = np.where(counts > 0.0, highest, 0.0)
        bend = 0.5 * self.half**2 * on_step.w[2]
        reach = (lengths(w[0]) + lengths(w[1]) + bend + self.w_rounding + around) * UP
        reach[index, leader] = 0.0
        size = (on_step.q[0] + q_off) * UP
        mean = (highest * reach).sum(axis=1) * UP
        A = highest * (1.0 + (reach + mean[:, None]) * size[:, None])
        A[index, index] += self.M_norm * (highest * reach**2).sum(axis=1)
        of_pairs, own, rounding = self._left_out(P, xbar, q, w, g, is_kept)
        lost = np.where(is_kept, 0.0, highest).sum(axis=1) * UP
        require(lost < 0.5, "Attention that is left out counts.")
        kept = np.where(is_kept, np.minimum(highest / (1.0 - lost)[:, None], 1.0), 0.0) * UP
        change = np.where(is_kept, self._changed(kept, tube_off, lost), highest)
        more = self._blocks(
            kept, change, reach, around, reach + mean[:, None], mean, on_step.q[0], q_off
        )
        made = ((of_pairs + more[0]) * apart).sum(axis=1) + (own + more[1]) * during
        made = made + rounding @ during
        require(np.isfinite(made), "On a piece the derivative of the velocity changes too much.")
        factor = self.V_norm * self.step.h * UP**2
        return A * factor, made * factor

    def _linearised(
        self, g: np.ndarray, q: np.ndarray, w: np.ndarray, is_kept: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(weights (3, m, m), xbar - x_l (3, m, d), J (3, m d, m d)): series at the middle of a
        piece, of the kept pairs.
        """
        m, d = self.m, self.d
        E0 = np.where(is_kept, self.counts * exponential(g[0]), 0.0)
        E = np.stack([E0, g[1] * E0, (g[2] + 0.5 * g[1] ** 2) * E0])
        Z = E.sum(axis=2)
        inverse = np.stack([1.0 / Z[0], -Z[1] / Z[0] ** 2, (Z[1] ** 2 / Z[0] - Z[2]) / Z[0] ** 2])
        P = series(E, inverse[:, :, None])
        xbar = series(P[..., None], w).sum(axis=2)
        pull = series(P[..., None], w - xbar[:, :, None])  # (3, i, j, d)
        J = np.einsum("kij,ab->kiajb", P, np.eye(d))
        for k in range(3):
            for b in range(k + 1):
                J[k] += np.einsum("ija,ib->iajb", pull[b], q[k - b])
        second = np.stack(
            [
                sum(np.einsum("ija,ijb->iab", pull[b], w[k - b]) for b in range(k + 1))
                for k in range(3)
            ]
        )
        for i in range(m):
            J[:, i, :, i] += second[:, i] @ self.M.T
        J = np.einsum("ab,kibjc->kiajc", self.flow.V, J)
        return P, xbar, J.reshape(3, m * d, m * d)

    def _left_out(
        self,
        P: np.ndarray,
        xbar: np.ndarray,
        q: np.ndarray,
        w: np.ndarray,
        g: np.ndarray,
        is_kept: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The Taylor terms beyond order 2, from bounds on discs: of pairs and own; and the
        rounding of the others.
        """
        half, found, own = self.half, np.full((self.m, self.m), np.inf), np.full(self.m, np.inf)
        length, mean, v, q_size, weight = (
            lengths(w[0]),
            lengths(xbar[0]),
            lengths(w[0] - xbar[0][:, None]),
            lengths(q[0]),
            P[0],
        )
        all_w, all_q = self.on_step.w[0] + self.on_step.w[1], self.on_step.q[0] + self.on_step.q[1]
        mean_sum = (weight * all_w).sum(axis=1)
        plain = weight * (1.0 + (all_w + mean_sum[:, None]) * all_q[:, None])
        plain += np.diag(self.M_norm * ((weight * all_w**2).sum(axis=1) + mean_sum**2))
        # of the terms of first and second order: what they can be on any of the discs
        higher = np.full((self.m, self.m), np.inf)
        rounding = 20.0 * float(self.g_rounding[is_kept].max()) + COEFFICIENTS
        for disc, sizes in zip(DISCS, self.on_discs, strict=True):
            square = 0.5 * (disc * half) ** 2
            off = (
                np.where(
                    is_kept, disc * (np.abs(g[1]) + self.g_rounding) + square * sizes.g[2], 0.0
                )
                * UP
            )
            w_off = (disc * (lengths(w[1]) + self.w_rounding) + square * sizes.w[2]) * UP
            q_off = (disc * (lengths(q[1]) + self.q_rounding) + square * sizes.q[2]) * UP
            change = self._changed(weight, off, np.zeros(self.m))
            most, most_own = self._blocks(weight, change, length, w_off, v, mean, q_size, q_off)
            factor = disc**-3 / (1.0 - 1.0 / disc)
            found, own = np.fmin(found, most * factor), np.fmin(own, most_own * factor)
            higher = np.fmin(higher, most + np.diag(most_own))
        return found * UP, own * UP, rounding * (plain + higher) * UP

    @staticmethod
    def _changed(weight: np.ndarray, off: np.ndarray, lost: np.ndarray) -> np.ndarray:
        """By how much weights (m, m) change if scores change by `off`, real or complex, and sums
        also by `lost`; or NaN.
        """
        rise = (
            np.where(off < 1.0, off * (1.0 + off), above(off)) * UP
        )  # e^x - 1 <= x + x^2 for x <= 1
        more = (((weight * rise).sum(axis=1) + lost) / (1.0 - lost) * UP)[:, None]
        more = np.where(more < 0.9, more, np.nan)
        return weight * (rise + more) / (1.0 - more) * UP

    def _blocks(
        self,
        weight: np.ndarray,
        change: np.ndarray,
        length: np.ndarray,
        w_off: np.ndarray,
        v: np.ndarray,
        mean: np.ndarray,
        q: np.ndarray,
        q_off: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """By how much blocks of the derivative change, without V: parts of pairs (m, m), and C_i
        M^T (m,).
        """
        most = weight + change
        mean_off = (change * length + most * w_off).sum(axis=1) * UP
        v_off = (w_off + mean_off[:, None]) * UP
        D = change * (1.0 + v * q[:, None]) + most * (
            v_off * (q + q_off)[:, None] + v * q_off[:, None]
        )
        second = (change * length**2 + most * (2.0 * length + w_off) * w_off).sum(axis=1)
        own = self.M_norm * (second + (2.0 * mean + mean_off) * mean_off)
        return D * UP**2, own * UP**2

    def _moved(
        self, G: np.ndarray, J: np.ndarray, sizes: np.ndarray, is_kept: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """(G at the end of a piece; bounds of y (m,), y_k - y_l (m, m), what y' = J y leaves out
        (m,), rounding (m,)).

        J is a series about the middle in half lengths; with s = (u + 1) / 2 it is one about the
        start, in lengths.
        """
        J = np.stack([J[0] - J[1] + J[2], 2.0 * J[1] - 4.0 * J[2], 4.0 * J[2]])
        J_size = np.abs(J)
        terms, bounds, left_out = [G], [np.abs(G) @ sizes], np.zeros(len(G))
        for k in range(TERMS + 3):
            known = [b for b in range(3) if 0 <= k - b < len(terms)]
            bound = sum(J_size[b] @ bounds[k - b] for b in known)
            if k < TERMS:
                terms.append(sum(J[b] @ terms[k - b] for b in known) / (k + 1))
                bounds.append(bound / (k + 1))
            else:
                left_out = left_out + bound
        total = sum(bounds)
        rounding = 2.0**-50 * (len(G) + 10 * TERMS) * total
        during, left_out, rounding = (
            lengths(one.reshape(self.m, -1)) for one in (total, left_out, rounding)
        )
        leader = self.step.leader
        apart = (during[None, :] + during[leader][:, None]) * UP
        row, column = np.nonzero(is_kept)
        near = 2.0 * (rounding[column] + rounding[leader[row]])
        for term in terms:
            parts = term.reshape(self.m, self.d, -1)
            near = near + lengths(np.abs(parts[column] - parts[leader[row]]) @ sizes)
        apart[row, column] = np.minimum(apart[row, column], near * UP)
        apart[np.arange(self.m), leader] = 0.0
        return np.asarray(sum(terms)), during, apart, left_out, rounding


def enclose(G: np.ndarray, sizes: np.ndarray, E: np.ndarray) -> ErrorSet:
    """A set that holds G r + E for |r| <= sizes and tokens' parts |E_i| <= E, with a matrix that
    is nearly orthogonal.
    """
    count = len(G)
    scaled = G * sizes
    order = np.argsort(-(scaled**2).sum(axis=0), kind="stable")
    Q = np.linalg.qr(scaled[:, order])[0] if sizes.any() else np.eye(count)
    require(np.isfinite(Q), "The error set has no directions.")
    rounding = 2.0**-50 * count
    parts = lengths(Q.T.reshape(count, len(E), -1))
    found = (np.abs(Q.T @ G) + rounding * (np.abs(Q.T) @ np.abs(G))) @ sizes + parts @ E
    # (Q^T Q)^-1 is the identity up to off / (1 - off), in the norm of the largest row sum
    off = (
        float(
            (np.abs(Q.T @ Q - np.eye(count)) + rounding * (np.abs(Q.T) @ np.abs(Q)))
            .sum(axis=1)
            .max()
        )
        * UP
    )
    require(off < 0.01, "The directions of the error set are not independent.")
    return ErrorSet(Q, (found + off / (1.0 - off) * found.max()) * UP)
