"""Read the weights in an ONNX file ourselves; only a few of its fields matter. A cut file gives the
weights before the cut.

An ONNX file is a protocol buffer: fields of a number and a length each. The graph (field 7 of the
model) lists its nodes (1) and its weights (5, "initializers"). A linear map is a node MatMul that
names its matrix, (in, out); everything else keeps the name it had in PyTorch.

A file with weights of 8 bits has W_quantized, W_scale and a zero point for a matrix W, and a node
MatMulInteger for MatMul. W is scale (quantized - zero point). The file also rounds the tokens that a
matrix reads; that is left out here.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

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


WHOLE = {2: np.uint8, 3: np.int8}  # UINT8, INT8
QUANTIZED, SCALE = "_quantized", "_scale"


class Rounded(NamedTuple):
    """A matrix of 8 bits: the matrix is scale (whole - zero)."""

    whole: np.ndarray
    scale: np.ndarray
    zero: np.ndarray

    @property
    def ndim(self) -> int:
        """The number of its axes."""
        return self.whole.ndim

    @property
    def T(self) -> Rounded:
        """The transposed matrix. A scale for each column becomes one for each row."""
        scale, zero = (
            one[:, None] if one.ndim == 1 and one.size > 1 else one.reshape(-1)
            for one in (self.scale, self.zero)
        )
        return Rounded(self.whole.T, scale, zero)

    def array(self) -> np.ndarray:
        """The matrix in float32."""
        whole = self.whole.astype(np.float32) - self.zero.astype(np.float32)
        return np.asarray(self.scale.astype(np.float32) * whole)


class Initializers(Mapping[str, np.ndarray]):
    """Weights by the names they had in PyTorch, as views into the mapped file."""

    def __init__(self, found: dict[str, np.ndarray | Rounded], times_used: dict[str, int]):
        self._found = found
        self.times_used = (
            times_used  # how many nodes use a matrix: every layer uses that of a tied layer
        )

    def __getitem__(self, name: str) -> np.ndarray:
        found = self._found[name]
        return found.array() if isinstance(found, Rounded) else found

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
    arrays: dict[str, np.ndarray] = {}
    maps: dict[str, str] = {}
    times: dict[str, int] = {}
    zeros: dict[str, str] = {}  # the name of a scale: that of its zero point
    for field, graph in _fields(view):
        if field != GRAPH or not isinstance(graph, memoryview):
            continue
        for part, body in _fields(graph):
            if part == INITIALIZER and isinstance(body, memoryview):
                named = _tensor(body)
                if named is not None:
                    arrays[named[0]] = named[1]
            elif part == NODE and isinstance(body, memoryview):
                operation, name, inputs = _node(body)
                if operation == "DequantizeLinear" and len(inputs) == 3:
                    zeros[inputs[1]] = inputs[2]
                elif operation == "MatMulInteger" and len(inputs) == 4:
                    zeros[inputs[1].removesuffix(QUANTIZED) + SCALE] = inputs[3]
                matrix = _matrix_of(operation, inputs)
                if matrix:
                    if (
                        matrix not in times
                    ):  # later uses are exported under other names: keep the first
                        maps.setdefault(_name_of_map(name), matrix)
                    times[matrix] = times.get(matrix, 0) + 1
    tensors = _weights_of(arrays, zeros)
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


def _weights_of(
    arrays: Mapping[str, np.ndarray], zeros: Mapping[str, str]
) -> dict[str, np.ndarray | Rounded]:
    """Return the weights by name: those of real numbers, and those of 8 bits with their scales."""
    found: dict[str, np.ndarray | Rounded] = {
        name: array for name, array in arrays.items() if array.dtype.kind == "f"
    }
    for name, whole in arrays.items():
        base = name.removesuffix(QUANTIZED)
        scale, zero = arrays.get(base + SCALE), arrays.get(zeros.get(base + SCALE, ""))
        if base == name or scale is None or zero is None or whole.dtype.kind == "f":
            continue
        columns = whole.shape[-1] if whole.ndim else 0
        if (
            scale.dtype.kind != "f"
            or scale.size not in (1, columns)
            or zero.size not in (1, columns)
        ):
            raise BadModel(
                f"The weight {base[:80]!r} of 8 bits must have one scale and zero point, or one for"
                f" each of {columns} columns, found {scale.shape} and {zero.shape}."
            )
        found[base] = Rounded(whole, scale, zero)
    return found


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


def _node(node: memoryview) -> tuple[str, str, list[str]]:
    """Return the operation of a node, its name, and the names of its inputs."""
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
    return operation, name, inputs


def _matrix_of(operation: str, inputs: list[str]) -> str:
    """Return the name of the matrix of a linear map, the second input; "" for other nodes."""
    if operation == "MatMul" and len(inputs) == 2:
        return inputs[1]
    return inputs[1].removesuffix(QUANTIZED) if operation == "MatMulInteger" else ""


def _name_of_map(name: str) -> str:
    """Return the PyTorch name of the weight of a linear map, from the name of its node."""
    # a repeated layer is exported as MatMul_1, or as a path with _1 in it: the first name is that
    # of the layer
    return name.strip("/").rpartition("/")[0].replace("/", ".") + ".weight"


def _tensor(message: memoryview) -> tuple[str, np.ndarray] | None:
    """Return name and array of an initializer of real numbers or of 8 bits; None for any other, or
    for one that the file cuts.
    """
    shape: list[int] = []
    name, kind, data, numbers, whole = "", 0, None, None, list[int]()
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
            elif number == 5:
                whole = _varints(body, len(body))
        elif number == 5:
            whole = [body]
    if kind in WHOLE and name and all(size <= len(message) for size in shape):
        return _whole(name, shape, WHOLE[kind], data, whole)
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


def _whole(
    name: str, shape: list[int], dtype: Any, data: memoryview | None, numbers: list[int]
) -> tuple[str, np.ndarray] | None:
    """Return name and array of an initializer of 8 bits; None if it is cut."""
    count = int(np.prod(shape, dtype=object)) if shape else 1
    if data is None:
        data = memoryview(bytes(number & 255 for number in numbers))
    if len(data) != count:
        return None
    return name, np.frombuffer(data, dtype=dtype).reshape(shape)


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


def _varints(packed: memoryview, most: int = 16) -> list[int]:
    values: list[int] = []
    at = 0
    while at < len(packed) and len(values) < most:
        value, at = _varint(packed, at)
        if value < 0:
            break
        values.append(value)
    return values
