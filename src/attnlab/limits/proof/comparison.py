"""How fast a difference to the polynomial can grow: |E|' <= A |E| + defect, where A >= 0 is a matrix over tokens.

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
    """What holds on each piece for all tokens within a tube of the polynomial; weights are without the row's leader."""

    weight: np.ndarray  # (pieces, pairs): the largest P
    of_leader: np.ndarray  # (pieces, n): the largest P of the leader
    reach: np.ndarray  # (pieces, pairs): the largest |x_j - x_l|
    mean: np.ndarray  # (pieces, n): the largest |xbar_i - x_l|
    size: np.ndarray  # (n,): the largest |M^T x_i|
    tube_score: (
        np.ndarray
    )  # (pairs,): by how much a score differs from that on the polynomial at the same time
    tube_reach: np.ndarray  # (pairs,)


def find_bounds(equation: Equation, ranges: Ranges, leader: np.ndarray, tube: np.ndarray) -> Bounds:
    """The Bounds for all tokens within `tube` (n,) of the polynomial."""
    n, pairs = len(leader), ranges.pairs
    row, column = pairs.row, pairs.column
    q_sums, w_sums = ranges.polynomials.on_step
    around = (tube[column] + tube[pairs.leader]) * UP
    tube_score = (
        q_sums.size[row] * around + equation.M_norm * tube[row] * (w_sums.size + around)
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
        (q_sums.size + equation.M_norm * tube) * UP,
        tube_score,
        around,
    )


def comparison_matrices(
    equation: Equation, ranges: Ranges, h: float, leader: np.ndarray, bounds: Bounds
) -> np.ndarray:
    """A on every piece, (pieces, n, n), per unit of s."""
    n, pairs = len(leader), ranges.pairs
    index, row = np.arange(n), pairs.row
    A = np.zeros((ranges.pieces, n, n))
    A[:, row, pairs.column] = bounds.weight * (
        1.0 + (bounds.reach + bounds.mean[:, row]) * bounds.size[row]
    )
    A[:, index, leader] += bounds.of_leader * (1.0 + bounds.mean * bounds.size)
    A[:, index, index] += equation.M_norm * pairs.add_rows(bounds.weight * bounds.reach**2, n, 1)
    return A * (equation.V_norm * h * UP)


def propagate(
    A: np.ndarray,
    defect: np.ndarray,
    start: np.ndarray,
    room: np.ndarray,
    jumps: np.ndarray | None = None,
) -> np.ndarray | None:
    """The bound of |E| (n,) at the end of a step, if it stays below `room` (pieces, n); else None.

    A (pieces, n, n) and defect (pieces, n) are per unit of s; jumps (pieces, n) are added at the end of each piece.
    """
    length, E = 1.0 / len(A), start
    for number, piece in enumerate(A):
        radius = ROOM * (E + length * defect[number])
        for _ in range(40):  # towards the fixed point; what counts is checked below
            radius, before = ROOM * (E + length * (piece @ radius + defect[number])), radius
            if (radius <= before * 1.001).all():
                break
        slope = (piece @ radius + defect[number]) * UP
        if not ((E + length * slope) * UP < radius).all() or not (radius <= room[number]).all():
            return None
        E = (E + length * (defect[number] + piece @ (E + 0.5 * length * slope))) * UP
        if jumps is not None:
            E = (E + jumps[number]) * UP
    return E
