"""The coefficients of the steppers in one form: every stage is y + h sum_l A[s, l] K[l].

Rows 0 to 11 of A (16, 16) are the stages, row 12 is the step itself, rows 13 to 15 are the extra
stages of the dense output. `adaptive` is Dormand and Prince's method of order 8(5,3) with dense
output of order 7 (dormand_prince.py).
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from attnlab.engine import dormand_prince

STEP = 12
"""The row of A that is the step itself, and the place in K of the velocity at its end."""


class Table(NamedTuple):
    """One stepper."""

    stages: int
    A: np.ndarray  # (16, 16)
    c: np.ndarray  # (16,)
    # (3, 16): the weights of the error estimates of order 5 and 3, and of the last stage minus the
    # step
    errors: np.ndarray
    dense: np.ndarray  # (4, 16)
    is_adaptive: int
    is_cubic: int  # between fixed steps: cubic Hermite, else a straight line


@cache
def table(stepper: str) -> Table:
    """The coefficients of "adaptive", "euler" or "rk4"."""
    A, c, errors, dense = np.zeros((16, 16)), np.zeros(16), np.zeros((3, 16)), np.zeros((4, 16))
    c[STEP] = 1.0
    if stepper == "euler":
        A[STEP, 0] = 1.0
        return Table(1, A, c, errors, dense, 0, 0)
    if stepper == "rk4":
        A[1, 0], A[2, 1], A[3, 2] = 0.5, 0.5, 1.0
        A[STEP, :4] = np.array([1.0, 2.0, 2.0, 1.0]) / 6.0
        c[1:4] = 0.5, 0.5, 1.0
        return Table(4, A, c, errors, dense, 0, 1)
    for stage, row in enumerate(dormand_prince.A):
        A[stage, : len(row)] = row
    c[:], dense[:] = dormand_prince.C, dormand_prince.D
    errors[0, : STEP + 1], errors[1, : STEP + 1] = dormand_prince.E5, dormand_prince.E3
    errors[2, :STEP] = A[STEP - 1, :STEP] - A[STEP, :STEP]
    return Table(STEP, A, c, errors, dense, 1, 0)
