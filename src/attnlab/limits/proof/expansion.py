"""The Taylor polynomial of a step, in plain doubles. Nothing rests on it: `defect` says by how much
it is wrong.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from attnlab.limits.proof.equation import Equation
from attnlab.limits.proof.exponentials import exponential

ORDER = 24
SMALLEST = 1e-17
"""The last coefficient of a step, relative to the token."""

STEEPEST = 0.4
"""An exponent may change by this part of ORDER in a step: beyond, small last coefficients say
nothing.
"""


class Pairs(NamedTuple):
    """Pairs (row, column) in order of rows; leader is that of the row. None of the columns is the
    leader.
    """

    row: np.ndarray
    column: np.ndarray
    leader: np.ndarray

    def at(self, chosen: np.ndarray) -> Pairs:
        """Some of the pairs."""
        return Pairs(self.row[chosen], self.column[chosen], self.leader[chosen])

    def add_rows(self, values: np.ndarray, n: int, axis: int) -> np.ndarray:
        """Sums over the pairs of each of n rows, along an axis; a row without pairs has 0."""
        values = np.moveaxis(values, axis, 0)
        found = np.zeros((n, *values.shape[1:]))
        if len(self.row):
            begins = np.flatnonzero(np.concatenate([[True], np.diff(self.row) > 0]))
            found[self.row[begins]] = np.add.reduceat(values, begins, axis=0)
        return np.moveaxis(found, 0, axis)


def choose_leaders(equation: Equation, x: np.ndarray) -> np.ndarray:
    """The token with the largest score in each row, (n,)."""
    scores = np.where(equation.seen, x @ equation.M @ x.T, -np.inf)
    return scores.argmax(axis=1)


def all_pairs(equation: Equation, leader: np.ndarray) -> Pairs:
    """Every row with every column that it sees, without its leader."""
    others = equation.seen.copy()
    others[np.arange(len(leader)), leader] = False
    row, column = np.nonzero(others)
    return Pairs(row, column, leader[row])


def expand(
    equation: Equation, x: np.ndarray, leader: np.ndarray, pairs: Pairs, h: float
) -> tuple[np.ndarray, float]:
    """Coefficients (ORDER + 1, n, d) of p(s), 0 <= s <= 1, x(t + s h) = p(s), and the step h that
    they are for.
    """
    n, d = x.shape
    m = len(pairs.row)
    c, y = np.zeros((ORDER + 1, n, d)), np.zeros((ORDER, n, d))
    q, w = np.zeros((ORDER, m, d)), np.zeros((ORDER, m, d))
    g, E, Z = np.zeros((ORDER, m)), np.zeros((ORDER, m)), np.zeros((ORDER, n))
    c[0] = x
    for k in range(ORDER):
        q[k] = (c[k] @ equation.M)[pairs.row]
        w[k] = c[k][pairs.column] - c[k][pairs.leader]
        g[k] = np.einsum("amd,amd->m", q[: k + 1], w[k::-1])
        if k == 0:
            E[0] = equation.counts[pairs.column] * exponential(g[0])
        else:
            E[k] = np.einsum("a,am,am->m", np.arange(1.0, k + 1), g[1 : k + 1], E[k - 1 :: -1]) / k
        Z[k] = pairs.add_rows(E[k], n, 0)
        if k == 0:
            Z[0] += equation.counts[leader]
        y[k] = pairs.add_rows(np.einsum("am,amd->md", E[: k + 1], w[k::-1]), n, 0)
        if k:
            y[k] -= np.einsum("an,and->nd", Z[1 : k + 1], y[k - 1 :: -1])
        y[k] /= Z[0][:, None]
        c[k + 1] = h / (k + 1) * ((c[k][leader] + y[k]) @ equation.V.T)
    size = np.sqrt((c**2).sum(axis=2))
    scale = np.maximum(size[0], 1e-3 * float(size[0].max()))
    with np.errstate(divide="ignore"):
        factors = [(SMALLEST * scale / size[k]) ** (1.0 / k) for k in (ORDER - 1, ORDER)]
    factor = min(float(np.min(factors)), 4.0)
    steepest = float(np.abs(g[1]).max(initial=0.0))
    if steepest > 0.0:
        factor = min(factor, STEEPEST * ORDER / steepest)
    if not 0.0 < factor < np.inf:
        factor = 0.25
    return c * (factor ** np.arange(ORDER + 1.0))[:, None, None], h * factor
