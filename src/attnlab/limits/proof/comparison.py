"""How fast a difference to the polynomial can grow: |E|' <= A |E| + defect, where A >= 0 is a
matrix over tokens.

On a piece, A is bounded over all tokens within a tube of the polynomial. If the radius r satisfies
E + length (A r + defect) < r, the difference stays inside; then it grows at most to
E + length (defect + A (E + length / 2 (A r + defect))). The derivation is in docs/limits.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from attnlab.limits.proof.equation import UP, Equation
from attnlab.limits.proof.exponentials import lower, upper
from attnlab.limits.proof.ranges import Ranges

ROOM = 1.02
"""The radius of a piece above what it must be, and above rounding."""


class Bounds(NamedTuple):
    """What holds on each piece for all tokens within a tube of the polynomial; weights are without
    the row's leader.
    """

    weight: np.ndarray  # (pieces, pairs): the largest P
    of_leader: np.ndarray  # (pieces, n): the largest P of the leader
    reach: np.ndarray  # (pieces, pairs): the largest |x_j - x_l|
    mean: np.ndarray  # (pieces, n): the largest |xbar_i - x_l|
    size: np.ndarray  # (pieces, n): the largest |M^T x_i|
    score_off: np.ndarray  # (pieces, pairs): of a score, from that on the polynomial at this time
    around: np.ndarray  # (pieces, pairs): of x_j - x_l, in the same way
    far: np.ndarray  # (pieces, n): of x_i


def find_bounds(
    equation: Equation, ranges: Ranges, leader: np.ndarray, far: np.ndarray, around: np.ndarray
) -> Bounds:
    """The Bounds if tokens are within far (pieces, n) of p, and x_j - x_l within around of p_j -
    p_l.
    """
    n, pairs = len(leader), ranges.pairs
    row, column = pairs.row, pairs.column
    q_sums, w_sums = ranges.polynomials.q.on_step, ranges.polynomials.w.on_step
    tube_score = (
        q_sums.size[row] * around + equation.M_norm * far[:, row] * (w_sums.size + around)
    ) * UP
    off = ranges.on_piece.score + tube_score
    counts, of_leader = equation.counts[column], equation.counts[leader]
    most, least = counts * upper(ranges.score + off) * UP, counts * lower(ranges.score - off) / UP
    least_sum = pairs.add_rows(least, n, 1) / UP
    rest = np.maximum(least_sum[:, row] - least * UP, 0.0) / UP
    with np.errstate(invalid="ignore"):
        weight = np.where(
            np.isinf(most), 1.0, np.minimum(most / (of_leader[row] + most + rest) * UP, 1.0)
        )
    of_leader_weight = np.minimum(of_leader / (of_leader + least_sum) * UP, 1.0)
    reach = (ranges.reach + around) * UP
    mean = pairs.add_rows(weight * reach, n, 1) * UP
    return Bounds(
        weight,
        of_leader_weight,
        reach,
        mean,
        (q_sums.size + equation.M_norm * far) * UP,
        tube_score,
        around,
        far,
    )


def comparison_matrices(
    equation: Equation, ranges: Ranges, h: float, leader: np.ndarray, bounds: Bounds
) -> np.ndarray:
    """A on every piece, (pieces, n, n), per unit of s."""
    n, pairs = len(leader), ranges.pairs
    index, row = np.arange(n), pairs.row
    A = np.zeros((ranges.pieces, n, n))
    A[:, row, pairs.column] = bounds.weight * (
        1.0 + (bounds.reach + bounds.mean[:, row]) * bounds.size[:, row]
    )
    A[:, index, leader] += bounds.of_leader * (1.0 + bounds.mean * bounds.size)
    A[:, index, index] += equation.M_norm * pairs.add_rows(bounds.weight * bounds.reach**2, n, 1)
    return A * (equation.V_norm * h * UP)


def propagate(
    A: np.ndarray, defect: np.ndarray, start: np.ndarray, jumps: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """(the bound of |E| (n,) at the end of a step, the largest radius on it (n,)); None if none is
    found.

    A (pieces, n, n) and defect (pieces, n) are per unit of s; jumps (pieces, n) are added at the
    end of each piece.
    """
    length, E, largest = 1.0 / len(A), start, start
    for piece, made, jump in zip(A, defect, jumps, strict=True):
        radius = ROOM * (E + length * made)
        for _ in range(40):  # towards the fixed point; what counts is checked below
            radius, before = ROOM * (E + length * (piece @ radius + made)), radius
            if (radius <= before * 1.001).all():
                break
        slope = (piece @ radius + made) * UP
        if not ((E + length * slope) * UP < radius).all():
            return None
        largest = np.maximum(largest, radius)
        E = ((E + length * (made + piece @ (E + 0.5 * length * slope))) + jump) * UP
    return E, largest
