"""ONNX files with weights of 8 bits: the model of the numbers that the bits mean."""

from __future__ import annotations

import json

import numpy as np
import pytest

import attnlab as al
import tiny_models
from attnlab.models import BadModel
from attnlab.models.checkpoints.onnx import open_onnx
from tiny_models import field, varint

IDS = [3, 17, 5, 0]


def initializer(name, array, kind, in_numbers=False):
    """A weight; in_numbers: as a list of numbers, as small ones are written."""
    body = b"".join(varint(1 << 3) + varint(size) for size in array.shape)
    body += varint(2 << 3) + varint(kind) + field(8, name)
    if in_numbers and kind == 1:
        return field(5, body + field(4, array.astype("<f4").tobytes()))
    if in_numbers:  # a negative number is one of 64 bits
        packed = b"".join(varint(int(number) & (1 << 64) - 1) for number in array.reshape(-1))
        return field(5, body + field(5, packed))
    return field(5, body + field(9, array.tobytes()))


def node(operation, name, *inputs):
    return field(
        1, b"".join(field(1, one) for one in inputs) + field(3, name) + field(4, operation)
    )


def rounded(matrix, kind, per_column):
    """(whole numbers, scales, zero points) of a matrix (in, out) of real numbers."""
    axis = 0 if per_column else None
    low, high = (np.minimum(matrix.min(axis=axis), 0), np.maximum(matrix.max(axis=axis), 0))
    scale = ((high - low) / 255).astype(np.float32)
    first = 0 if kind is np.uint8 else -128
    zero = np.round(first - low / scale).clip(first, first + 255)
    whole = np.round(matrix / scale + zero).clip(first, first + 255)
    return whole.astype(kind), np.asarray(scale), np.asarray(zero).astype(kind)


def file_of(state, kind, per_column, in_numbers):
    """The bytes of the file, and the state dict of the numbers that it means."""
    number = {np.uint8: 2, np.int8: 3}[kind]
    nodes, weights, means = b"", b"", {}
    for place, (name, array) in enumerate(state.items()):
        if array.ndim < 2:
            weights += initializer(name, array, 1)
            means[name] = array
            continue
        is_table = "embeddings." in name
        matrix = array if is_table else np.ascontiguousarray(array.T)
        whole, scale, zero = rounded(matrix, kind, per_column and not is_table)
        back = scale.astype(float) * (whole.astype(float) - zero.astype(float))
        means[name] = back if is_table else back.T
        base = name if is_table else f"onnx::MatMul_{place}"
        weights += initializer(base + "_quantized", whole, number)
        weights += initializer(base + "_scale", scale, 1, in_numbers)
        weights += initializer(f"zero_{place}", zero, number, in_numbers)
        path = "/" + name.removesuffix(".weight").replace(".", "/")
        path = path.replace("groups/0/albert_layers/0", "groups.0/albert_layers.0")
        if is_table:
            nodes += node("Gather", path, base + "_quantized", "ids")
            nodes += node("DequantizeLinear", path, "rows", base + "_scale", f"zero_{place}")
        for use in range(3 if "albert_layers" in name else 1):
            label = f"{path}{f'_{use}' if use else ''}/MatMul_quant"
            inputs = (f"x{use}", base + "_quantized", f"x_zero{use}", f"zero_{place}")
            if not is_table:
                nodes += node("MatMulInteger", label, *inputs)
    return varint(1 << 3) + varint(8) + field(7, nodes + weights), means


@pytest.mark.parametrize("kind", [np.uint8, np.int8])
@pytest.mark.parametrize("per_column", [False, True])
@pytest.mark.parametrize("in_numbers", [False, True])
def test_weights_of_8_bits_are_the_numbers_that_they_mean(kind, per_column, in_numbers, tmp_path):
    state, raw = tiny_models.albert("encoder.bert.")
    data, means = file_of(state, kind, per_column, in_numbers)
    (tmp_path / "model.onnx").write_bytes(data)
    (tmp_path / "attnlab.json").write_text('{"format": "onnx"}')
    (tmp_path / "config.json").write_text(json.dumps(raw))
    ours = al.models.load(tmp_path)
    expected = al.models.load(means, config=raw).hidden_states(IDS)
    assert np.abs(ours.hidden_states(IDS) - expected).max() < 1e-5 * np.abs(expected).max()
    exact = al.models.load(state, config=raw).hidden_states(IDS)
    away = np.abs(expected - exact).max() / np.abs(exact).max()
    assert 1e-4 < away < 0.1  # they are rounded, and they are the same model
    (tmp_path / "config.json").unlink()  # the shapes say it
    assert al.models.load(tmp_path).config.layers == 3


def test_scales_of_another_size_are_refused(tmp_path):
    weights = initializer("w_quantized", np.zeros((2, 3), np.int8), 3)
    weights += initializer("w_scale", np.ones(2, np.float32), 1)
    weights += initializer("zero", np.zeros((), np.int8), 3)
    nodes = node("MatMulInteger", "/a/MatMul_quant", "x", "w_quantized", "x_zero", "zero")
    (tmp_path / "m.onnx").write_bytes(field(7, nodes + weights))
    with pytest.raises(BadModel, match="one scale and zero point, or one for each of 3 columns"):
        open_onnx(tmp_path / "m.onnx")


def test_a_matrix_without_its_zero_point_is_missing(tmp_path):
    weights = initializer("w_quantized", np.zeros((2, 3), np.int8), 3)
    weights += initializer("w_scale", np.ones((), np.float32), 1)
    (tmp_path / "m.onnx").write_bytes(field(7, weights))
    assert list(open_onnx(tmp_path / "m.onnx")) == ["w_scale"]
