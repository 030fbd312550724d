"""Phi (1, 1.5 and 2): attention and feed-forward part read the same normed stream, rotary on a part
of each head, biases.
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
    read_attention,
    read_kv_heads,
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

ANCHOR = "layers.{}.self_attn.q_proj.weight"
READS = ("layer_norm_eps", "hidden_act", "rope_theta", "partial_rotary_factor", "qk_layernorm")


@family("phi", model_types=("phi",))
def read(tensors: Tensors, raw: Mapping[str, Any]) -> Parts:
    """The parts of a PhiModel, with or without the language-model head."""
    must_be(raw, "position_embedding_type", "rope", "rotary", None)
    must_be(raw, "qk_layernorm", False, True, None)
    d, heads = whole(raw, "hidden_size"), whole(raw, "num_attention_heads")
    layers, size = whole(raw, "num_hidden_layers", most=MOST_LAYERS), head_size_of(d, heads)
    rope_size = read_rotary_size(raw, size, 0.5)
    theta, frequencies = read_rotary(raw, rope_size)
    config = honour_keys(
        raw,
        Config(
            family="phi",
            d=d,
            heads=heads,
            kv_heads=read_kv_heads(raw, heads),
            head_size=size,
            layers=layers,
            hidden=whole(raw, "intermediate_size"),
            vocabulary=whole(raw, "vocab_size"),
            length=whole(raw, "max_position_embeddings", 2048),
            is_pre_norm=True,
            is_causal=True,
            is_parallel=True,
            activation=activation(raw, "hidden_act", "gelu_new"),
            rope_theta=theta,
            rope_size=rope_size,
            rope_frequencies=frequencies,
        ),
        READS,
        "Phi",
    )
    eps = number(raw, "layer_norm_eps", 1e-5)
    reader = Reader(tensors, ANCHOR.format(0))
    reader.no_more_layers(ANCHOR, layers)
    embedding = Embedding(reader.take("embed_tokens.weight", config.vocabulary, d))
    has_norms = bool(raw.get("qk_layernorm"))
    found = tuple(
        _layer_of(reader, f"layers.{layer}.", config, eps, has_norms) for layer in range(layers)
    )
    reader.refuse_unread("layers.", "phi")
    return Parts(config, embedding, found, reader.norm("final_layernorm", d, eps))


def _layer_of(reader: Reader, at: str, config: Config, eps: float, has_norms: bool) -> Layer:
    norms = {
        f"{what}_norm": reader.norm(f"{at}self_attn.{what[0]}_layernorm", config.head_size, eps)
        for what in (("query", "key") if has_norms else ())
    }
    attention = read_attention(
        reader, at + "self_attn.", config, "dense", has_biases=True, rotary=config.rotary, **norms
    )
    inner, inner_bias = reader.linear(at + "mlp.fc1", config.hidden, config.d)
    outer, outer_bias = reader.linear(at + "mlp.fc2", config.d, config.hidden)
    norm = reader.norm(at + "input_layernorm", config.d, eps)
    feedforward = FeedForward(config.activation, inner, outer, inner_bias, outer_bias)
    return pre_norm(attention, norm, feedforward, norm, is_parallel=True)
