"""What a measure returns as one line of JSON, and back without a changed bit: numbers, words,
lists, tables, arrays, Datasets.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

MARK = "~"
"""The key of a table in the text that says what the table stands for. No table of a measure may
have it.
"""

PLAIN = "biufc"
"""Kinds of arrays that are kept as bytes; arrays of words are kept as words."""


def to_text(value: Any) -> str:
    """Return a value as text. Tuples become lists. Other types are refused."""
    return json.dumps(_written(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def from_text(text: str) -> Any:
    """Return the value that `to_text` wrote: the same bits, shapes and types."""
    return _read(json.loads(text))


def _written(value: Any) -> Any:
    if isinstance(value, np.generic):  # np.float64 is a float, too: hence before it
        return {**_array(np.asarray(value)), "is_scalar": True}
    if isinstance(value, float) and not math.isfinite(value):
        return {MARK: "float", "word": repr(value)}
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, list | tuple):
        return [_written(entry) for entry in value]
    if isinstance(value, np.ndarray):
        return _array(value)
    if isinstance(value, Mapping) and hasattr(value, "data_vars"):
        return _dataset(value)
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str) or key == MARK:
                raise TypeError(
                    f"The keys of a table that a measure returns must be words other than {MARK!r},"
                    f" got {key!r}."
                )
        return {key: _written(entry) for key, entry in value.items()}
    raise TypeError(
        "A measure must return numbers, words, lists, tables, arrays or Datasets, got "
        f"{type(value).__name__}: return what is measured of it."
    )


def _array(array: np.ndarray) -> dict[str, Any]:
    about = {MARK: array.dtype.str, "shape": list(array.shape)}
    if array.dtype.kind in PLAIN:
        return about | {
            "bytes": base64.b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")
        }
    entries = array.ravel().tolist()
    if array.dtype.kind not in "UO" or not all(isinstance(entry, str) for entry in entries):
        raise TypeError(
            f"An array that a measure returns must hold numbers or words, got one of {array.dtype}."
        )
    return about | {"words": entries}


def _dataset(data: Any) -> dict[str, Any]:
    """Every variable with its axes and attributes."""
    variables = [
        [
            str(name),
            list(map(str, one.dims)),
            _array(np.asarray(one.values)),
            _written(dict(one.attrs)),
        ]
        for name, one in data.variables.items()
    ]
    return {
        MARK: "dataset",
        "variables": variables,
        "coords": list(map(str, data.coords)),
        "attrs": _written(dict(data.attrs)),
    }


def _read(value: Any) -> Any:
    if isinstance(value, list):
        return [_read(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    kind = value.get(MARK)
    if kind is None:
        return {key: _read(entry) for key, entry in value.items()}
    if kind == "float":
        return float(value["word"])
    if kind == "dataset":
        return _read_dataset(value)
    if "words" in value:
        array = np.array(value["words"], dtype=kind)
    else:
        array = np.frombuffer(base64.b64decode(value["bytes"]), dtype=kind).copy()
    array = array.reshape(value["shape"])
    return array[()] if value.get("is_scalar") else array


def _read_dataset(value: dict[str, Any]) -> Any:
    import xarray

    variables = {
        name: (axes, _read(array), _read(attrs)) for name, axes, array, attrs in value["variables"]
    }
    return xarray.Dataset(variables, attrs=_read(value["attrs"])).set_coords(value["coords"])
