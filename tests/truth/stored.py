"""Samples of everything that can be stored, and where two results differ."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import xarray

from attnlab.store.packing import kinds

SAMPLES = {
    f"{kind}: {name}": thing for kind in kinds for name, thing in kinds[kind].samples().items()
}


def difference(one: Any, other: Any, place: str = "") -> str:
    """Where two results differ, in type, shape or bits; "" where they do not."""
    if type(one) is not type(other):
        return f"{place}: {type(one).__name__} and {type(other).__name__}"
    if isinstance(one, xarray.Dataset):
        parts = [
            (name, one.variables[name], other.variables[name])
            for name in one.variables
            if name in other.variables
        ]
        if list(one.data_vars) != list(other.data_vars) or list(one.coords) != list(other.coords):
            return f"{place}: {list(one.variables)} and {list(other.variables)}"
        pairs = [
            (f".{name}", (a.dims, a.values, dict(a.attrs)), (b.dims, b.values, dict(b.attrs)))
            for name, a, b in parts
        ]
        pairs.append((".attrs", dict(one.attrs), dict(other.attrs)))
    elif type(one).__name__ in ("DataFrame", "Table"):
        pairs = [
            (".columns", list(one.columns), list(other.columns)),
            (".types", list(one.dtypes), list(other.dtypes)),
            (".index", list(one.index), list(other.index)),
            (".attrs", dict(one.attrs), dict(other.attrs)),
        ]
        pairs += [
            (f".{name}", *(_listed(frame[name]) for frame in (one, other)))
            for name in one.columns
            if name in other.columns
        ]
    elif is_dataclass(one):
        pairs = [
            (f".{field.name}", getattr(one, field.name), getattr(other, field.name))
            for field in fields(one)
        ]
    elif isinstance(one, np.ndarray):
        if (one.dtype, one.shape) != (other.dtype, other.shape):
            return f"{place}: {one.dtype} {one.shape} and {other.dtype} {other.shape}"
        is_same = (
            one.tolist() == other.tolist()
            if one.dtype == object
            else one.tobytes() == other.tobytes()
        )
        return "" if is_same else f"{place}: other entries"
    elif isinstance(one, dict):
        if list(one) != list(other):
            return f"{place}: keys {list(one)} and {list(other)}"
        pairs = [(f"[{key!r}]", one[key], other[key]) for key in one]
    elif isinstance(one, list | tuple):
        if len(one) != len(other):
            return f"{place}: {len(one)} and {len(other)} entries"
        pairs = [(f"[{i}]", a, b) for i, (a, b) in enumerate(zip(one, other, strict=True))]
        pairs += [(".openings", one.openings, other.openings)] if hasattr(one, "openings") else []
    else:
        return (
            ""
            if one == other or one != one and other != other
            else f"{place}: {one!r} and {other!r}"
        )
    return next((found for name, a, b in pairs if (found := difference(a, b, place + name))), "")


def _listed(column: Any) -> list[Any]:
    """The entries of a column; a missing whole number, which equals nothing, as None."""
    entries = column.tolist()
    return (
        [
            None if is_missing else entry
            for entry, is_missing in zip(entries, column.isna(), strict=True)
        ]
        if column.dtype == "Int64"
        else entries
    )
