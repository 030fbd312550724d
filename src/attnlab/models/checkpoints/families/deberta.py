"""DeBERTa, version 2 and 3: BERT's layer, whose scores also compare queries and keys with vectors of
their distance.

A score is (<q_i, k_j> + <q_i, a[i - j]> + <b[i - j], k_j>) / sqrt(3 head size). The vectors a and b
are learned, one for each short distance and one for each interval of long distances.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from attnlab.models.checkpoints.config_keys import honour_keys
from attnlab.models.checkpoints.families import family
from attnlab.models.checkpoints.forward import apply_norm
from attnlab.models.checkpoints.reading import (
    MOST_LAYERS,
    EncoderNames,
    Reader,
    activation,
    cut_rows,
    encoder_layer,
    head_size_of,
    must_be,
    number,
    whole,
)
from attnlab.models.checkpoints.record import BadModel, Config, Embedding, Parts, Tensors

ANCHOR = "encoder.layer.{}.attention.self.query_proj.weight"
READS = ("layer_norm_eps", "hidden_act", "relative_attention")

NAMES = EncoderNames(
    "attention.self.query_proj",
    "attention.self.key_proj",
    "attention.self.value_proj",
    "attention.output.dense",
    "attention.output.LayerNorm",
    "intermediate.dense",
    "output.dense",
    "output.LayerNorm",
)


@family("deberta", model_types=("deberta-v2",), mark=ANCHOR.format(0))
def read(tensors: Tensors, raw: Mapping[str, Any]) -> Parts:
    """The parts of a DebertaV2Model, with or without a head for some task on top.

    A convolution beside the first layer, as in the xlarge models of version 2, is refused.
    """
    must_be(raw, "position_embedding_type", "absolute", None)
    must_be(raw, "conv_kernel_size", 0, None)
    for key, default in (
        ("relative_attention", False),
        ("share_att_key", False),
        ("position_biased_input", True),
    ):
        must_be(raw, key, default, not default, None)
    d, heads = whole(raw, "hidden_size"), whole(raw, "num_attention_heads")
    must_be(raw, "embedding_size", d, None)
    layers, size = whole(raw, "num_hidden_layers", most=MOST_LAYERS), head_size_of(d, heads)
    must_be(raw, "attention_head_size", size, None)
    config = honour_keys(
        raw,
        Config(
            family="deberta",
            d=d,
            heads=heads,
            kv_heads=heads,
            head_size=size,
            layers=layers,
            hidden=whole(raw, "intermediate_size"),
            vocabulary=whole(raw, "vocab_size"),
            length=whole(raw, "max_position_embeddings", 512),
            activation=activation(raw, "hidden_act", "gelu"),
        ),
        READS,
        "DebertaV2",
    )
    eps = number(raw, "layer_norm_eps", 1e-7)
    reader = Reader(tensors, ANCHOR.format(0))
    reader.no_more_layers(ANCHOR, layers)
    kinds = whole(raw, "type_vocab_size", 0, least=0)
    has_places = raw.get("position_biased_input") is not False
    embedding = Embedding(
        tokens=reader.take("embeddings.word_embeddings.weight", config.vocabulary, d),
        positions=(
            reader.take("embeddings.position_embeddings.weight", config.length, d)
            if has_places
            else None
        ),
        kinds=reader.take("embeddings.token_type_embeddings.weight", kinds, d) if kinds else None,
        norm=reader.norm("embeddings.LayerNorm", d, eps),
    )
    ways = _ways_of(raw)
    scale = (size * (1 + len(ways))) ** -0.5
    distances = _distances_of(reader, raw, config, eps) if raw.get("relative_attention") else None
    found = tuple(
        encoder_layer(
            reader,
            f"encoder.layer.{layer}.",
            NAMES,
            config,
            eps,
            scale=scale,
            **_vectors_of(reader, raw, f"encoder.layer.{layer}.attention.self.", distances, heads),
        )
        for layer in range(layers)
    )
    for layers_at in ("encoder.layer.", "encoder.conv."):
        reader.refuse_unread(layers_at, "deberta")
    return Parts(config, embedding, found)


def _ways_of(raw: Mapping[str, Any]) -> tuple[str, ...]:
    """Which of c2p (queries with distances) and p2c (distances with keys) pos_att_type names."""
    said = raw.get("pos_att_type")
    words = [word.strip() for word in said.lower().split("|")] if isinstance(said, str) else said
    if words is not None and not (
        isinstance(words, list | tuple) and all(isinstance(word, str) for word in words)
    ):
        raise BadModel(
            "pos_att_type in the config must be words such as 'p2c|c2p', found"
            f" {str(said)[:60]!r}. Take the config.json that came with the checkpoint."
        )
    return tuple(way for way in ("c2p", "p2c") if way in (words or ()))


def _distances_of(
    reader: Reader, raw: Mapping[str, Any], config: Config, eps: float
) -> tuple[np.ndarray, np.ndarray]:
    """The vectors of distances (rows, d), and the row of each offset of a key from its query."""
    farthest = whole(raw, "max_relative_positions", -1, least=-1)
    farthest = config.length if farthest < 1 else farthest
    buckets = whole(raw, "position_buckets", -1, least=-1)
    span = buckets if buckets > 0 else farthest
    vectors = np.asarray(reader.take("encoder.rel_embeddings.weight", 2 * span, config.d), float)
    norms = raw.get("norm_rel_ebd") or "none"
    if not isinstance(norms, str):
        raise BadModel(
            f"norm_rel_ebd in the config must be a word, found {str(norms)[:60]!r}. Take the"
            " config.json that came with the checkpoint."
        )
    if "layer_norm" in [word.strip() for word in norms.lower().split("|")]:
        vectors = apply_norm(reader.norm("encoder.LayerNorm", config.d, eps), vectors)
    before = np.arange(config.length, -config.length - 1, -1)  # the query's place minus the key's
    signed = log_buckets(before, buckets, farthest) if buckets > 0 else before
    return vectors, np.clip(signed + span, 0, 2 * span - 1)


def _vectors_of(
    reader: Reader,
    raw: Mapping[str, Any],
    at: str,
    distances: tuple[np.ndarray, np.ndarray] | None,
    heads: int,
) -> dict[str, np.ndarray]:
    """What the attention of a layer has for distances: their vectors as keys and as queries."""
    if distances is None:
        return {}
    vectors, rows = distances
    d = vectors.shape[1]
    is_shared, found = bool(raw.get("share_att_key")), {}
    for way, field, own, shared in (
        ("c2p", "offset_keys", "pos_key_proj", "key_proj"),
        ("p2c", "offset_queries", "pos_query_proj", "query_proj"),
    ):
        if way in _ways_of(raw):
            matrix, bias = reader.linear(at + (shared if is_shared else own), d, d)
            mapped = vectors @ np.asarray(matrix, dtype=float).T + bias  # (rows, d)
            found[field] = np.ascontiguousarray(cut_rows(mapped.T, heads).swapaxes(1, 2))
    return {**found, "offset_rows": rows} if found else {}


def log_buckets(offsets: np.ndarray, buckets: int, farthest: int) -> np.ndarray:
    """Return the signed number of the interval of each offset: short ones have their own, long ones
    share one on a logarithmic scale.
    """
    half = buckets // 2
    away = np.maximum(np.abs(offsets), half)
    if half < 2 or farthest - 1 <= half:
        raise BadModel(
            "position_buckets in the config must be at least 4 and at most twice"
            f" max_relative_positions - 2 (or max_position_embeddings - 2), found {buckets} for"
            f" {farthest}."
        )
    # in single precision, as the original: rounding decides where an interval begins
    share = np.log(away.astype(np.float32) / np.float32(half)) / np.log(
        np.float32((farthest - 1) / half)
    )
    wide = np.ceil(share * np.float32(half - 1)).astype(int) + half
    return np.where(np.abs(offsets) <= half, offsets, np.sign(offsets) * wide)
