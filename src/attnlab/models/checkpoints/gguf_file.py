"""Read a GGUF file: numbers and words by key, and tensors by name, mapped and not copied.

We read the header ourselves, with every length checked. Blocks of few bits become float32 through
the library `gguf`; F64, F32, F16 and BF16 need no library.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from attnlab.checks import MissingLibrary
from attnlab.models.checkpoints.files import must_be_plain_file, widen_bfloat16
from attnlab.models.checkpoints.record import BadModel

INSTALL = "pip install 'attnlab[gguf]'"

MAGIC, VERSIONS, ALIGNMENT = b"GGUF", (2, 3), 32
LONGEST_NAME, MOST_DIMENSIONS = 1 << 16, 4

PLAIN = {0: ("F32", "<f4"), 1: ("F16", "<f2"), 28: ("F64", "<f8"), 30: ("BF16", "<u2")}

BLOCKS = {
    2: ("Q4_0", 32, 18),
    3: ("Q4_1", 32, 20),
    6: ("Q5_0", 32, 22),
    7: ("Q5_1", 32, 24),
    8: ("Q8_0", 32, 34),
    12: ("Q4_K", 256, 144),
    13: ("Q5_K", 256, 176),
    14: ("Q6_K", 256, 210),
}
"""{number of a type: (name, numbers in a block, bytes of a block)}."""

OTHERS = {
    9: "Q8_1", 10: "Q2_K", 11: "Q3_K", 15: "Q8_K", 16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S", 20: "IQ4_NL",
    21: "IQ3_S", 22: "IQ2_S", 23: "IQ4_XS", 24: "I8", 25: "I16", 26: "I32", 27: "I64", 29: "IQ1_M", 34: "TQ1_0", 35: "TQ2_0",
    39: "MXFP4",
}  # fmt: skip
"""Types that are refused, by their names."""

STRING, ARRAY = 8, 9
NUMBERS = {
    0: "<u1",
    1: "<i1",
    2: "<u2",
    3: "<i2",
    4: "<u4",
    5: "<i4",
    6: "<f4",
    7: "|b1",
    10: "<u8",
    11: "<i8",
    12: "<f8",
}
"""{number of a kind of value: its dtype}."""


class Entry(NamedTuple):
    """A tensor in the file: its type, its shape, and its first and last byte."""

    kind: int
    shape: tuple[int, ...]
    start: int
    end: int


class GgufFile(Mapping[str, np.ndarray]):
    """The tensors of a GGUF file by name, in rows as NumPy has them; `fields` has the rest."""

    def __init__(self, path: Path):
        size = must_be_plain_file(path)
        if size < 24:
            raise BadModel(f"{path.name} must be a GGUF file, but has {size} bytes. It is cut.")
        self.path = path
        self._data = np.memmap(path, dtype=np.uint8, mode="r")
        cursor = _Cursor(self._data.data, path.name)
        if bytes(cursor.take(4)) != MAGIC:
            raise BadModel(f"{path.name} must begin with the letters GGUF. It is another file.")
        version = cursor.number("<I")
        if version not in VERSIONS:
            raise BadModel(
                f"{path.name} has version {version} of the format, but only 2 and 3 in the byte"
                " order of this machine can be read. Convert the model again."
            )
        tensors, keys = cursor.number("<Q"), cursor.number("<Q")
        self.fields = dict(_unique(cursor, "key", (_field(cursor) for _ in _count(keys, cursor))))
        found = dict(_unique(cursor, "tensor", (_info(cursor) for _ in _count(tensors, cursor))))
        self._entries = _place(found, self._start(cursor.at), size, path.name)

    def _start(self, end: int) -> int:
        """Return the byte where the tensors begin, after the header that ends at `end`."""
        alignment = self.fields.get("general.alignment", ALIGNMENT)
        if not isinstance(alignment, int) or not 0 < alignment <= 1 << 20:
            raise BadModel(
                f"general.alignment in {self.path.name} must be a small whole number, found"
                f" {str(alignment)[:40]!r}."
            )
        return -(-end // alignment) * alignment

    def __getitem__(self, name: str) -> np.ndarray:
        kind, shape, start, end = self._entries[name]
        data = self._data[start:end]
        if kind in PLAIN:
            array = np.asarray(data.view(PLAIN[kind][1]).reshape(shape))
            return widen_bfloat16(array) if PLAIN[kind][0] == "BF16" else array
        quants, types = _library()
        _, _, width = BLOCKS[kind]
        with np.errstate(all="ignore"):  # damaged scales may be infinite; the reader refuses them
            blocks = np.ascontiguousarray(data).reshape(-1, width)
            array = quants.dequantize(blocks, types(kind))
        return np.asarray(array, dtype=np.float32).reshape(shape)

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def is_gguf(path: Path) -> bool:
    """Whether a file begins like a GGUF file."""
    with path.open("rb") as stream:
        return stream.read(4) == MAGIC


def _library() -> tuple[Any, Any]:
    try:
        from gguf import GGMLQuantizationType, quants
    except ImportError:
        raise MissingLibrary(
            f"A GGUF file with numbers of few bits needs the library gguf: {INSTALL}"
        ) from None
    return quants, GGMLQuantizationType


class _Cursor:
    """The bytes of a file from the beginning on."""

    def __init__(self, view: memoryview, file: str):
        self.view, self.file, self.at = view, file, 0

    def take(self, count: int) -> memoryview:
        """Return the next `count` bytes."""
        if count > len(self.view) - self.at:
            raise BadModel(
                f"{self.file} is cut or damaged: its header needs {count:,} bytes at byte"
                f" {self.at:,}, and the file has {len(self.view):,}. Fetch it again."
            )
        self.at += count
        return self.view[self.at - count : self.at]

    def number(self, form: str) -> int:
        """Return the next number."""
        value: int = struct.unpack(form, self.take(struct.calcsize(form)))[0]
        return value

    def name(self) -> str:
        """Return the next short text, a key or the name of a tensor."""
        length = self.number("<Q")
        if not 0 < length <= LONGEST_NAME:
            raise BadModel(
                f"{self.file} is damaged: a name at byte {self.at:,} has {length:,} bytes."
            )
        return self.text(length)

    def text(self, length: int) -> str:
        """Return a text of that many bytes."""
        return bytes(self.take(length)).decode("utf-8", "replace")


def _count(count: int, cursor: _Cursor) -> range:
    if count > len(cursor.view) // 8:
        raise BadModel(f"{cursor.file} is damaged: it declares {count:,} keys or tensors.")
    return range(count)


def _unique(cursor: _Cursor, what: str, pairs: Iterator[tuple[str, Any]]) -> Iterator[Any]:
    seen = set()
    for name, value in pairs:
        if name in seen:
            raise BadModel(f"{cursor.file} is damaged: it has the {what} {name[:80]!r} twice.")
        seen.add(name)
        yield name, value


def _field(cursor: _Cursor) -> tuple[str, Any]:
    """Return a key and its value: a number, a text, an array of numbers or a list of texts."""
    name, kind = cursor.name(), cursor.number("<I")
    if kind != ARRAY:
        return name, _value(cursor, name, kind)
    kind, count = cursor.number("<I"), cursor.number("<Q")
    if kind == STRING:
        return name, [cursor.text(cursor.number("<Q")) for _ in _count(count, cursor)]
    if kind not in NUMBERS:
        raise BadModel(f"{name[:80]!r} in {cursor.file} is an array of unknown kind {kind}.")
    dtype = np.dtype(NUMBERS[kind])
    return name, np.frombuffer(cursor.take(count * dtype.itemsize), dtype)


def _value(cursor: _Cursor, name: str, kind: int) -> Any:
    if kind == STRING:
        return cursor.text(cursor.number("<Q"))
    if kind not in NUMBERS:
        raise BadModel(f"{name[:80]!r} in {cursor.file} has a value of unknown kind {kind}.")
    dtype = np.dtype(NUMBERS[kind])
    value = np.frombuffer(cursor.take(dtype.itemsize), dtype)[0]
    # a number that was 1e-05 comes back as 1e-05, and not as the nearest one of single precision
    return float(str(value)) if dtype.kind == "f" else value.item()


def _info(cursor: _Cursor) -> tuple[str, tuple[int, tuple[int, ...], int]]:
    """Return a tensor's name, and its type, shape and place after the header."""
    name, dimensions = cursor.name(), cursor.number("<I")
    if not 0 < dimensions <= MOST_DIMENSIONS:
        raise BadModel(
            f"The tensor {name[:80]!r} in {cursor.file} must have 1 to {MOST_DIMENSIONS} axes, found"
            f" {dimensions}. The file is damaged."
        )
    sizes = struct.unpack(f"<{dimensions}Q", cursor.take(8 * dimensions))
    return name, (cursor.number("<I"), sizes[::-1], cursor.number("<Q"))


