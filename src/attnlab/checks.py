"""What must hold of values that users give. Imports nothing of ours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


class MissingLibrary(ImportError):
    """A library that only some features need is not installed; the message says how to install it."""


def real_array(name: str, value: Any, ndim: Sequence[int]) -> np.ndarray:
    """Return a read-only float64 copy of `value`, which has one of these numbers of axes, or raise a ValueError."""
    try:
        if np.iscomplexobj(value):              # NumPy would drop the imaginary part with no more than a warning
            raise TypeError
        array = np.array(value, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be an array of real numbers, got {type(value).__name__}: {str(value)[:80]}") from None
    if array.ndim not in ndim:
        raise ValueError(f"{name} must have {' or '.join(map(str, ndim))} axes, got shape {array.shape}.")
    if array.size == 0:
        raise ValueError(f"{name} must not be empty, got shape {array.shape}.")
    if not np.isfinite(array).all():
        bad = np.argwhere(~np.isfinite(array))[0]
        raise ValueError(f"{name} must be finite, but entry {tuple(int(i) for i in bad)} is {array[tuple(bad)]}.")
    array.setflags(write=False)
    return array
