"""The matrices of a layer from the user's input: numbers, one matrix, one per head, or factors of
V.
"""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from attnlab.checks import real_array


def complete_matrices(Q: Any, K: Any, V: Any) -> tuple[np.ndarray, np.ndarray, Any]:
    """Return Q, K (h, k, d) and V (h, d, d), or V as factors (B (h, d, r), C (h, r, d)); or raise a
    ValueError.

    A number is a matrix of one row and one column. A matrix that is given once belongs to all
    heads. Q and K that are None are the identity.
    """
    if V is None:
        raise ValueError(
            "Weights needs V: a (d, d) array, (h, d, d) for several heads, or a pair of factors"
            " (B, C)."
        )
    if isinstance(V, tuple):
        if len(V) != 2:
            raise ValueError(
                f"V as factors must be a pair (B, C) with V = B C, got {len(V)} items."
            )
        values = [_matrices(f"V[{i}]", part) for i, part in enumerate(V)]
        d = _check_factors(*values)
    else:
        values = [_matrices("V", V)]
        d = values[0].shape[1]
        if values[0].shape[2] != d:
            raise ValueError(f"V must be square, (d, d) or (h, d, d), got shape {values[0].shape}.")
    scores = [
        _matrices(name, np.eye(d) if part is None else part) for name, part in (("Q", Q), ("K", K))
    ]
    if scores[0].shape[1:] != scores[1].shape[1:]:
        raise ValueError(
            "Q and K must have the same shape (k, d) or (h, k, d), "
            f"got {scores[0].shape} and {scores[1].shape}.{_advise(d, Q, K)}"
        )
    if scores[0].shape[2] != d:
        raise ValueError(
            f"Q and K must act on the same dimension as V: Q has d = {scores[0].shape[2]}, V has d"
            f" = {d}.{_advise(d, Q, K)}"
        )
    queries, keys, *values = _spread(
        ("Q", "K", *(("B", "C") if len(values) == 2 else ("V",))), [*scores, *values]
    )
    return queries, keys, values[0] if len(values) == 1 else tuple(values)


def _matrices(name: str, value: Any) -> np.ndarray:
    """Return `value` with a head axis (h, rows, columns). A number is a matrix of one row and one
    column.
    """
    array = real_array(name, [[value]] if _is_number(value) else value, (2, 3))
    return array[None] if array.ndim == 2 else array


def _is_number(value: Any) -> bool:
    """Whether `value` is a real number: neither true nor false, nor a word (NumPy would read "3" as
    3).
    """
    if isinstance(value, np.ndarray):
        return value.ndim == 0 and value.dtype.kind in "iuf"
    return isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)


def _check_factors(B: np.ndarray, C: np.ndarray) -> int:
    """Return the dimension d of V = B C, or refuse shapes that do not fit."""
    if B.shape[2] != C.shape[1] or B.shape[1] != C.shape[2]:
        raise ValueError(
            f"V = (B, C) must have shapes (h, d, r) and (h, r, d), got {B.shape} and {C.shape}."
        )
    return B.shape[1]


def _advise(d: int, *given: Any) -> str:
    """Return advice on what to write instead of a number if d is not 1."""
    number = next((part for part in given if _is_number(part)), None)
    return (
        ""
        if number is None or d == 1
        else f" A number means d = 1: write {float(number):g} * np.eye({d}) instead."
    )


def _spread(names: tuple[str, ...], matrices: list[np.ndarray]) -> list[np.ndarray]:
    """Give every head a copy of a matrix that was given once. Refuse two different numbers of
    heads.
    """
    h = max(len(array) for array in matrices)
    if any(len(array) not in (1, h) for array in matrices):
        found = ", ".join(
            f"{name} has {len(array)}" for name, array in zip(names, matrices, strict=True)
        )
        raise ValueError(
            "Q, K and V must have the same number of heads, or be given once for all heads:"
            f" {found}. Give each one matrix per head, or one matrix."
        )
    spread = [array if len(array) == h else np.repeat(array, h, axis=0) for array in matrices]
    for array in spread:
        array.setflags(write=False)
    return spread