def _place(
    found: Mapping[str, tuple[int, tuple[int, ...], int]], start: int, size: int, file: str
) -> dict[str, Entry]:
    """Return where each tensor is. Each must be inside the file and overlap no other."""
    entries = {}
    for name, (kind, shape, offset) in found.items():
        if kind in PLAIN:
            block, width = 1, np.dtype(PLAIN[kind][1]).itemsize
        elif kind in BLOCKS:
            _, block, width = BLOCKS[kind]
        else:
            known = ", ".join(str(one[0]) for one in (*PLAIN.values(), *BLOCKS.values()))
            raise BadModel(
                f"The tensor {name[:80]!r} in {file} is of type {OTHERS.get(kind, kind)}, which is"
                f" not read here. Known: {known}. Take a file of one of these types."
            )
        if shape[-1] % block or 0 in shape:
            raise BadModel(
                f"The rows of {name[:80]!r} in {file} must be whole blocks of {block} numbers, but"
                f" its shape is {shape}. The file is damaged."
            )
        length = math.prod(shape) // block * width
        if start + offset + length > size:
            raise BadModel(
                f"{file} is cut: {name[:80]!r} should end at byte {start + offset + length:,}, but"
                f" there are {size:,}. Fetch the file again."
            )
        entries[name] = Entry(kind, shape, start + offset, start + offset + length)
    spans = sorted((one.start, one.end, name) for name, one in entries.items())
    for (_, end, name), (begin, _, other) in zip(spans, spans[1:], strict=False):
        if begin < end:
            raise BadModel(
                f"{name[:80]!r} and {other[:80]!r} overlap in {file}. The file is damaged."
            )
    return entries
