"""Write arrays and words to a NetCDF-4 file, and read them from a file that may be damaged or
hostile.

A file is made in memory and then written, because HDF5 ends the process if its own writing fails,
as on a full disk. A file is read with h5py alone, because h5netcdf may never return from damaged
dimensions. Sizes are checked before anything is read: every array must be in the file itself, with
its declared length, in one piece. So a file cannot make HDF5 open another file, load a plugin, or
use more memory than its own size.
"""

from __future__ import annotations

import hashlib
import io
import json
import stat
import struct
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np

from attnlab.capacity import available_bytes

if TYPE_CHECKING:
    import h5py
    import xarray


class Variable(NamedTuple):
    """An array with the names of its axes, and words about it such as long_name and units."""

    axes: tuple[str, ...]
    values: np.ndarray
    attributes: Mapping[str, str] = MappingProxyType({})


Variables = Mapping[str, Variable]

TEXT_BLOCK = 256 << 20
"""The most bytes of text that are read at once: entries may share one long text, which then counts
for each entry.
"""


SIGNATURE = b"\x89HDF\r\n\x1a\n"
FOREIGN = "is not a NetCDF-4 file: give a .nc file that `save` or a command of attnlab wrote."
HEAP = b"GCOL\x01"
READ_BLOCK = 16 << 20


class Unreadable(ValueError):
    """Raised for a file that cannot be read safely. The message says why, without the name of the
    file.
    """


def dataset_bytes(dataset: xarray.Dataset) -> memoryview:
    """Return an xarray Dataset as the bytes of a NetCDF-4 file."""
    import h5netcdf
    from xarray.backends import H5NetCDFStore

    image = io.BytesIO()
    with h5netcdf.File(image, "w") as file:
        dataset.dump_to_store(H5NetCDFStore(file))
    return image.getbuffer()


def file_bytes(variables: Variables, words: Mapping[str, int | float | str]) -> memoryview:
    """Return arrays and words as the bytes of a file. It does not use xarray, whose import takes
    longer than a small run.
    """
    import h5netcdf
    import h5py

    image = io.BytesIO()
    with h5netcdf.File(image, "w") as file:
        for axes, array, _ in variables.values():
            for axis, length in zip(axes, array.shape, strict=True):
                if axis not in file.dimensions:
                    file.dimensions[axis] = length
        for name, (axes, array, about) in variables.items():
            kind = array.dtype.kind
            attributes: dict[str, int | str] = dict(about)
            if kind == "c":  # NetCDF has neither complex numbers
                file.dimensions.setdefault("real_imaginary", 2)
                axes, array = (*axes, "real_imaginary"), np.stack([array.real, array.imag], -1)
                attributes["complex"] = 1
            elif kind == "b":  # nor truth values: this is how xarray knows them again
                array = array.astype("i1")
                attributes["dtype"] = "bool"
            variable = file.create_variable(
                name, axes, h5py.string_dtype() if kind in "UO" else array.dtype
            )
            variable[...] = (
                array.astype(object)
                if kind in "UO" and array.ndim
                else array
                if array.ndim
                else array.item()
            )
            for word, value in attributes.items():
                variable.attrs[word] = (
                    str(value) if isinstance(value, str) else value
                )  # a word of an enumeration too
        for word, fact in words.items():
            file.attrs[word] = str(fact) if isinstance(fact, str) else fact
    return image.getbuffer()


def checksum(arrays: Mapping[str, np.ndarray], words: Mapping[str, str]) -> str:
    """Return the SHA-256 of all bits of arrays and words, in hexadecimal; it does not depend on how
    a file keeps them.
    """
    digest = hashlib.sha256(json.dumps(sorted(words.items())).encode())
    for name in sorted(arrays):
        array = np.asarray(arrays[name])
        is_text = array.dtype.kind in "UO"
        digest.update(
            json.dumps([name, "text" if is_text else array.dtype.str, array.shape]).encode()
        )
        digest.update(
            json.dumps(array.tolist()).encode() if is_text else np.ascontiguousarray(array).data
        )
    return digest.hexdigest()


