"""The derivative of the velocity on each piece: a polynomial J(s) in the time, and a bound D of
what the true one differs.

Along v the derivative of f_i is V [sum_k P_ik v_k + sum_k P_ik (x_k - xbar_i) <M^T x_i, v_k> + C_i
M^T v_i], with C_i the covariance of the tokens under P_i. J has the first Taylor terms of this at
the middle of the piece, in doubles, for the pairs whose weight counts. D bounds the norm of each
block of the difference, for all times of the piece and all tokens within a tube of the polynomial.
What Taylor leaves out follows from a bound on a disc of complex times around the middle (Cauchy).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import NamedTuple

import numpy as np

from attnlab.limits.proof.comparison import Bounds
from attnlab.limits.proof.equation import UP, Equation
from attnlab.limits.proof.exponentials import exponential, upper
from attnlab.limits.proof.pairs import Pairs
from attnlab.limits.proof.ranges import Offs, Ranges

ORDER = 2
DISCS = (3.0, 6.0, 10.0)
"""Radii of discs of which the best is taken, in half lengths of a piece."""

COUNTS = 1e-9
"""Where the product of a weight with distances and scores is smaller, it is left out of J, and
charged in D.
"""

IN_DOUBLES = 1e-10
"""Charged for the rounding of J, relative to the sums of the moduli of its terms; at most 200
tokens are summed."""


@dataclass(frozen=True, eq=False)
class Linearised:
    """Taylor coefficients at the middle of each piece, in half lengths: of attention, where it
    counts, and of M^T p.
    """

    kept: np.ndarray  # indices of the pairs that count
    pairs: Pairs  # those
    rows: np.ndarray  # the rows that have one
    weight: np.ndarray  # (ORDER + 1, pieces, kept): P
    of_leader: np.ndarray  # (ORDER + 1, pieces, n)
    mean: np.ndarray  # (ORDER + 1, pieces, n, d): xbar_i - x_l
    w: np.ndarray  # (ORDER + 1, pieces, kept, d)
    q: np.ndarray  # (ORDER + 1, pieces, n, d)


def product(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Of two Taylor series along the first axis, up to ORDER."""
    return np.stack([sum(one[b] * other[a - b] for b in range(a + 1)) for a in range(ORDER + 1)])


def linearise(equation: Equation, ranges: Ranges, leader: np.ndarray) -> Linearised:
    """Attention and its first derivatives at the middle of each piece."""
    n, polynomials = len(leader), ranges.polynomials
    highest = equation.counts[ranges.pairs.column] * exponential(
        (ranges.score + ranges.on_piece.score).max(axis=0)
    )
    q_sums, w_sums = polynomials.q.on_step, polynomials.w.on_step
    kept = np.flatnonzero(highest * (1.0 + w_sums.size * q_sums.size[ranges.pairs.row]) > COUNTS)
    pairs = ranges.pairs.at(kept)
    middle = (np.arange(ranges.pieces) + 0.5) / ranges.pieces

    def series(value: np.ndarray) -> np.ndarray:
        """Taylor coefficients at the middles, in half lengths: (ORDER + 1, pieces, ...)."""
        k = np.arange(len(value))
        shifts = [
            np.array([comb(int(j), a) for j in k])
            * middle[:, None] ** np.maximum(k - a, 0)
            * ranges.half**a
            for a in range(ORDER + 1)
        ]
        return np.stack([np.tensordot(shift, value, axes=1) for shift in shifts])

    q, w, g = (
        series(value)
        for value in (
            polynomials.q.value,
            polynomials.w.value[:, kept],
            polynomials.g.value[:, kept],
        )
    )
    E = [equation.counts[pairs.column] * exponential(g[0])]
    for a in range(1, ORDER + 1):
        E.append(sum(b * g[b] * E[a - b] for b in range(1, a + 1)) / a)
    Z = np.stack([pairs.add_rows(one, n, 1) for one in E])
    Z[0] += equation.counts[leader]
    inverse = [1.0 / Z[0]]
    for a in range(1, ORDER + 1):
        inverse.append(-sum(Z[b] * inverse[a - b] for b in range(1, a + 1)) / Z[0])
    weight = product(np.stack(E), np.stack(inverse)[:, :, pairs.row])
    mean = np.stack([pairs.add_rows(one, n, 1) for one in product(weight[..., None], w)])
    return Linearised(
        kept,
        pairs,
        np.unique(pairs.row),
        weight,
        equation.counts[leader] * np.stack(inverse),
        mean,
        w,
        q,
    )


