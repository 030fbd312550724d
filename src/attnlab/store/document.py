"""One result as one NetCDF-4 file: its kind, its arrays and words, and a checksum of all of them.

Formats: 1, runs without a checksum; 2, runs with one; 3, any kind of result, with further arrays
for other programs.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from attnlab.netcdf import Unreadable, Variable, Variables, checksum, file_bytes, read_file
from attnlab.registry import unknown_name
from attnlab.store.packing import Labelled, Packed, kinds

FORMAT = 3
"""The version of the layout on disk."""

FIRST_WITH_CHECKSUM, FIRST_WITH_KINDS = 2, 3

MARKER = "attnlab_format"
CHECKSUM = "checksum"
KIND = "attnlab_kind"
VARIABLES = "attnlab_variables"

RUN = "trajectory"
"""The kind of older files, which do not name a kind."""


def document_bytes(kind: str, packed: Packed, views: Labelled | None = None) -> memoryview:
    """Return a packed result, and arrays for other programs, as the bytes of a file."""
    variables = with_distinct_axes(
        {**packed.variables, **(views.variables if views is not None else {})}
    )
    arrays = {name: variable.values for name, variable in variables.items()}
    words = {KIND: kind, VARIABLES: json.dumps(sorted(variables)), **packed.words}
    created = datetime.now(UTC).isoformat(timespec="seconds")
    about = {} if views is None else {name: _as_word(value) for name, value in views.words.items()}
    marks: dict[str, int | str] = {MARKER: FORMAT, CHECKSUM: checksum(arrays, words)}
    return file_bytes(variables, {**about, **marks, **words, **versions(), "created": created})


def _as_word(value: Any) -> int | float | str:
    """Return what a NetCDF attribute can hold: a number as it is, all else as a text."""
    if isinstance(value, int | float):
        return int(value) if isinstance(value, bool) else value
    return str(value)


def read_document(path: Path) -> tuple[str, dict[str, np.ndarray], dict[str, Any]]:
    """Return (kind, arrays, words) of a file. The format is the word MARKER. If it has a checksum,
    it is verified.
    """
    asked = {word for name in kinds for word in kinds[name].words}
    names = {
        MARKER: "number",
        CHECKSUM: "text",
        KIND: "text",
        VARIABLES: "text",
        **dict.fromkeys(sorted(asked), "text"),
    }
    arrays, words = read_file(path, _choose, names)
    kind, signed = _kind_and_words(words)
    if words[MARKER] >= FIRST_WITH_CHECKSUM or CHECKSUM in words:
        if words.get(CHECKSUM) != checksum(arrays, {word: words[word] for word in signed}):
            raise Unreadable(
                "is damaged: its content does not match its saved checksum. Make it again, or use a"
                " copy."
            )
    return kind, arrays, words


def versions() -> dict[str, str]:
    """Return the versions of the libraries that compute and write a result."""
    libraries = ("attnlab", "numpy", "scipy", "numba", "xarray", "h5netcdf", "h5py")
    return {
        "python_version": platform.python_version(),
        **{f"{name}_version": version(name) for name in libraries},
    }


def with_distinct_axes(variables: Variables) -> dict[str, Variable]:
    """The variables with axes that a file can hold: one length per name, and no name of another
    variable.
    """
    lengths: dict[str, int] = {}
    found = {}
    for name, (axes, values, about) in variables.items():
        renamed = []
        for axis, length in zip(axes, values.shape, strict=True):
            if axis in variables and tuple(variables[axis].axes) != (axis,):
                axis = f"{axis}_axis"
            if lengths.setdefault(axis, length) != length:
                axis = f"{axis}_of_{name}"
                lengths.setdefault(axis, length)
            renamed.append(axis)
        found[name] = Variable(tuple(renamed), values, about)
    return found


def _choose(words: Mapping[str, Any]) -> Callable[[str], bool]:
    """Return the function that says which arrays of a file are read. Refuse files that are not a
    known result.
    """
    if words.get(MARKER, 0) < 1:
        raise Unreadable(
            "is a NetCDF or HDF5 file, but not a run that `save` or `attnlab run` wrote, nor"
            " another result of attnlab. Open it with xarray.open_dataset."
        )
    if words[MARKER] > FORMAT:
        raise Unreadable(
            f"has format {words[MARKER]}, but this attnlab reads up to format {FORMAT}: upgrade"
            " attnlab."
        )
    _, needed = _kind_and_words(words)
    missing = [word for word in needed if word not in words]
    if missing:
        raise Unreadable(f"is damaged: the attribute {missing[0]} is missing.")
    if words[MARKER] < FIRST_WITH_KINDS:
        from attnlab.store.kinds.trajectory import is_part

        return is_part
    names = json.loads(words[VARIABLES])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise Unreadable("is damaged: the names of its arrays must be a list of words.")
    return set(names).__contains__


def _kind_and_words(words: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    """The kind of result in a file, and the words that its checksum covers."""
    if words[MARKER] < FIRST_WITH_KINDS:
        return RUN, kinds[RUN].words
    kind = str(words.get(KIND))
    if kind not in kinds:
        raise unknown_name("kind of result", kind, kinds)
    return kind, (KIND, VARIABLES, *kinds[kind].words)
