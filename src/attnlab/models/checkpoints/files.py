"""Read tensors from files, mapped and not copied. Nothing in a file is executed, and every length
in it is checked.
"""

from __future__ import annotations

import json
import math
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from attnlab.models.checkpoints.record import BadModel, Tensors

LONGEST_HEADER = 100_000_000  # bytes; the bound of the safetensors format itself
LONGEST_JSON = 50_000_000  # bytes of a config, an index or a tokenizer
MOST_NESTED = 50  # levels; real configs have three
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")

DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}
OTHER_SIZES = {
    "I64": 8,
    "U64": 8,
    "I32": 4,
    "U32": 4,
    "I16": 2,
    "U16": 2,
    "I8": 1,
    "U8": 1,
    "BOOL": 1,
}
"""Tensors of whole numbers, such as the position ids of old checkpoints. They are ignored."""


class TensorFile(Mapping[str, np.ndarray]):
    """The tensors of one safetensors file by name, as views into the mapped file (bfloat16: as
    float32 copies).
    """

    def __init__(self, path: Path):
        self.path = path
        size = must_be_plain_file(path)
        if size < 8:
            raise BadModel(
                f"{path.name} must be a safetensors file, but it has {size} bytes. It is cut: fetch"
                " it again."
            )
        with path.open("rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            if length > min(LONGEST_HEADER, size - 8):
                raise BadModel(
                    f"{path.name} must begin with the length of its header, but says {length:,}"
                    f" bytes in a file of {size:,}. It is cut, or no safetensors file: fetch it"
                    " again."
                )
            header = parse_json(stream.read(length), f"the header of {path.name}")
        self._entries = _check_entries(header, size - 8 - length, path.name)
        self.passed_over = frozenset(header) - frozenset(self._entries)
        is_empty = size == 8 + length  # which cannot be mapped
        self._data = (
            np.zeros(0, dtype=np.uint8)
            if is_empty
            else np.memmap(path, dtype=np.uint8, mode="r", offset=8 + length)
        )

    def __getitem__(self, name: str) -> np.ndarray:
        kind, shape, start, end = self._entries[name]
        array = np.asarray(self._data[start:end].view(DTYPES[kind]).reshape(shape))
        return widen_bfloat16(array) if kind == "BF16" else array

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


class Shards(Mapping[str, np.ndarray]):
    """The tensors of several files; `where` names the file of each."""

    def __init__(self, where: Mapping[str, TensorFile]):
        self._where = where
        files = {id(file): file for file in where.values()}
        self.passed_over = frozenset().union(*(file.passed_over for file in files.values()))

    def __getitem__(self, name: str) -> np.ndarray:
        return self._where[name][name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._where)

    def __len__(self) -> int:
        return len(self._where)


class Renamed(Mapping[str, np.ndarray]):
    """Tensors under other names; `where` names the old one of each."""

    def __init__(self, tensors: Tensors, where: Mapping[str, str]):
        self._tensors, self._where = tensors, where

    def __getitem__(self, name: str) -> np.ndarray:
        array: np.ndarray = self._tensors[self._where[name]]
        return array

    def __iter__(self) -> Iterator[str]:
        return iter(self._where)

    def __len__(self) -> int:
        return len(self._where)


class InMemory(Mapping[str, np.ndarray]):
    """A state dict, whose values are arrays or have .detach().cpu().numpy() as torch's have."""

    def __init__(self, state: Mapping[str, Any]):
        self._state = state

    def __getitem__(self, name: str) -> np.ndarray:
        value = self._state[name]
        if getattr(value, "is_meta", False):
            raise BadModel(
                f"The tensor {name} has no numbers, because it is on the device meta. Load the"
                " weights into the model first."
            )
        if hasattr(value, "detach"):
            value = value.detach().cpu()
            value = (
                value
                if str(value.dtype) in ("torch.float32", "torch.float64", "torch.float16")
                else value.float()
            ).numpy()
        array = np.asarray(value)
        if array.dtype.kind not in "fiub":
            raise BadModel(
                f"{name!r} in the state dict must be an array of real numbers, got"
                f" {type(value).__name__}."
            )
        return array if array.dtype.kind == "f" else array.astype(np.float32)

    def __iter__(self) -> Iterator[str]:
        return iter(self._state)

    def __len__(self) -> int:
        return len(self._state)


def open_safetensors(folder: Path) -> Tensors:
    """Return the tensors of a folder: model.safetensors, several files with an index, or its only
    .safetensors file.
    """
    if (folder / "model.safetensors.index.json").exists():
        return _open_shards(folder)
    if (folder / "model.safetensors").exists():
        return TensorFile(folder / "model.safetensors")
    found = sorted(folder.glob("*.safetensors"))
    if len(found) == 1:
        return TensorFile(found[0])
    if found:
        names = ", ".join(path.name for path in found[:4])
        raise BadModel(
            f"The folder has several weight files ({names}) but no model.safetensors.index.json"
            " that lists their tensors."
        )
    pickles = sorted(path for path in folder.iterdir() if path.suffix in PICKLES)
    if pickles:
        raise refuse_pickle(pickles[0].name)
    raise BadModel(
        f"The folder {folder.name} must hold model.safetensors (or several with an index), but"
        f" holds {_list_files(folder)}."
    )


def refuse_pickle(name: str) -> BadModel:
    """Return the error for a weight file that is a pickle, because unpickling can run any
    program.
    """
    return BadModel(
        f"{name} is a pickle. Reading a pickle can run any program in it, so it is refused. If you"
        " trust it, convert it: "
        f'weights = torch.load("{name}", weights_only=True); '
        "safetensors.torch.save_file({name: w.contiguous().clone() for name, w in weights.items()},"
        ' "model.safetensors"); '
        "then load the folder with that file. Where torch is installed, al.models.load(folder,"
        " torch_files=True) reads "
        "pytorch_model.bin with weights_only=True."
    )


def must_be_plain_file(path: Path) -> int:
    """Return the size of a file in bytes; refuse a folder, a pipe or a device, which may never
    end.
    """
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise BadModel(
            f"{path.name} must be a plain file, but is a folder, a pipe or a device. It is refused."
        )
    return found.st_size


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file of bounded size."""
    size = must_be_plain_file(path)
    if size > LONGEST_JSON:
        raise BadModel(
            f"{path.name} must not be longer than {LONGEST_JSON:,} bytes, but has {size:,}."
        )
    with path.open("rb") as stream:
        return parse_json(stream.read(LONGEST_JSON + 1), path.name)


def parse_json(text: bytes, what: str) -> dict[str, Any]:
    """Return the object in a JSON text. Raise BadModel if there is none."""
    try:
        value = json.loads(text.decode("utf-8"), object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError) as error:
        raise BadModel(
            f"{what} must be a JSON object, but cannot be read ({str(error)[:100]}). The file is"
            " damaged."
        ) from None
    if not isinstance(value, dict):
        raise BadModel(f"{what} must be a JSON object, found {type(value).__name__}.")
    inside: list[Any] = [value]
    for _ in range(MOST_NESTED):
        inside = [
            deeper
            for one in inside
            for deeper in (one.values() if isinstance(one, dict) else one)
            if isinstance(deeper, dict | list)
        ]
    if inside:  # printing such a value exhausts the stack
        raise BadModel(
            f"{what} must not be nested deeper than {MOST_NESTED} levels. The file is damaged, or"
            " made to do harm."
        )
    return value


def widen_bfloat16(bits: np.ndarray) -> np.ndarray:
    """Return bfloat16 numbers, given by their 16 bits, as float32: the bits are the upper half of
    the same number.
    """
    return (bits.astype(np.uint32) << 16).view(np.float32)


def _open_shards(folder: Path) -> Shards:
    where = read_json(folder / "model.safetensors.index.json").get("weight_map")
    if not isinstance(where, dict) or not all(isinstance(file, str) for file in where.values()):
        raise BadModel(
            "model.safetensors.index.json must have a weight_map from tensor names to file names."
        )
    files: dict[str, TensorFile] = {}
    for name in sorted(set(where.values())):
        # with a separator, a drive or a parent folder the index could name any file of this machine
        if (
            name in ("", ".", "..")
            or any(letter in name for letter in "/\\:\0")
            or not name.endswith(".safetensors")
        ):
            raise BadModel(
                "model.safetensors.index.json must name .safetensors files of its own folder,"
                f" found {name[:80]!r}. It is refused."
            )
        if not (folder / name).exists():
            raise BadModel(
                f"model.safetensors.index.json names {name!r}, but the folder does not have it."
                " Fetch the missing file."
            )
        if not _is_inside(folder, folder / name):
            raise BadModel(
                "model.safetensors.index.json must name .safetensors files of its own folder, but"
                f" {name!r} is a link that leads outside. It is refused: copy the file into the"
                " folder."
            )
        files[name] = TensorFile(folder / name)
    for tensor, name in where.items():
        if tensor not in files[name] and tensor not in files[name].passed_over:
            raise BadModel(
                f"model.safetensors.index.json says that {tensor[:80]!r} is in {name}, but it is"
                " not. Fetch both files again."
            )
    return Shards({tensor: files[name] for tensor, name in where.items() if tensor in files[name]})


def _is_inside(folder: Path, file: Path) -> bool:
    """Whether a file is in its folder, also through links. The hub's cache links from
    snapshots/REVISION to blobs.
    """
    home = folder.resolve()
    is_hub = home.parent.name == "snapshots" and home.parent.parent.name.startswith("models--")
    return file.resolve().is_relative_to(
        home.parent.parent / "blobs" if is_hub else home
    ) or file.resolve().is_relative_to(home)


def _check_entries(
    header: dict[str, Any], size: int, file: str
) -> dict[str, tuple[str, tuple[int, ...], int, int]]:
    """Return name -> (dtype, shape, start, end). Each must be inside the file, match its shape, and
    overlap no other.
    """
    entries, spans = {}, []
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        try:
            kind, shape, (start, end) = entry["dtype"], tuple(entry["shape"]), entry["data_offsets"]
            sound = all(
                type(value) is int and value >= 0 for value in (*shape, start, end)
            ) and isinstance(kind, str)
        except (TypeError, KeyError, ValueError):
            sound = False
        if not sound:
            raise BadModel(
                f"The header of {file} must give dtype, shape and data_offsets of {name[:80]!r}."
                " The file is damaged."
            )
        if end > size:
            raise BadModel(
                f"{file} is cut: {name[:80]!r} should end at byte {end:,}, but there are {size:,}."
                " Fetch the file again."
            )
        width = np.dtype(DTYPES[kind]).itemsize if kind in DTYPES else OTHER_SIZES.get(kind)
        if width is None:
            raise BadModel(
                f"{name[:80]!r} in {file} has the number type {kind[:20]!r}; F64, F32, F16 and BF16"
                " can be read. Convert it, or take the checkpoint that it was made from, with"
                " weights of 16 or 32 bits."
            )
        if end - start != math.prod(shape) * width:
            raise BadModel(
                f"{name[:80]!r} in {file} must have {math.prod(shape) * width:,} bytes by its shape"
                f" {shape}, but its offsets span {end - start:,}. The file is damaged."
            )
        spans.append((start, end, name))
        if kind in DTYPES:
            entries[name] = (kind, shape, start, end)
    spans.sort()
    for (_, end, name), (start, _, other) in zip(spans, spans[1:], strict=False):
        if start < end:
            raise BadModel(
                f"{name[:80]!r} and {other[:80]!r} overlap in {file}. The file is damaged."
            )
    return entries


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("it has a name twice")
    return found


def _list_files(folder: Path) -> str:
    names = sorted(path.name for path in folder.iterdir())
    return ", ".join(names[:6]) + (" and more" if len(names) > 6 else "") if names else "nothing"