def jacobian(equation: Equation, found: Linearised, number: int, leader: np.ndarray) -> np.ndarray:
    """Taylor coefficients of J on one piece, only the rows that have pairs: (ORDER + 1, rows d, n
    d), per unit of time.
    """
    n, d, rows, pairs = len(leader), len(equation.V), found.rows, found.pairs
    place = np.zeros(n, dtype=int)
    place[rows] = np.arange(len(rows))
    at = place[pairs.row]
    weight, of_leader, mean = (
        found.weight[:, number],
        found.of_leader[:, number, rows],
        found.mean[:, number, rows],
    )
    w, q = found.w[:, number], found.q[:, number, rows]
    eye, index = np.eye(d), np.arange(len(rows))
    J = np.zeros((ORDER + 1, len(rows), n, d, d))
    pull = product(weight[..., None], w - mean[:, at])
    J[:, at, pairs.column] = weight[..., None, None] * eye + product(
        pull[..., :, None], q[:, at][..., None, :]
    )
    J[:, index, leader[rows]] += of_leader[..., None, None] * eye - product(
        product(of_leader[..., None], mean)[..., :, None], q[..., None, :]
    )
    moved = Pairs(at, pairs.column, pairs.leader)
    spread = product(product(weight[..., None], w)[..., :, None], w[..., None, :])
    second = np.stack([moved.add_rows(one, len(rows), 0) for one in spread]) - product(
        mean[..., :, None], mean[..., None, :]
    )
    J[:, index, rows] += second @ equation.M.T
    J = (equation.V @ J).transpose(0, 1, 3, 2, 4)
    return np.ascontiguousarray(J).reshape(ORDER + 1, len(rows) * d, n * d)


class Differences(NamedTuple):
    """Bounds of the true derivative minus J on every piece, per unit of s, without parts that
    cancel.

    The parts P_ik (I + (x_k - xbar_i) (M^T x_i)^T) of a row map equal v_k to their common value, in
    J and in the truth. So `apart` is about v_k - v_l, `own` about C_i M^T v_i, and only `rounding`
    about v_k itself.
    """

    apart: np.ndarray  # (pieces, n, n)
    own: np.ndarray  # (pieces, n)
    rounding: np.ndarray  # (pieces, n, n)

    def applied(self, sizes: np.ndarray, pairs: np.ndarray) -> np.ndarray:
        """A bound (pieces, n) for |v_k| <= sizes (pieces, n), |v_k - v_l| <= pairs (pieces, n,
        n).
        """
        of_all = np.einsum("pik,pk->pi", self.rounding, sizes)
        return np.asarray((self.apart * pairs).sum(axis=2) + self.own * sizes + of_all)


def differences(
    equation: Equation,
    ranges: Ranges,
    found: Linearised,
    h: float,
    leader: np.ndarray,
    bounds: Bounds,
) -> Differences:
    """The Differences for all tokens that keep the Bounds."""
    factor = equation.V_norm * h * UP**4
    with np.errstate(over="ignore", invalid="ignore"):
        discs = [_left_out(equation, ranges, found, leader, disc) for disc in DISCS]
        apart, own, rounding = (np.fmin.reduce(parts) for parts in zip(*discs, strict=True))
        more_apart, more_own = _within_tube(equation, ranges, found, leader, bounds)
        found_bounds = (apart + more_apart, own + more_own, rounding)
    return Differences(*(np.where(np.isnan(one), np.inf, one) * factor for one in found_bounds))


