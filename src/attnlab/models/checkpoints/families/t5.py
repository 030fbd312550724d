"""T5, mT5 and UMT5, their encoder: RMSNorm before, scores that are not divided by anything, biases
by distance.

The decoder is not read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from attnlab.models.checkpoints.config_keys import honour_keys
from attnlab.models.checkpoints.distances import buckets_of
from attnlab.models.checkpoints.families import family
from attnlab.models.checkpoints.reading import (
    ACTIVATIONS,
    MOST_LAYERS,
    Reader,
    activation,
    cut_columns,
    cut_rows,
    must_be,
    number,
    whole,
)
from attnlab.models.checkpoints.record import (
    ANY_LENGTH,
    Attention,
    BadModel,
    Config,
    Embedding,
    FeedForward,
    Norm,
    Parts,
    Tensors,
    pre_norm,
)

ANCHOR = "encoder.block.{}.layer.0.SelfAttention.q.weight"
BIASES = "encoder.block.{}.layer.0.SelfAttention.relative_attention_bias.weight"
READS = ("layer_norm_epsilon", "is_encoder_decoder")
MOST_DISTANCE = 1 << 20


@family(
    "t5",
    model_types=("t5", "mt5", "umt5"),
    mark=ANCHOR.format(0),
    aliases={
        "hidden_size": "d_model",
        "num_attention_heads": "num_heads",
        "num_hidden_layers": "num_layers",
        "head_dim": "d_kv",
    },
    inner="encoder.",
)
def read(tensors: Tensors, raw: Mapping[str, Any]) -> Parts:
    """The parts of the encoder of a T5Model, with or without a head for some task on top.

    In T5 and mT5 the first layer has the biases of all layers, in UMT5 each layer its own.
    """
    must_be(raw, "is_decoder", False, None)
    must_be(raw, "position_embedding_type", "absolute", None)
    d, heads = whole(raw, "d_model"), whole(raw, "num_heads")
    size, layers = whole(raw, "d_kv", 64), whole(raw, "num_layers", most=MOST_LAYERS)
    activation_name, has_gate = _activation_of(raw)
    config = honour_keys(
        raw,
        Config(
            family="t5",
            d=d,
            heads=heads,
            kv_heads=heads,
            head_size=size,
            layers=layers,
            hidden=whole(raw, "d_ff"),
            vocabulary=whole(raw, "vocab_size"),
            length=ANY_LENGTH,
            is_pre_norm=True,
            activation=activation_name,
        ),
        READS,
    )
    eps = number(raw, "layer_norm_epsilon", 1e-6)
    reader = Reader(tensors, ANCHOR.format(0))
    reader.no_more_layers(ANCHOR, layers)
    embedding = Embedding(
        reader.take_shared(("shared.weight", "encoder.embed_tokens.weight"), config.vocabulary, d)
    )

    def norm(name: str) -> Norm:
        return Norm("rms", reader.take(name + ".weight", d), None, eps)

    found = []
    biases = None
    for layer in range(layers):
        at = f"encoder.block.{layer}.layer."
        if layer == 0 or raw.get("model_type") == "umt5":
            biases = _biases_of(reader, raw, BIASES.format(layer), heads)
        found.append(
            pre_norm(
                _attention_of(reader, at + "0.SelfAttention.", config, biases),
                norm(at + "0.layer_norm"),
                _feedforward_of(reader, at + "1.DenseReluDense.", config, has_gate),
                norm(at + "1.layer_norm"),
            )
        )
    reader.refuse_unread("encoder.block.", "t5")
    return Parts(config, embedding, tuple(found), norm("encoder.final_layer_norm"))


def _activation_of(raw: Mapping[str, Any]) -> tuple[str, bool]:
    """The activation, and whether there is a gate, by feed_forward_proj: "relu" or "gated-gelu".

    dense_act_fn and is_gated_act say the same and come first, as in the original.
    """
    said = raw.get("feed_forward_proj")
    default = "relu" if raw.get("model_type") in ("t5", None) else "gated-gelu"
    said = default if said is None else said
    word = said.removeprefix("gated-") if isinstance(said, str) else None
    has_gate = word != said
    if said == "gated-gelu":
        word = "gelu_new"  # not the gelu that it is elsewhere
    if raw.get("dense_act_fn") is None and word not in ACTIVATIONS:
        raise BadModel(
            f"feed_forward_proj in the config is {str(said)[:40]!r}; known: one of"
            f" {', '.join(ACTIVATIONS)}, or gated- and one of them."
        )
    must_be(raw, "is_gated_act", has_gate, not has_gate, None)
    gate = raw.get("is_gated_act")
    return activation(raw, "dense_act_fn", str(word)), has_gate if gate is None else bool(gate)


def _biases_of(reader: Reader, raw: Mapping[str, Any], name: str, heads: int) -> np.ndarray:
    """The biases on scores by distance, (heads, 2 farthest + 1)."""
    buckets = whole(raw, "relative_attention_num_buckets", 32, least=4)
    farthest = whole(
        raw,
        "relative_attention_max_distance",
        128,
        least=buckets // 4 + 1,
        most=MOST_DISTANCE,
    )
    table = reader.take(name, buckets, heads)
    offsets = np.arange(-farthest, farthest + 1)
    return np.ascontiguousarray(table[buckets_of(offsets, buckets, farthest)].T)


def _attention_of(reader: Reader, at: str, config: Config, biases: np.ndarray | None) -> Attention:
    d, heads = config.d, config.heads
    wide = heads * config.head_size
    query, key, value = (
        cut_rows(reader.take(f"{at}{name}.weight", wide, d), heads) for name in "qkv"
    )
    return Attention(
        query,
        key,
        value,
        cut_columns(reader.take(at + "o.weight", d, wide), heads),
        scale=1.0,
        by_offset=biases,
    )


def _feedforward_of(reader: Reader, at: str, config: Config, has_gate: bool) -> FeedForward:
    d, hidden = config.d, config.hidden
    return FeedForward(
        config.activation,
        inner=reader.take(at + ("wi_1.weight" if has_gate else "wi.weight"), hidden, d),
        outer=reader.take(at + "wo.weight", d, hidden),
        gate=reader.take(at + "wi_0.weight", hidden, d) if has_gate else None,
    )
