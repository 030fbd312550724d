"""A row changes its leader: what happens to the offsets, and what softmax adds to the hardmax path
in doing so.

At a switch of row i from A to B let a and b be the speeds at which the gap x_i^T M (x_A - x_B)
closes just before and opens just after. With two candidates the weight is a logistic function of
the gap, whose speed is affine in the weight, so the transition has a closed form: relative to the
hardmax path x_i jumps by V (x_A - x_B) ln(a/b) / a. It lasts about tau = 1/a + 1/b. The formula is
for one row; where transitions of rows that depend on each other overlap, the whole width is charged
as error instead.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from attnlab.limits.frozen import Frozen

OVERLAP = 40.0
"""Transitions closer than this many widths are not independent."""


class Undecidable(Exception):
    """The event-driven flow cannot go on. `kind` in one word, `row` and `column` where it
    stands.
    """

    def __init__(self, kind: str, row: int = -1, column: int = -1):
        super().__init__(kind)
        self.kind, self.row, self.column = kind, row, column


@dataclass(frozen=True)
class Switch:
    """One change of leader, with the width of its transition and the part of it that the formula
    may not cover.
    """

    t: float
    row: int
    before: int
    after: int
    width: float
    charge: np.ndarray  # (d,): of x_i, in units of 2^shift
    shift: int = 0


def opening_speed(frozen: Frozen, i: int, k: int) -> float:
    """d/dt of x_i^T M (x_leader(i) - x_k), in the units of what is stored: 2^-2shift of the true
    ones, which may overflow.
    """
    l, M, rates = int(frozen.leader[i]), frozen.problem.M, frozen.problem.rates
    x = frozen.positions()
    drift = rates * frozen.apart(int(frozen.leader[l]), int(frozen.leader[k]))
    speed = (rates * x[l]) @ M @ frozen.apart(l, k) + x[i] @ M @ drift
    return float(speed.real)


def excess_time(a: float, b: float) -> float:
    """The integral of softmax weight minus hardmax weight of the leader that is left: ln(a/b) /
    a.
    """
    return math.log(a / b) / a


def switch(frozen: Frozen, i: int, k: int, recent: list[Switch]) -> Switch:
    """Row i listens to k from now on. Changes `frozen`, and the errors of `recent` switches that
    overlap; or Undecidable.
    """
    before = int(frozen.leader[i])
    a = -opening_speed(frozen, i, k)
    subtree = frozen.subtree(i)
    if k != i and subtree[k]:
        raise Undecidable("cycle", i, k)
    apart = frozen.apart(before, k)  # x_A - x_B, stored units
    frozen.leader[i] = k
    b = opening_speed(frozen, i, before)
    if not (a > 0.0 and b > 0.0):
        frozen.leader[i] = before
        raise Undecidable("slide", i, k)
    rates = frozen.problem.rates
    width = math.ldexp(1.0 / a + 1.0 / b, -2 * frozen.shift)
    jump = rates * apart * math.ldexp(excess_time(a, b), -2 * frozen.shift)
    charge = np.abs(rates * apart) * width
    error = charge * (10.0 * frozen.problem.clock * width) + _third_candidates(
        frozen, i, before, k, width
    )
    move(frozen, i, k, subtree)
    event = Switch(
        frozen.t, i, before, k, width, charge * (1.5 + abs(math.log(a / b))), frozen.shift
    )
    for other in recent:
        rows = {i, before, k} & {other.row, other.before, other.after}
        if rows and abs(event.t - other.t) < OVERLAP * (event.width + other.width):
            error = np.maximum(error, event.charge)
            _add_error(frozen, other.row, np.ldexp(other.charge, other.shift - frozen.shift))
    if k == i:
        frozen.E[i] = frozen.E[i] + jump
        others = subtree & (
            np.arange(frozen.n) != i
        )  # they stay where they are, and are counted from i now
        frozen.D[others] = frozen.D[others] - jump
    else:
        frozen.D[i] = frozen.D[i] + jump
    _add_error(frozen, i, error)
    return event


def _add_error(frozen: Frozen, i: int, error: np.ndarray) -> None:
    target = frozen.E_error if frozen.root[i] == i else frozen.D_error
    target[i] = target[i] + error


def _third_candidates(frozen: Frozen, i: int, before: int, after: int, width: float) -> np.ndarray:
    """What tokens almost as good as the two may add: their weight, at most e^{-gap / 2}, for the
    time the switch takes.
    """
    apart = frozen.apart_from(before)  # x_A - x_j, (n, d)
    with np.errstate(over="ignore"):
        gap = np.ldexp((apart @ (frozen.positions()[i] @ frozen.problem.M)).real, 2 * frozen.shift)
    is_near = frozen.is_alive & (gap < 100.0)
    is_near[[before, after]] = False
    if frozen.problem.dynamics.mask.is_causal:
        is_near[i + 1 :] = False
    weight = np.exp(-np.maximum(gap[is_near], 0.0) / 2.0)
    return width * (weight @ np.abs(frozen.problem.rates * apart[is_near]))


def move(frozen: Frozen, i: int, k: int, subtree: np.ndarray) -> None:
    """Roots, references and offsets of i and of those that follow it, after leader[i] = k."""
    r, q = int(frozen.root[i]), int(frozen.root[k])
    if k == i:
        offset, error = frozen.D[i].copy(), frozen.D_error[i].copy()
        frozen.E[i] = frozen.E[r] + offset
        frozen.E_error[i] = frozen.E_error[r] + error
        frozen.base[i] = frozen.base[r]
        frozen.D[subtree] = frozen.D[subtree] - offset
        frozen.D_error[subtree] = frozen.D_error[subtree] + error
        frozen.D[i], frozen.D_error[i] = 0.0, 0.0
        frozen.root[subtree] = i
    elif r != q:
        offset, error = frozen.roots_apart(r, q)
        frozen.D[subtree] = frozen.D[subtree] + offset
        frozen.D_error[subtree] = frozen.D_error[subtree] + error
        frozen.root[subtree] = q
