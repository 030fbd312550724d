"""A table of pandas, as `al.models.spectra` returns it: columns of numbers, texts and truth
values.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab.netcdf import Variable
from attnlab.store.packing import Arrays, Kind, Labelled, Packed, Words, is_instance, kinds
from attnlab.store.plain import plain_value
from attnlab.store.trees import check_stored, decode, encode

if TYPE_CHECKING:
    import pandas

TYPES = (
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "Int64",
    "float32",
    "float64",
    "complex128",
    "object",
    "str",
    "string",
)
"""Types of columns that are stored."""


def pack(frame: pandas.DataFrame) -> Packed:
    """All columns, the index and the attributes."""
    columns = [str(name) for name in frame.columns]
    types = {str(name): str(kind) for name, kind in frame.dtypes.items()}
    if len(set(columns)) < len(columns) or any(kind not in TYPES for kind in types.values()):
        raise TypeError(
            "A table is stored if its columns have different names and types out of"
            f" {', '.join(TYPES)}."
        )
    variables = {
        f"column_{name}": Variable(
            ("row",), check_stored(_values(frame[name]), str(name)), {"long_name": str(name)}
        )
        for name in frame.columns
    }
    tree, arrays = encode({"attributes": dict(frame.attrs), "index": list(frame.index)}, "table")
    is_counted = list(frame.index) == list(range(len(frame)))
    content = {
        "tree": tree,
        "columns": columns,
        "types": types,
        "is_counted": is_counted,
        "is_splitting": hasattr(frame, "split_complex"),
    }
    return Packed(variables | arrays, {"content": json.dumps(content)})


def unpack(arrays: Arrays, words: Words) -> pandas.DataFrame:
    """The table of arrays and words."""
    import pandas

    from attnlab.models.studies.tables import Table

    content = json.loads(words["content"])
    tree, columns = decode(content["tree"], arrays), {}
    for name in content["columns"]:
        values, kind = arrays[f"column_{name}"], content["types"][name]
        if kind not in TYPES or values.ndim != 1:
            raise ValueError(f"{name[:40]!r} must be a column of a type out of {', '.join(TYPES)}.")
        columns[name] = pandas.Series(values, dtype=kind)
    index = (
        pandas.RangeIndex(len(tree["index"]))
        if content["is_counted"]
        else pandas.Index(tree["index"])
    )
    kind_of = Table if content.get("is_splitting") else pandas.DataFrame
    frame = kind_of(columns, columns=content["columns"])
    if len(frame) != len(index):
        raise ValueError(
            f"A table of {len(frame)} rows must have an index of that length, got {len(index)}."
        )
    frame.index = index
    frame.attrs = dict(tree["attributes"])
    return frame


def label(frame: pandas.DataFrame) -> Labelled:
    """The columns along one axis."""
    columns = {
        str(name): Variable(
            ("row",), _values(frame[name]), {"long_name": str(name).replace("_", " ")}
        )
        for name in frame.columns
    }
    return Labelled(
        columns,
        {
            name: value
            for name, value in frame.attrs.items()
            if isinstance(value, str | int | float)
        },
    )


def tabulate(frame: pandas.DataFrame) -> dict[str, np.ndarray]:
    """The columns; complex ones as two, for a table of text has no complex numbers."""
    found: dict[str, np.ndarray] = {}
    for name in frame.columns:
        values = _values(frame[name])
        found |= (
            {f"{name}_real": values.real, f"{name}_imaginary": values.imag}
            if values.dtype.kind == "c"
            else {str(name): values}
        )
    return found


def _values(column: Any) -> np.ndarray:
    """A column as an array; texts as objects, missing whole numbers as NaN."""
    if str(getattr(column, "dtype", "")) == "Int64":
        return np.asarray(column.to_numpy(dtype=float, na_value=np.nan))
    values = np.asarray(column)
    return values.astype(object) if values.dtype.kind in "UOT" else values


def _samples() -> Mapping[str, Any]:
    import pandas

    frame = pandas.DataFrame(
        {
            "layer": [0, 0, 1],
            "lambda1": [1 + 2j, 3, -1j],
            "gap": [0.5, np.nan, 0.0],
            "is_real": [True, False, True],
            "verdict": ["good triple", "zero", ""],
        }
    )
    frame.attrs = {"model": "tiny", "d": 3, "null_shares": {"complex": 0.25}, "is_tied": False}
    return {
        "spectra": frame,
        "other index": frame.iloc[[2, 0]],
        "no rows": frame.iloc[:0].reset_index(drop=True),
    }


kinds.register("table")(
    Kind(
        title="a table",
        is_one=lambda thing: is_instance(thing, "pandas", "DataFrame"),
        pack=pack,
        unpack=unpack,
        label=label,
        samples=_samples,
        tabulate=tabulate,
        record=lambda frame: [plain_value(row) for row in frame.to_dict("records")],
    )
)
