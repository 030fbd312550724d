"""Convert values to plain JSON: lists, numbers and words."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping
from typing import Any

import numpy as np


def plain_value(value: Any) -> Any:
    """Return the value as lists, numbers and words. NaN and infinity become null, complex numbers
    [real, imaginary].
    """
    if isinstance(value, enum.StrEnum):  # a word, whose value is a sentence
        return str(value)
    if isinstance(value, enum.Enum):
        return value.name
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: plain_value(getattr(value, field.name))
            for field in dataclasses.fields(value)
        }
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(name): plain_value(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain_value(entry) for entry in value]
    if isinstance(value, complex):
        return [plain_value(value.real), plain_value(value.imag)]
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)
