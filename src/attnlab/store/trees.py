"""Convert values to JSON and arrays, and back: tables, lists, texts, numbers, arrays, and known
records.

JSON holds the structure. Every array is stored separately, under its own name. No name in a file is
imported: only the records in RECORDS are allowed.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

import numpy as np

from attnlab.netcdf import Variable
from attnlab.store.packing import Arrays

RECORDS = {
    "Event": "attnlab.types",
    "Weights": "attnlab.types",
    "Hypothesis": "attnlab.verdicts",
    "Outcome": "attnlab.verdicts",
    "Verdict": "attnlab.verdicts",
    "Prediction": "attnlab.verdicts",
    "MeasuredHead": "attnlab.models.studies.spectra_table",
    "HeadNumbers": "attnlab.models.studies.head_numbers",
}
"""The records and enumerations that may stand inside a tree, and where they are defined."""

PLAIN_FIELDS: dict[str, Any] = {
    "float": (float, int, np.number, np.bool_),
    "int": (int, np.integer),
    "str": str,
    "bool": (bool, np.bool_),
    "complex": (complex, float, int, np.number),
    "bool | None": (bool, np.bool_, type(None)),
}
"""What a field of a record may hold, by how it is declared."""

LONGEST_DECLARED = 1000
"""The declared length of a text is kept up to this many letters: a file may declare more than the
memory.
"""

STORED_KINDS = "biufcUO"
"""Kinds of arrays that a file holds: truth values, numbers and texts."""


def encode(value: Any, name: str) -> tuple[Any, dict[str, Variable]]:
    """Return (JSON, arrays) of a value; the names of the arrays begin with `name`. TypeError for
    what cannot be stored.
    """
    arrays: dict[str, Variable] = {}
    return _encode(value, name, arrays), arrays


def decode(tree: Any, arrays: Arrays) -> Any:
    """Return the original value of `encode`."""
    if isinstance(tree, list):
        return [decode(entry, arrays) for entry in tree]
    if not isinstance(tree, dict):
        return tree
    kind: str = tree["is"]
    value: Any = tree.get("of")
    if kind == "float":
        return float(value)
    if kind == "complex":
        return complex(*map(float, value))
    if kind == "tuple":
        return tuple(decode(entry, arrays) for entry in value)
    if kind == "table":
        return {decode(key, arrays): decode(entry, arrays) for key, entry in value}
    if kind == "array":
        return as_text(arrays[value], tree.get("text"))
    if kind == "number":
        return as_text(arrays[value], tree.get("text"))[()]
    if kind == "record":
        return make_record(
            tree["name"], {str(key): decode(entry, arrays) for key, entry in value.items()}
        )
    if kind == "member":
        return _record(tree["name"])[value]
    raise ValueError(f"A tree must be made of tables, lists and arrays, got {str(kind)[:40]!r}.")


def make_record(name: str, values: Mapping[str, Any]) -> Any:
    """The record of that name with these values, or a ValueError where a value is of another type
    than it must be.
    """
    record = _record(name)
    for entry in fields(record):
        allowed = PLAIN_FIELDS.get(str(entry.type))
        value = values.get(entry.name)
        if entry.name in values and allowed is not None and not isinstance(value, allowed):
            raise ValueError(
                f"{entry.name} of a {name} must be {entry.type}, got {str(value)[:40]!r}."
            )
    return record(**values)


def as_text(array: np.ndarray, text: str | None) -> np.ndarray:
    """Return an array of texts in its original type, such as "O" or "U5"; other arrays
    unchanged.
    """
    if text is None:
        return array
    if text == "O":
        return array
    length = int(text.removeprefix("U"))
    return array.astype(f"U{length}" if length <= LONGEST_DECLARED else str)


def text_type(array: np.ndarray) -> str | None:
    """How an array of texts says its type; None for numbers."""
    if array.dtype.kind not in "UO":
        return None
    return "O" if array.dtype == object else f"U{array.dtype.itemsize // 4}"


def check_stored(array: np.ndarray, name: str) -> np.ndarray:
    """The array, or a TypeError where a file cannot hold it."""
    is_mixed = array.dtype == object and not all(isinstance(entry, str) for entry in array.ravel())
    if (
        array.dtype.kind not in STORED_KINDS
        or is_mixed
        or array.dtype in (np.float16, np.longdouble, np.clongdouble)
    ):
        what = "objects that are not texts" if is_mixed else f"the type {array.dtype}"
        raise TypeError(
            f"{name} has {what}, which a file does not hold: numbers in double precision, whole"
            " numbers and texts."
        )
    return array


def _encode(value: Any, name: str, arrays: dict[str, Variable]) -> Any:
    if (
        value is None
        or isinstance(value, bool | str)
        or isinstance(value, int)
        and not isinstance(value, Enum | np.generic)
    ):
        return value
    if isinstance(value, np.ndarray | np.generic):
        return _encode_array(value, name, arrays)
    if isinstance(value, float):
        return value if math.isfinite(value) else {"is": "float", "of": repr(value)}
    if isinstance(value, complex):
        return {"is": "complex", "of": [repr(value.real), repr(value.imag)]}
    if isinstance(value, Enum) and type(value).__name__ in RECORDS:
        return {"is": "member", "name": type(value).__name__, "of": value.name}
    if is_dataclass(value) and type(value).__name__ in RECORDS:
        entries = {
            field.name: _encode(getattr(value, field.name), f"{name}_{field.name}", arrays)
            for field in fields(value)
        }
        return {"is": "record", "name": type(value).__name__, "of": entries}
    if isinstance(value, Mapping):
        table = [
            [_encode(key, f"{name}_key", arrays), _encode(entry, f"{name}_{key}", arrays)]
            for key, entry in value.items()
        ]
        return {"is": "table", "of": table}
    if isinstance(value, tuple):
        return {
            "is": "tuple",
            "of": [_encode(entry, f"{name}_{i}", arrays) for i, entry in enumerate(value)],
        }
    if isinstance(value, list):
        return [_encode(entry, f"{name}_{i}", arrays) for i, entry in enumerate(value)]
    raise TypeError(f"{name} holds a {type(value).__name__}, which cannot be stored.")


def _encode_array(value: Any, name: str, arrays: dict[str, Variable]) -> Any:
    array = check_stored(np.asarray(value), name)
    plain = "".join(letter if letter.isalnum() and letter.isascii() else "_" for letter in name)[
        :100
    ]
    while plain in arrays:
        plain += "_"
    arrays[plain] = Variable(tuple(f"{plain}_axis_{i}" for i in range(array.ndim)), array)
    tree = {"is": "array" if isinstance(value, np.ndarray) else "number", "of": plain}
    kind = text_type(array)
    return tree if kind is None else {**tree, "text": kind}


def _record(name: str) -> Any:
    if name not in RECORDS:
        raise ValueError(f"{str(name)[:40]!r} is no record that a file may hold.")
    return getattr(importlib.import_module(RECORDS[name]), name)
