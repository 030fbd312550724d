"""Checks of values from users. Imports nothing from attnlab."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np


class MissingLibrary(ImportError):
    """Raised when an optional library is not installed. The message says how to install it."""


def real_array(name: str, value: Any, ndim: Sequence[int]) -> np.ndarray:
    """Return a read-only float64 copy of `value`. Raise ValueError if its number of axes is not in
    `ndim`.
    """
    try:
        if np.iscomplexobj(
            value
        ):  # NumPy would drop the imaginary part with no more than a warning
            raise TypeError
        array = np.array(value, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} must be an array of real numbers, got {type(value).__name__}:"
            f" {str(value)[:80]}"
        ) from None
    if array.ndim not in ndim:
        raise ValueError(
            f"{name} must have {' or '.join(map(str, ndim))} axes, got shape {array.shape}."
        )
    if array.size == 0:
        raise ValueError(f"{name} must not be empty, got shape {array.shape}.")
    if not np.isfinite(array).all():
        bad = np.argwhere(~np.isfinite(array))[0]
        raise ValueError(
            f"{name} must be finite, but entry {tuple(int(i) for i in bad)} is {array[tuple(bad)]}."
        )
    array.setflags(write=False)
    return array


def as_float(value: Any) -> float:
    """Return `value` as a float: NaN if it is not a real number, infinity for a whole number beyond
    all floats.
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf


def positive(name: str, value: Any) -> float:
    """Return `value` as a float. Raise ValueError unless it is positive."""
    if not 0.0 < (number := as_float(value)) < math.inf:
        kind = "positive finite" if number == math.inf else "positive"
        raise ValueError(f"{name} must be a {kind} number, got {value!r}.")
    return number


def not_negative(name: str, value: Any) -> float:
    """Return `value` as a float. Raise ValueError if it is negative."""
    if not 0.0 <= (number := as_float(value)) < math.inf:
        raise ValueError(f"{name} must be a number of 0 or more, got {value!r}.")
    return number


def real_number(name: str, value: Any) -> float:
    """Return `value` as a float. Raise ValueError unless it is finite."""
    if not math.isfinite(number := as_float(value)):
        raise ValueError(f"{name} must be a finite number, got {value!r}.")
    return number


def whole_number(name: str, value: Any, least: int = 1, most: int | None = None) -> int:
    """Return `value` as an int. Raise ValueError unless it is between `least` and `most`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}.")
    if most is not None and value > most:
        raise ValueError(f"{name} must be at most {most}, got {value!r}.")
    return int(value)