def _left_out(
    equation: Equation, ranges: Ranges, found: Linearised, leader: np.ndarray, disc: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What the Taylor polynomial leaves out, and its rounding: the parts of Differences, without
    V.
    """
    kept, pairs, n = found.kept, found.pairs, len(leader)
    radius = disc * ranges.half
    offs = ranges.offs(radius, 1.0 - ranges.half + radius)
    offs = Offs(
        *((off + disc * more) * UP for off, more in zip(offs, ranges.rounding, strict=True))
    )
    rounding = float(ranges.rounding.score[kept].max(initial=0.0)) * 20.0 + IN_DOUBLES
    weight, mean, w = found.weight[0], found.mean[0], found.w[0]
    change, of_leader = _changes(
        weight, found.of_leader[0], offs.score[:, kept], np.zeros(()), pairs, n
    )
    length = np.sqrt((w**2).sum(axis=2)) * UP
    v = np.sqrt(((w - mean[:, pairs.row]) ** 2).sum(axis=2)) * UP
    mean_size = np.sqrt((mean**2).sum(axis=2)) * UP
    q = np.sqrt((found.q[0] ** 2).sum(axis=2)) * UP
    apart, own = _blocks(
        equation,
        pairs,
        leader,
        (weight, change),
        (found.of_leader[0], of_leader),
        (length, offs.w[:, kept]),
        v,
        mean_size,
        (q, offs.q),
    )
    missed = disc ** -(ORDER + 1) / (1.0 - 1.0 / disc)
    q_sums, w_sums = ranges.polynomials.q.on_step, ranges.polynomials.w.on_step
    all_q, all_w = q_sums.size + q_sums.slope, (w_sums.size + w_sums.slope)[kept]
    plain, index = np.zeros_like(apart), np.arange(n)
    mean_sum = pairs.add_rows(weight * all_w, n, 1)
    plain[:, pairs.row, pairs.column] = weight * (
        1.0 + (all_w + mean_sum[:, pairs.row]) * all_q[pairs.row]
    )
    plain[:, index, leader] += 1.0 + mean_sum * all_q
    plain[:, index, index] += equation.M_norm * (
        pairs.add_rows(weight * all_w**2, n, 1) + mean_sum**2
    )
    plain += apart
    plain[:, index, index] += own
    return missed * apart, missed * own, rounding * plain


def _within_tube(
    equation: Equation,
    ranges: Ranges,
    found: Linearised,
    leader: np.ndarray,
    bounds: Bounds,
) -> tuple[np.ndarray, np.ndarray]:
    """By how much the derivative at the tokens differs from that of the kept pairs on the
    polynomial.
    """
    n, pairs = len(leader), ranges.pairs
    is_kept = np.zeros(len(pairs.row), dtype=bool)
    is_kept[found.kept] = True
    lost = pairs.add_rows(np.where(is_kept, 0.0, bounds.weight), n, 1) * UP  # in all
    weight = np.where(is_kept, bounds.weight, 0.0) / np.maximum(1.0 - lost[:, pairs.row], 1e-3) * UP
    of_leader = np.minimum(bounds.of_leader / np.maximum(1.0 - lost, 1e-3), 1.0) * UP
    change, leader_change = _changes(weight, of_leader, bounds.score_off, lost, pairs, n)
    change = np.where(is_kept, change, bounds.weight)
    q_sums = ranges.polynomials.q.on_step
    q, q_off = np.broadcast_to(q_sums.size, lost.shape), equation.M_norm * bounds.far * UP
    v = (bounds.reach + bounds.mean[:, pairs.row]) * UP
    apart, own = _blocks(
        equation,
        pairs,
        leader,
        (weight, change),
        (of_leader, leader_change),
        (bounds.reach, bounds.around),
        v,
        bounds.mean * UP,
        (q, q_off),
    )
    is_fine = np.all(lost < 0.5, axis=1)[:, None]
    return np.where(is_fine[:, None], apart, np.inf), np.where(is_fine, own, np.inf)


def _changes(
    weight: np.ndarray,
    of_leader: np.ndarray,
    off: np.ndarray,
    lost: np.ndarray,
    pairs: Pairs,
    n: int,
) -> tuple[np.ndarray, np.ndarray]:
    """By how much weights change, (pieces, pairs) and those of leaders (pieces, n), if scores
    change by `off` (complex too).
    """
    rise = np.where(off < 1.0, off * (1.0 + off), upper(off)) * UP  # e^x - 1 <= x + x^2 for x <= 1
    more = (
        (pairs.add_rows(weight * rise, n, 1) + lost) / np.maximum(1.0 - lost, 1e-3) * UP
    )  # of the sum, relative
    room = np.where(more < 0.9, 1.0 - more, np.nan)
    return (
        weight * (rise + more[:, pairs.row]) / room[:, pairs.row] * UP,
        of_leader * more / room * UP,
    )


def _blocks(
    equation: Equation,
    pairs: Pairs,
    leader: np.ndarray,
    weights: tuple,
    of_leaders: tuple,
    lengths: tuple,
    v: np.ndarray,
    mean: np.ndarray,
    qs: tuple,
) -> tuple[np.ndarray, np.ndarray]:
    """(apart, own) of Differences, without V; weights, lengths and qs come with what they change
    by.
    """
    (weight, change), (of_leader, leader_change), (length, w_off), (q, q_off) = (
        weights,
        of_leaders,
        lengths,
        qs,
    )
    n, row = len(leader), pairs.row
    most, index = weight + change, np.arange(n)
    mean_off = pairs.add_rows(change * length + most * w_off, n, 1) * UP
    v_off = (w_off + mean_off[:, row]) * UP
    D = np.zeros((len(weight), n, n))
    D[:, row, pairs.column] = change * (1.0 + v * q[:, row]) + most * (
        v_off * (q + q_off)[:, row] + v * q_off[:, row]
    )
    D[:, index, leader] += leader_change * (1.0 + mean * q) + (of_leader + leader_change) * (
        mean_off * (q + q_off) + mean * q_off
    )
    second = pairs.add_rows(change * length**2 + most * (2.0 * length + w_off) * w_off, n, 1)
    own = equation.M_norm * (second + (2.0 * mean + mean_off) * mean_off)
    return D * UP, own * UP
