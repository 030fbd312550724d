"""Read numbers from .npy, .npz and .csv files that a Spec names. Nothing is unpickled; sizes are
checked before reading.
"""

from __future__ import annotations

import io
import math
import os
import stat
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

SUFFIXES = (".npy", ".npz", ".csv")
LONGEST_FILE = 200_000_000
"""The most bytes of a file, and of an array inside a .npz file."""

MOST_NUMBERS = 5_000_000
"""The most numbers of an array. A Spec keeps them as lists, which need several times the memory of
the file.
"""

OTHER_NAMES = {"x": ("x0",)}
"""Names of arrays in a .npz file that are accepted besides the key of the Spec."""


class BadArray(ValueError):
    """A file of numbers that cannot be read. The message says what must hold, without the name of
    the file.
    """


def is_array_name(value: Any) -> bool:
    """Whether a word in a Spec is the name of a file of numbers."""
    return isinstance(value, str) and value.lower().endswith(SUFFIXES)


def read_array(path: Path, key: str) -> np.ndarray:
    """Return the numbers in a file as float64; from a .npz file the array `key`, or the only array.
    Raises BadArray.
    """
    size = _checked_size(path)
    try:
        if path.suffix.lower() == ".npy":
            with path.open("rb") as file:
                return _finite(_from_npy(file, size))
        if path.suffix.lower() == ".npz":
            return _finite(_from_npz(path, key))
        return _from_csv(path.read_bytes())
    except BadArray:
        raise
    except (
        ValueError,
        KeyError,
        EOFError,
        zipfile.BadZipFile,
        RuntimeError,
        NotImplementedError,
        SyntaxError,
        TypeError,
    ) as problem:
        said = " ".join(str(problem).split())[:120] or type(problem).__name__
        raise BadArray(f"is damaged, or not a {path.suffix.lower()} file: {said}") from None
    except Exception as problem:  # zlib and other libraries have their own exceptions for damage
        if isinstance(problem, OSError | MemoryError):
            raise
        raise BadArray(f"is damaged: {type(problem).__name__}") from None


def _checked_size(path: Path) -> int:
    found = path.stat()
    if stat.S_ISDIR(found.st_mode):
        raise BadArray("is a folder. Name a file of numbers.")
    if not stat.S_ISREG(found.st_mode):
        raise BadArray("is a device or a pipe, which may never end. Name a file of numbers.")
    if found.st_size > LONGEST_FILE:
        raise BadArray(
            f"has {found.st_size / 1e6:.0f} MB, but a file of numbers may have"
            f" {LONGEST_FILE / 1e6:.0f} MB. Give large arrays in Python:"
            " al.simulate(al.Weights(V=V), x0)."
        )
    return found.st_size


def _from_npy(file: Any, size: int) -> np.ndarray:
    """Return the array in a .npy file of `size` bytes. The header is checked before any number is
    read.
    """
    version = np.lib.format.read_magic(file)
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    if version not in readers:
        raise BadArray(
            f"has version {version} of the .npy format, but only versions (1, 0) and (2, 0) can be"
            " read."
        )
    shape, is_fortran, kind = readers[version](file)
    if kind.hasobject:
        raise BadArray(
            "holds pickled objects, which are never read. Save numbers: numpy.save(path,"
            " array.astype(float))."
        )
    if kind.kind not in "biuf":
        raise BadArray(f"must hold real numbers, but holds {kind}.")
    count = math.prod(shape)
    _check_count(count)
    needed = count * kind.itemsize
    if needed > size:
        raise BadArray(
            f"is damaged: its header declares {count} numbers, more than the file can hold."
        )
    data = file.read(needed)
    if len(data) < needed:
        raise BadArray("is cut off: it has fewer numbers than its header declares.")
    array = (
        np.frombuffer(data, kind).reshape(shape[::-1]).T
        if is_fortran
        else np.frombuffer(data, kind).reshape(shape)
    )
    return array.astype(float)


