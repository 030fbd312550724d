"""GPT-NeoX, the family of Pythia: pre-norm, causal, rotary on part of each head, attention and
feed-forward side by side.

Its one matrix for queries, keys and values interleaves them per head: rows (h, 3, head size).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attnlab.models.checkpoints.config_keys import honour_keys
from attnlab.models.checkpoints.families import family
from attnlab.models.checkpoints.reading import (
    MOST_LAYERS,
    Reader,
    activation,
    head_size_of,
    must_be,
    number,
    read_joined_attention,
    whole,
)
from attnlab.models.checkpoints.record import (
    Config,
    Embedding,
    FeedForward,
    Layer,
    Parts,
    Tensors,
    pre_norm,
)
from attnlab.models.checkpoints.rotary import read_rotary, read_rotary_size

ANCHOR = "layers.{}.attention.query_key_value.weight"
READS = (
    "layer_norm_eps",
    "hidden_act",
    "rope_theta",
    "rotary_emb_base",
    "rotary_pct",
    "partial_rotary_factor",
    "use_parallel_residual",
)


@family("gpt_neox", model_types=("gpt_neox",), mark=ANCHOR.format(0))
def read(tensors: Tensors, raw: Mapping[str, Any]) -> Parts:
    """The parts of a GPTNeoXModel, with or without the language-model head."""
    must_be(raw, "position_embedding_type", "rotary", "rope", None)
    must_be(raw, "use_parallel_residual", True, False, None)
    d, heads = whole(raw, "hidden_size"), whole(raw, "num_attention_heads")
    layers = whole(raw, "num_hidden_layers", most=MOST_LAYERS)
    size = head_size_of(d, heads)
    rope_size = read_rotary_size(raw, size, number(raw, "rotary_pct", 0.25))
    theta, frequencies = read_rotary(raw, rope_size, base="rotary_emb_base")
    config = Config(
        family="gpt_neox",
        d=d,
        heads=heads,
        kv_heads=heads,
        head_size=size,
        layers=layers,
        hidden=whole(raw, "intermediate_size"),
        vocabulary=whole(raw, "vocab_size"),
        length=whole(raw, "max_position_embeddings", 2048),
        is_pre_norm=True,
        is_causal=True,
        is_parallel=raw.get("use_parallel_residual") is not False,
        activation=activation(raw, "hidden_act", "gelu"),
        rope_theta=theta,
        rope_size=rope_size,
        rope_frequencies=frequencies,
    )
    config = honour_keys(raw, config, READS)
    eps = number(raw, "layer_norm_eps", 1e-5)
    reader = Reader(tensors, ANCHOR.format(0))
    reader.no_more_layers(ANCHOR, layers)
    reader.must_agree(raw, "attention_bias", "layers.0.attention.query_key_value.bias")
    embedding = Embedding(reader.take("embed_in.weight", config.vocabulary, d))
    found = tuple(_layer_of(reader, f"layers.{l}.", config, eps) for l in range(layers))
    reader.refuse_unread("layers.", "gpt_neox")
    return Parts(config, embedding, found, reader.norm("final_layer_norm", d, eps))


def _layer_of(reader: Reader, at: str, config: Config, eps: float) -> Layer:
    d, hidden = config.d, config.hidden
    inner, inner_bias = reader.linear(at + "mlp.dense_h_to_4h", hidden, d)
    outer, outer_bias = reader.linear(at + "mlp.dense_4h_to_h", d, hidden)
    attention = read_joined_attention(reader, at + "attention.", config, rotary=config.rotary)
    feedforward = FeedForward(config.activation, inner, outer, inner_bias, outer_bias)
    return pre_norm(
        attention,
        reader.norm(at + "input_layernorm", d, eps),
        feedforward,
        reader.norm(at + "post_attention_layernorm", d, eps),
        config.is_parallel,
    )
