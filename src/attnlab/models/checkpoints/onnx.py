"""Read the weights in an ONNX file ourselves; only a few of its fields matter. A cut file gives the
weights before the cut.

An ONNX file is a protocol buffer: fields of a number and a length each. The graph (field 7 of the
model) lists its nodes (1) and its weights (5, "initializers"). A linear map is a node MatMul that
names its matrix, (in, out); everything else keeps the name it had in PyTorch.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from attnlab.models.checkpoints.files import widen_bfloat16
from attnlab.models.checkpoints.record import BadModel, Tensors

GRAPH, NODE, INITIALIZER = 7, 1, 5
MOST_FIELDS = 5_000_000  # of one message; a hostile file could be nothing but empty fields
RAW = {
    1: "<f4",
    10: "<f2",
    11: "<f8",
    16: "<u2",
}  # TensorProto.DataType: FLOAT, FLOAT16, DOUBLE, BFLOAT16
VARINT, EIGHT_BYTES, BYTES, FOUR_BYTES = 0, 1, 2, 5
NUMBER = {EIGHT_BYTES: 8, FOUR_BYTES: 4}


class Initializers(Mapping[str, np.ndarray]):
    """Weights by the names they had in PyTorch, as views into the mapped file."""

    def __init__(self, found: dict[str, np.ndarray], times_used: dict[str, int]):
        self._found = found
        self.times_used = (
            times_used  # how many nodes use a matrix: every layer uses that of a tied layer
        )

    def __getitem__(self, name: str) -> np.ndarray:
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


def open_onnx(path: Path) -> Initializers:
    """Return the float weights of an ONNX file."""
    if not path.is_file() or path.stat().st_size == 0:
        raise BadModel(
            f"{path.name} must be an ONNX file, but is missing or empty. Fetch it again."
        )
    with path.open("rb") as stream:
        view = memoryview(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ))
    tensors: dict[str, np.ndarray] = {}
    maps: dict[str, str] = {}
    times: dict[str, int] = {}
    for field, graph in _fields(view):
        if field != GRAPH or not isinstance(graph, memoryview):
            continue
        for part, body in _fields(graph):
            if part == INITIALIZER and isinstance(body, memoryview):
                named = _tensor(body)
                if named is not None:
                    tensors[named[0]] = named[1]
            elif part == NODE and isinstance(body, memoryview):
                name, matrix = _matrix_of(body)
                if matrix:
                    if (
                        matrix not in times
                    ):  # later uses are exported under other names: keep the first
                        maps.setdefault(name, matrix)
                    times[matrix] = times.get(matrix, 0) + 1
    if not tensors:
        raise BadModel(
            f"{path.name} must be an ONNX file with weights in it, but none were found. It is cut"
            " too early, or no ONNX file."
        )
    found = {
        name: tensors[source].T
        for name, source in maps.items()
        if source in tensors and tensors[source].ndim == 2
    }
    return Initializers(
        {**tensors, **found},
        {name: times[source] for name, source in maps.items() if name in found},
    )


def config_of(tensors: Tensors) -> dict[str, Any]:
    """Return the config of an ALBERT without config.json, from its weights. Heads are assumed to be
    64 wide.
    """
    query = "encoder.albert_layer_groups.0.albert_layers.0.attention.query.weight"
    found = next((name for name in tensors if name.endswith(query)), None)
    if found is None:
        raise BadModel(
            "An ONNX file is read as an ALBERT, but this one has no albert_layers. Export the model"
            " to safetensors instead."
        )
    prefix = found.removesuffix(query)
    shapes = {
        name: tensors[prefix + f"embeddings.{name}_embeddings.weight"].shape
        for name in ("word", "position", "token_type")
        if prefix + f"embeddings.{name}_embeddings.weight" in tensors
    }
    inner = prefix + "encoder.albert_layer_groups.0.albert_layers.0.ffn.weight"
    if len(shapes) < 3 or inner not in tensors:
        raise BadModel("The ONNX file is cut before the last weight of its ALBERT. Fetch it again.")
    d = tensors[found].shape[0]
    return {
        "model_type": "albert",
        "hidden_size": d,
        "num_attention_heads": max(1, d // 64),
        "num_hidden_layers": tensors.times_used.get(found, 12),
        "intermediate_size": tensors[inner].shape[0],
        "vocab_size": shapes["word"][0],
        "embedding_size": shapes["word"][1],
        "max_position_embeddings": shapes["position"][0],
        "type_vocab_size": shapes["token_type"][0],
    }


def _matrix_of(node: memoryview) -> tuple[str, str]:
    """Return the PyTorch name of a MatMul's weight, and the initializer of its second input; ("",
    "") for other nodes.
    """
    inputs, name, operation = [], "", ""
    for number, body in _fields(node):
        if isinstance(body, memoryview) and number in (1, 3, 4):
            text = bytes(body[:1000]).decode("utf-8", "replace")
            if number == 1:
                inputs.append(text)
            elif number == 3:
                name = text
            else:
                operation = text
    if operation != "MatMul" or len(inputs) != 2:
        return "", ""
    # a repeated layer is exported as MatMul_1, or as a path with _1 in it: the first name is that
    # of the layer
    return name.strip("/").rpartition("/")[0].replace("/", ".") + ".weight", inputs[1]


def _tensor(message: memoryview) -> tuple[str, np.ndarray] | None:
    """Return name and array of an initializer of real numbers; None for any other, or for one that
    the file cuts.
    """
    shape: list[int] = []
    name, kind, data, numbers = "", 0, None, None
    for number, body in _fields(message):
        if number == 1:
            shape += _varints(body) if isinstance(body, memoryview) else [body]
        elif number == 2 and isinstance(body, int):
            kind = body
        elif isinstance(body, memoryview):
            if number == 8:
                name = bytes(body[:1000]).decode("utf-8", "replace")
            elif number == 9:
                data = body
            elif number == 4:
                numbers = body
    if kind not in RAW or not name or any(size > len(message) for size in shape):
        return None
    source = data if data is not None else numbers if kind == 1 else None
    if source is None:
        return None
    dtype = np.dtype(RAW[kind])
    count = int(np.prod(shape, dtype=object)) if shape else 1
    if len(source) != count * dtype.itemsize:
        return None
    array = np.frombuffer(source, dtype=dtype).reshape(shape)
    return name, widen_bfloat16(array) if kind == 16 else array


def _fields(message: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Yield (field number, number or bytes) of a message. At a cut, yield the bytes so far and
    stop.
    """
    at, end = 0, len(message)
    for _ in range(MOST_FIELDS):
        if at >= end:
            return
        key, at = _varint(message, at)
        if key < 0:
            return
        number, kind = key >> 3, key & 7
        if kind == VARINT:
            value, at = _varint(message, at)
            if value < 0:
                return
            yield number, value
        elif kind == BYTES:
            length, at = _varint(message, at)
            if length < 0:
                return
            yield number, message[at : min(at + length, end)]
            at += length
        elif kind in NUMBER:
            yield number, message[at : at + NUMBER[kind]]
            at += NUMBER[kind]
        else:
            raise BadModel(
                f"The file must be a protocol buffer, but byte {at} starts a field of kind {kind},"
                " which there is not."
            )
    raise BadModel(
        f"The ONNX file has a message of more than {MOST_FIELDS:,} fields. It is refused."
    )


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    """Return the number of variable length at `at` and its end; (-1, .) if the file cuts it or it
    is too long.
    """
    value = 0
    for place in range(10):
        if at + place >= len(message):
            return -1, at
        byte = message[at + place]
        value |= (byte & 127) << (7 * place)
        if byte < 128:
            return value, at + place + 1
    return -1, at


def _varints(packed: memoryview) -> list[int]:
    values: list[int] = []
    at = 0
    while at < len(packed) and len(values) < 16:
        value, at = _varint(packed, at)
        if value < 0:
            break
        values.append(value)
    return values
