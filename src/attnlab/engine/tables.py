"""The coefficients of the steppers, all in one form: every stage is the same line, y + h sum_l A[s, l] K[l].

Rows 0 to 11 of A (16, 16) are the stages, row 12 is the step itself, rows 13 to 15 are the extra stages of the dense output.
`adaptive` is Dormand and Prince's method of order 8(5,3) with dense output of order 7, from SciPy's published tables.
"""

from __future__ import annotations

import contextlib
import io
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from attnlab.engine.compile import cache_folder
from attnlab.files import with_digest, without_digest, write_bytes

STEP = 12
"""The row of A that is the step itself, and the place in K of the velocity at its end."""


class Table(NamedTuple):
    """One stepper."""

    stages: int
    A: np.ndarray           # (16, 16)
    c: np.ndarray           # (16,)
    errors: np.ndarray      # (3, 16): the weights of the error estimates of order 5 and 3, and of the last stage minus the step
    dense: np.ndarray       # (4, 16)
    is_adaptive: int
    is_cubic: int           # between fixed steps: cubic Hermite, else a straight line


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
    A, c, errors, dense = _adaptive()
    return Table(STEP, A, c, errors, dense, 1, 0)


def _adaptive() -> list[np.ndarray]:
    """(A, c, errors, dense) from SciPy; kept beside the compiled code, because importing scipy.integrate takes up to 0.4 s."""
    shapes, kept = [(16, 16), (16,), (3, 16), (4, 16)], Path(cache_folder()) / "dormand_prince_853.npy"
    try:
        flat = np.load(io.BytesIO(without_digest(kept.read_bytes())), allow_pickle=False)
        parts = np.split(flat, np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1])
        return [part.reshape(shape).copy() for part, shape in zip(parts, shapes, strict=True)]
    except (OSError, ValueError, EOFError):
        pass
    from scipy.integrate import DOP853

    A, c, errors, dense = map(np.zeros, shapes)
    A[:STEP, :STEP], A[STEP, :STEP], A[STEP + 1 :] = DOP853.A, DOP853.B, DOP853.A_EXTRA
    c[:STEP], c[STEP], c[STEP + 1 :] = DOP853.C, 1.0, DOP853.C_EXTRA
    errors[0, : STEP + 1], errors[1, : STEP + 1] = DOP853.E5, DOP853.E3
    errors[2, :STEP] = A[STEP - 1, :STEP] - A[STEP, :STEP]
    dense[:, :] = DOP853.D
    flat = np.concatenate([part.ravel() for part in (A, c, errors, dense)])
    content = io.BytesIO()
    np.save(content, flat, allow_pickle=False)
    with contextlib.suppress(OSError):
        write_bytes(kept, with_digest(content.getvalue()))
    return [A, c, errors, dense]