def check_file(path: Path) -> int:
    """Return the size of a file that may be opened: a regular one that fits into memory."""
    found = path.stat()
    if stat.S_ISDIR(found.st_mode):
        raise Unreadable("is a folder: give the name of a run's file.")
    if not stat.S_ISREG(found.st_mode):
        raise Unreadable(
            "is a device or a pipe, which may never end: give the name of a run's file."
        )
    most = available_bytes()
    if found.st_size > most:
        raise Unreadable(
            f"has {found.st_size / 1e9:.3g} GB, but {most / 1e9:.3g} GB of memory are available: "
            "a run must fit into memory."
        )
    return found.st_size


def check_bytes(path: Path, size: int) -> None:
    """Refuse bytes on which HDF5 would never return: a heap of texts with an entry of length 0.

    HDF5 goes from entry to entry by their lengths, so a length of 0 is an endless loop.
    """
    with path.open("rb") as file:
        start = file.read(16).ljust(16, b"\0")
        if start[:8] != SIGNATURE:
            raise Unreadable(FOREIGN)
        lengths = (
            start[13:15] if start[8] < 2 else start[9:11]
        )  # bytes of an address and of a length
        if lengths != b"\x08\x08":
            raise Unreadable("is damaged, or was not written by `save` or `attnlab run`.")
        left = size
        for place in _places(file, HEAP):
            left -= _check_heap(file, place, size)
            if left < 0:
                raise Unreadable("is damaged: its words are longer than the file.")


def _places(file: BinaryIO, wanted: bytes) -> Iterator[int]:
    """Yield every place in the file where `wanted` begins. (Without a memory map: if the file
    shrinks, that ends the process.)
    """
    block, end = b"", 0
    while True:
        file.seek(end)  # the reader of a place may have moved it
        fresh = file.read(READ_BLOCK)
        if not fresh:
            return
        block, end = block[1 - len(wanted) :] + fresh, end + len(fresh)
        found = block.find(wanted)
        while found >= 0:
            yield end - len(block) + found
            found = block.find(wanted, found + 1)


def _check_heap(file: BinaryIO, start: int, size: int) -> int:
    """Go through the heap of texts at `start` as HDF5 does, and return its number of bytes."""
    file.seek(start + 8)
    length = int.from_bytes(file.read(8).ljust(8, b"\xff"), "little")
    if start + length > size:
        return 0  # HDF5 refuses it, or these are numbers that look like one
    heap = file.read(max(0, length - 16))
    place = 0
    while len(heap) - place >= 16:
        index, entry = struct.unpack_from("<H6xQ", heap, place)
        needed = 16 + (entry + 7) // 8 * 8 if index else entry
        place += needed
        if needed < 16 or place > len(heap):
            raise Unreadable("is damaged: its words cannot be found.")
    return length


