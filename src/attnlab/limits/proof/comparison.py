"""How far the true tokens are from the polynomial: e' <= A e + defect, where A >= 0 is a matrix over tokens.

A step is cut into pieces. On a piece, A is bounded over all tokens within a radius of the polynomial. If the radius r satisfies
e + length (A r + defect) < r, the true tokens stay inside; then e grows at most to
e + length (defect + A (e + length / 2 (A r + defect))). The derivation is in docs/limits.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attnlab.limits.proof.equation import UP, Equation, NotProved
from attnlab.limits.proof.expansion import Pairs
from attnlab.limits.proof.exponentials import lower, upper

MOST_PIECES = 512
CHANGE = 0.15
"""A score may change by about this much in a piece."""

GROWTH = 0.2
"""The largest row sum of A times the length of a piece."""

ROOM = 1.02
"""The radius of a piece above what it must be, and above rounding."""


@dataclass(frozen=True, eq=False)
class Sizes:
    """Sums of the norms of coefficients, without factor, times k and times k (k - 1): bounds of p, p', p'' over the step."""

    of_q: tuple[np.ndarray, np.ndarray, np.ndarray]         # of M^T p_i, (n,)
    of_w: tuple[np.ndarray, np.ndarray, np.ndarray]         # of p_j - p_l, (pairs,)


