"""The raw files of llama2.c: seven whole numbers and then every matrix in float32; and its
tokenizer.bin.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from attnlab.models.checkpoints.files import LONGEST_JSON, must_be_plain_file
from attnlab.models.checkpoints.joining import join_neighbours
from attnlab.models.checkpoints.record import BadModel

HEADER = ("dim", "hidden_dim", "n_layers", "n_heads", "n_kv_heads", "vocab_size", "seq_len")
BEGIN, BYTES_FROM, FIRST_PIECE = (
    1,
    3,
    259,
)  # the token before every text; byte b is token b + 3; pieces come after the bytes
LONGEST_PIECE = 4096


def is_llama2c(path: Path) -> bool:
    """Whether a .bin file is a raw one of llama2.c, not a pickle: seven plausible sizes that match
    its length.
    """
    try:
        _header(path)
    except BadModel:
        return False
    return True


def open_llama2c(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return the tensors of a raw file, views into the mapped file with the names of Hugging Face's
    Llama, and a config.
    """
    values, shapes, needed = _header(path)
    data = np.memmap(path, dtype="<f4", mode="r", offset=28, shape=((needed - 28) // 4,))
    tensors, at = {}, 0
    for name, shape in shapes:
        block = np.asarray(data[at : at + prod(shape)].reshape(shape))
        at += prod(shape)
        if "{}" in name:
            tensors.update({name.format(l): block[l] for l in range(shape[0])})
        else:
            tensors[name] = block
    config = {
        "model_type": "llama",
        "hidden_size": values["dim"],
        "intermediate_size": values["hidden_dim"],
        "num_hidden_layers": values["n_layers"],
        "num_attention_heads": values["n_heads"],
        "num_key_value_heads": values["n_kv_heads"],
        "vocab_size": values["vocab_size"],
        "max_position_embeddings": values["seq_len"],
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "rope_pairs": "neighbours",
    }
    return tensors, config


def _header(path: Path) -> tuple[dict[str, int], list[tuple[str, tuple[int, ...]]], int]:
    """Return the sizes, their shapes, and the number of bytes that the file must have."""
    size = path.stat().st_size if path.is_file() else 0
    if size < 4 * len(HEADER):
        raise BadModel(
            f"{path.name} must be a raw file of llama2.c, but is missing or has only {size} bytes."
            " Fetch it again."
        )
    with path.open("rb") as stream:
        values = dict(zip(HEADER, struct.unpack("<7i", stream.read(28)), strict=True))
    values["vocab_size"] = abs(
        values["vocab_size"]
    )  # negative: the file also has a classifier of its own, at its end
    if (
        any(not 0 < value < 1 << 24 for value in values.values())
        or values["dim"] % values["n_heads"]
    ):
        raise BadModel(
            f"{path.name} must begin with seven sizes as llama2.c writes them, found {values}. It"
            " is no such file, or damaged."
        )
    shapes = list(_shapes(values))
    needed = 28 + 4 * sum(prod(shape) for _, shape in shapes)
    if size < needed:
        raise BadModel(
            f"{path.name} is cut: its sizes need {needed:,} bytes, but there are {size:,}. Fetch"
            " the file again."
        )
    return values, shapes, needed


def _shapes(values: dict[str, int]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Names and shapes in the order of the file; {} stands for the layer, the first axis."""
    d, hidden, layers = values["dim"], values["hidden_dim"], values["n_layers"]
    narrow = d // values["n_heads"] * values["n_kv_heads"]
    yield "embed_tokens.weight", (values["vocab_size"], d)
    yield "layers.{}.input_layernorm.weight", (layers, d)
    yield "layers.{}.self_attn.q_proj.weight", (layers, d, d)
    yield "layers.{}.self_attn.k_proj.weight", (layers, narrow, d)
    yield "layers.{}.self_attn.v_proj.weight", (layers, narrow, d)
    yield "layers.{}.self_attn.o_proj.weight", (layers, d, d)
    yield "layers.{}.post_attention_layernorm.weight", (layers, d)
    yield "layers.{}.mlp.gate_proj.weight", (layers, hidden, d)
    yield "layers.{}.mlp.down_proj.weight", (layers, d, hidden)
    yield "layers.{}.mlp.up_proj.weight", (layers, hidden, d)
    yield "norm.weight", (d,)


class Pieces:
    """llama2.c's tokenizer: it begins with letters and joins the pair with the best score until no
    pair is a known piece.
    """

    def __init__(self, path: Path, vocabulary: int):
        if must_be_plain_file(path) > LONGEST_JSON:
            raise BadModel(
                f"{path.name} must not be longer than {LONGEST_JSON:,} bytes, but has"
                f" {path.stat().st_size:,}."
            )
        data, at = path.read_bytes(), 4
        self.pieces: list[bytes] = []
        self.scores: list[float] = []
        for number in range(vocabulary):
            score, length = (
                struct.unpack_from("<fi", data, at) if at + 8 <= len(data) else (0.0, -1)
            )
            if not 0 <= length <= LONGEST_PIECE or at + 8 + length > len(data):
                raise BadModel(
                    f"{path.name} must have {vocabulary} pieces, but number {number} is cut. Fetch"
                    " the model again."
                )
            self.scores.append(score)
            self.pieces.append(data[at + 8 : at + 8 + length])
            at += 8 + length
        # bytes replace letters without a piece, after all joining: no text matches the name of a
        # byte
        self._ids = {
            piece: number for number, piece in enumerate(self.pieces) if number >= FIRST_PIECE
        }
        self._scores_of = {piece: self.scores[number] for piece, number in self._ids.items()}
        if b" " not in self._ids:
            raise BadModel(
                f"{path.name} must have a piece that is a space, but has none. It is no tokenizer"
                " of llama2.c."
            )

    def __call__(self, text: str, special: bool = True) -> tuple[list[int], list[str]]:
        """Return ids and pieces; with special, after the token that begins every text."""
        letters = " " + text if text else ""  # as sentencepiece: a space first
        parts = join_neighbours([letter.encode() for letter in letters], self._scores_of)
        ids, words = ([BEGIN], ["<s>"]) if special else ([], [])
        for part in parts:
            if part in self._ids:
                ids.append(self._ids[part])
                words.append(part.decode("utf-8", "replace"))
            else:
                ids += [byte + BYTES_FROM for byte in part]
                words += [f"<0x{byte:02X}>" for byte in part]
        return ids, words