def read_file(
    path: Path,
    choose: Callable[[Mapping[str, Any]], Callable[[str], bool]],
    words: Mapping[str, str],
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return ({name: array}, {word: value}) of a file, for the words {word: "text", "number"}.

    choose gets the words of the file and returns the names of arrays to read. It may refuse the
    file. A missing word is left out. Raises Unreadable, or any exception of h5py for damaged bytes.
    """
    import h5py

    size = check_file(path)
    check_bytes(path, size)
    with h5py.File(path, "r") as file:
        found = {
            word: value
            for word, kind in words.items()
            if (value := _word(file, word, kind, size)) is not None
        }
        is_read = choose(found)
        for name in file:
            if not isinstance(file.get(name, getlink=True), h5py.HardLink):
                raise Unreadable(f"points to another place as {name!r}: it is not read.")
        names = [name for name in file if is_read(name)]
        left = size
        for name in names:
            left -= _check_variable(file, name, size)
            if left < 0:
                raise Unreadable("is damaged: its arrays are longer than the file.")
        return {name: _variable(file[name], size) for name in names}, found


def _word(place: Any, word: str, kind: str, size: int) -> Any:
    """Return the attribute `word`, a text or a whole number, or None if it is missing."""
    import h5py

    if word not in place.attrs:
        return None
    attribute = h5py.h5a.open(place.id, word.encode())
    if attribute.shape is None:  # NetCDF stores an empty text without a value
        return "" if kind == "text" else None
    is_text = h5py.check_string_dtype(attribute.dtype) is not None
    if attribute.shape not in ((), (1,)) or attribute.get_storage_size() > size:
        raise Unreadable(f"is damaged: {word} must be one {kind}.")
    if kind == "text" if not is_text else kind != "text":
        return None
    if not is_text and attribute.dtype.kind not in "iu":
        return None
    value = np.ravel(place.attrs[word])[0]  # NetCDF keeps a number as a list of one
    return str(value.decode() if isinstance(value, bytes) else value) if is_text else int(value)


def _check_variable(file: h5py.File, name: str, size: int) -> int:
    """Refuse a variable that is not in the file itself in one piece. Return its number of bytes
    without reading it.
    """
    import h5py

    variable = h5py.h5d.open(file.id, name.encode())
    layout = variable.get_create_plist()  # the shape comes later: asking for it opens other files
    if layout.get_layout() == h5py.h5d.VIRTUAL or layout.get_external_count():
        raise Unreadable(f"keeps {name} in another file: it is not read.")
    if variable.shape is None:
        raise Unreadable(f"is damaged: {name} has no entries.")
    is_empty = 0 in variable.shape  # NetCDF keeps an axis of length 0 as one that can grow
    if layout.get_nfilters() or layout.get_layout() == h5py.h5d.CHUNKED and not is_empty:
        raise Unreadable(
            f"keeps {name} compressed or in pieces, which `save` does not: it is not read."
        )
    kind, length = variable.dtype, variable.get_type().get_size()
    if kind.kind not in "iufbc" and h5py.check_string_dtype(kind) is None:
        raise Unreadable(f"is damaged: {name} must hold numbers or words.")
    needed = length
    for entries in variable.shape:  # Python's whole numbers do not overflow
        needed *= entries
    if needed > size or needed and variable.get_storage_size() < needed:
        raise Unreadable(f"is damaged: {name} is longer than the file.")
    return needed


def _variable(variable: h5py.Dataset, size: int) -> np.ndarray:
    """Return the array of a checked variable, as it was given to `file_bytes`."""
    import h5py

    if h5py.check_string_dtype(variable.dtype) is not None:
        return _texts(variable, size)
    array = np.asarray(variable[()])
    if array.dtype == np.int8 and _word(variable, "dtype", "text", size) == "bool":
        return array.astype(bool)
    if (
        _word(variable, "complex", "number", size)
        and array.dtype.kind == "f"
        and array.shape[-1:] == (2,)
    ):
        return np.ascontiguousarray(array).view(np.result_type(array.dtype, np.complex64))[..., 0]
    return array


def _texts(variable: h5py.Dataset, size: int) -> np.ndarray:
    """Return an array of words, read in blocks. Together they may not be longer than the file."""
    if not variable.shape:
        return np.array(_text(variable[()]), dtype=object)
    flat: list[str] = []
    block = max(1, min(1024, TEXT_BLOCK // max(1, size)))
    total, left = int(np.prod(variable.shape)), size
    rows = variable.shape[-1]
    for start in np.ndindex(*variable.shape[:-1]):
        for first in range(0, rows, block):
            flat += map(_text, variable[(*start, slice(first, first + block))])
            left -= sum(map(len, flat[-block:]))
            if left < 0:
                raise Unreadable("is damaged: its words are longer than the file.")
    assert len(flat) == total
    return np.array(flat, dtype=object).reshape(variable.shape)


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