def measure(equation: Equation, c: np.ndarray, pairs: Pairs) -> tuple[Sizes, np.ndarray, np.ndarray]:
    """The Sizes, and the coefficients of M^T p and of p_j - p_l."""
    order = np.arange(len(c), dtype=float)
    q, w = c @ equation.M, c[:, pairs.column] - c[:, pairs.leader]
    q_norm = np.sqrt(((np.abs(c) @ equation.M_size) ** 2).sum(axis=2)) * UP
    w_norm = np.sqrt((w**2).sum(axis=2)) * UP

    def sums(norm: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return norm.sum(axis=0) * UP, order @ norm * UP, (order * (order - 1.0)) @ norm * UP

    return Sizes(sums(q_norm), sums(w_norm)), q, w


@dataclass(frozen=True, eq=False)
class Ranges:
    """What is known on each piece about pairs of tokens on the polynomial; `pieces` many, of equal length."""

    pieces: int
    sizes: Sizes
    score: np.ndarray               # (pieces, pairs): g at the middle
    score_off: np.ndarray           # (pieces, pairs): by how much it changes, and rounding
    reach: np.ndarray               # (pieces, pairs): the largest |p_j - p_l|


def find_ranges(equation: Equation, c: np.ndarray, pairs: Pairs, sizes: Sizes, q: np.ndarray, w: np.ndarray, pieces: int
                ) -> Ranges:
    """The Ranges on so many pieces."""
    order = np.arange(len(c))
    middle = (np.arange(pieces) + 0.5) / pieces
    half = 0.5 / pieces
    powers = middle[:, None] ** order
    slopes = np.where(order > 0, order * middle[:, None] ** np.maximum(order - 1, 0), 0.0)
    at = [np.tensordot(matrix, array, axes=1) for array in (q, w) for matrix in (powers, slopes)]
    q0, q1, w0, w1 = at[0][:, pairs.row], at[1][:, pairs.row], at[2], at[3]
    q_sizes, (w_size, w_slope, w_bend) = [size[pairs.row] for size in sizes.of_q], sizes.of_w
    bend = q_sizes[2] * w_size + 2.0 * q_sizes[1] * w_slope + q_sizes[0] * w_bend
    score = (q0 * w0).sum(axis=2)
    slope = np.abs((q1 * w0).sum(axis=2) + (q0 * w1).sum(axis=2))
    rounding = 1e-13 * (q_sizes[0] + q_sizes[1]) * (w_size + w_slope)
    rounding += np.sqrt((equation.M_error**2).sum()) * np.sqrt((np.abs(c) ** 2).sum(axis=2)).sum(axis=0)[pairs.row] * w_size
    score_off = (half * slope + 0.5 * half**2 * bend + rounding) * UP
    reach = (np.sqrt((w0**2).sum(axis=2)) + half * np.sqrt((w1**2).sum(axis=2)) + 0.5 * half**2 * w_bend
             + 1e-13 * (w_size + w_slope)) * UP
    return Ranges(pieces, sizes, score, score_off, reach)


def choose_pieces(equation: Equation, h: float, sizes: Sizes, q: np.ndarray, w: np.ndarray, pairs: Pairs) -> int:
    """About how many pieces a step needs: a guess."""
    order, at = np.arange(len(q)), np.linspace(0.0, 1.0, 9)
    powers = at[:, None] ** order
    row = np.tensordot(powers, q, axes=1)[:, pairs.row]
    score = (row * np.tensordot(powers, w, axes=1)).sum(axis=2)
    is_close = (score > -30.0).any(axis=0)
    change = np.abs(np.diff(score[:, is_close], axis=0)).max(initial=0.0) * 8.0
    return int(np.clip(np.ceil(max(change / (2.0 * CHANGE), h * equation.V_norm / GROWTH)), 1, MOST_PIECES))


def comparison_matrices(equation: Equation, ranges: Ranges, h: float, leader: np.ndarray, pairs: Pairs, tube: np.ndarray
                        ) -> np.ndarray:
    """A on every piece, (pieces, n, n), per unit of s, for all tokens within `tube` (n,) of the polynomial."""
    n = len(leader)
    row, column = pairs.row, pairs.column
    q_size, w_size = ranges.sizes.of_q[0], ranges.sizes.of_w[0]
    around = tube[column] + tube[pairs.leader]
    off = ranges.score_off + (q_size[row] * around + equation.M_norm * tube[row] * (w_size + around)) * UP
    counts, of_leader = equation.counts[column], equation.counts[leader]
    most, least = counts * upper(ranges.score + off) * UP, counts * lower(ranges.score - off) / UP
    least_sum = pairs.add_rows(least, n, 1) / UP
    rest = np.maximum(least_sum[:, row] - least * UP, 0.0) / UP
    with np.errstate(invalid="ignore"):
        weight = np.where(np.isinf(most), 1.0, np.minimum(most / (of_leader[row] + most + rest) * UP, 1.0))
    of_leader_weight = np.minimum(of_leader / (of_leader + least_sum) * UP, 1.0)
    reach = (ranges.reach + around) * UP
    mean = pairs.add_rows(weight * reach, n, 1) * UP                    # |xbar_i - x_l|
    size = q_size + equation.M_norm * tube * UP                         # |M^T x_i|
    A = np.zeros((ranges.pieces, n, n))
    A[:, row, column] = weight * (1.0 + (reach + mean[:, row]) * size[row])
    index = np.arange(n)
    A[:, index, leader] += of_leader_weight * (1.0 + mean * size)
    A[:, index, index] += equation.M_norm * pairs.add_rows(weight * reach**2, n, 1)
    return A * (equation.V_norm * h * UP)


def propagate(A: np.ndarray, defect: np.ndarray, e: np.ndarray, tube: np.ndarray) -> np.ndarray | None:
    """The bound of |x - p| at the end of a step, if the true tokens stay within `tube`; else None. defect: per unit of s."""
    length = 1.0 / len(A)
    for piece in A:
        radius = ROOM * (e + length * defect)
        for _ in range(40):                                             # towards the fixed point; what counts is checked below
            radius, before = ROOM * (e + length * (piece @ radius + defect)), radius
            if (radius <= before * 1.001).all():
                break
        slope = (piece @ radius + defect) * UP
        if not ((e + length * slope) * UP < radius).all() or not (radius <= tube).all():
            return None
        e = (e + length * (defect + piece @ (e + 0.5 * length * slope))) * UP
    return e


def follow_error(equation: Equation, ranges: Ranges, h: float, leader: np.ndarray, pairs: Pairs, defect: np.ndarray, e: np.ndarray
                 ) -> tuple[np.ndarray, np.ndarray]:
    """(the bound at the end of the step, the tube within which it holds), both (n,); or NotProved."""
    tube = 4.0 * (e + h * defect) + 1e-300
    for _ in range(6):
        A = comparison_matrices(equation, ranges, h, leader, pairs, tube)
        with np.errstate(over="ignore", invalid="ignore"):
            found = propagate(A, h * defect * UP, e, tube)
        if found is not None:
            return found, tube
        spread = float((tube / np.maximum(e + h * defect, 1e-300)).max())
        tube = np.maximum(4.0 * tube, 1e-3 * spread * float((e + h * defect).max()) / max(spread, 1.0))
    raise NotProved("the error bound does not stay inside its tube")


def pieces_for(equation: Equation, ranges: Ranges, h: float, leader: np.ndarray, pairs: Pairs, e: np.ndarray) -> int:
    """How many pieces keep the row sums of A times their length below GROWTH: a guess."""
    A = comparison_matrices(equation, ranges, h, leader, pairs, 2.0 * e)
    return int(np.clip(np.ceil(float(A.sum(axis=2).max()) / GROWTH), ranges.pieces, MOST_PIECES))
