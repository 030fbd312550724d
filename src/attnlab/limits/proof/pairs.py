"""Pairs of a row and a token that it sees."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from attnlab.limits.proof.equation import Equation


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
        found = np.zeros((n, *values.shape[1:]), dtype=values.dtype)
        if len(self.row):
            begins = np.flatnonzero(np.concatenate([[True], np.diff(self.row) > 0]))
            found[self.row[begins]] = np.add.reduceat(values, begins, axis=0)
        return np.moveaxis(found, 0, axis)


def all_pairs(equation: Equation, leader: np.ndarray) -> Pairs:
    """Every row with every column that it sees, without its leader."""
    others = equation.seen.copy()
    others[np.arange(len(leader)), leader] = False
    row, column = np.nonzero(others)
    return Pairs(row, column, leader[row])