def _from_npz(path: Path, key: str) -> np.ndarray:
    """Return the array of a .npz file with the name of the key, or its only array."""
    with zipfile.ZipFile(path) as archive:
        members = {
            info.filename.removesuffix(".npy"): info
            for info in archive.infolist()
            if info.filename.endswith(".npy")
        }
        wanted = [name for name in (key, *OTHER_NAMES.get(key, ())) if name in members]
        if not wanted and len(members) != 1:
            names = ", ".join(sorted(members)[:8]) or "none"
            raise BadArray(
                f"must hold an array called {key}, or one array only. It holds: {names}."
            )
        info = members[wanted[0]] if wanted else next(iter(members.values()))
        if info.file_size > LONGEST_FILE:
            raise BadArray(
                f"holds an array of {info.file_size / 1e6:.0f} MB; at most {LONGEST_FILE / 1e6:.0f}"
                " MB are allowed."
            )
        with archive.open(info) as file:
            data = file.read(info.file_size + 1)  # a compressed member may be longer than declared
    if len(data) > info.file_size:
        raise BadArray("is damaged: an array is longer than declared.")
    return _from_npy(io.BytesIO(data), len(data))


def _from_csv(data: bytes) -> np.ndarray:
    """Return the numbers in a text: one row per line, separated by commas or white space. A first
    line of words is skipped.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadArray(
            "is not a text. A .csv file must hold numbers separated by commas."
        ) from None
    rows: list[list[float]] = []
    first, count = 0, 0
    for number, cells in _lines(text):
        values = [_number(cell) for cell in cells]
        if not rows and not first and not any(_is_number(cell) for cell in cells):
            first = number  # words above the columns
            continue
        if None in values:
            cell = cells[values.index(None)]
            raise BadArray(f"line {number} has {cell[:30]!r} where a finite number must be.")
        count += len(values)
        _check_count(count)
        if rows and len(values) != len(rows[0]):
            raise BadArray(
                f"line {number} has {len(values)} numbers, but the lines before it have"
                f" {len(rows[0])}."
            )
        rows.append([value for value in values if value is not None])
    if not rows:
        raise BadArray("holds no numbers.")
    return np.array(rows)


def _lines(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield (number, cells) of each line that is neither empty nor a comment (#)."""
    separator = None
    for number, line in enumerate(text.splitlines(), start=1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        if ";" in line:
            raise BadArray(
                f"line {number} contains ';'. Separate numbers by commas, and use decimal points."
            )
        separator = separator or ("," if "," in line else " ")
        yield (
            number,
            [cell.strip() for cell in line.split(",")] if separator == "," else line.split(),
        )


def _is_number(cell: str) -> bool:
    """Whether Python reads a cell as a number. nan and inf are numbers too, not titles of
    columns.
    """
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _number(cell: str) -> float | None:
    """Return a finite number, or None."""
    return (
        float(cell) if _is_number(cell) and math.isfinite(float(cell)) and "_" not in cell else None
    )


def _check_count(count: int) -> None:
    if count > MOST_NUMBERS:
        raise BadArray(
            f"holds more than {MOST_NUMBERS} numbers, too many for a Spec. Give large arrays in"
            " Python: al.simulate(al.Weights(V=V), x0)."
        )


def _finite(array: np.ndarray) -> np.ndarray:
    if array.size == 0:
        raise BadArray(f"holds no numbers: its shape is {array.shape}.")
    if not np.isfinite(array).all():
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise BadArray(f"must hold finite numbers, but entry {place} is {array[place]}.")
    return array


def find_array(folder: str | os.PathLike[str], name: str, key: str) -> np.ndarray:
    """Return the numbers in the file `name`, relative to a folder. A ValueError names the file and
    the problem.
    """
    path = Path(folder) / name
    try:
        return read_array(path, key)
    except FileNotFoundError:
        raise ValueError(f"There is no file {path}, which {key} = {name!r} names.") from None
    except BadArray as problem:
        raise ValueError(f"{path} {problem}") from None
    except (OSError, ValueError) as problem:  # a name with a null byte is a ValueError
        reason = getattr(problem, "strerror", None) or str(problem)
        raise ValueError(
            f"{path} cannot be read ({reason}), which {key} = {name!r} names."
        ) from None
