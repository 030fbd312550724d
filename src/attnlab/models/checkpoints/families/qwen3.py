"""Qwen3: Llama's layer with RMSNorms on the queries and keys of each head."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attnlab.models.checkpoints.config_keys import honour_keys, windows_of
from attnlab.models.checkpoints.families import family
from attnlab.models.checkpoints.reading import (
    MOST_LAYERS,
    Reader,
    activation,
    must_be,
    number,
    read_attention,
    read_gated_feedforward,
    read_kv_heads,
    whole,
)
from attnlab.models.checkpoints.record import Config, Embedding, Norm, Parts, Tensors, pre_norm
from attnlab.models.checkpoints.rotary import read_rotary

ANCHOR = "layers.{}.self_attn.q_proj.weight"
READS = ("rms_norm_eps", "hidden_act", "rope_theta", "sliding_window")


@family("qwen3", model_types=("qwen3",))
def read(tensors: Tensors, raw: Mapping[str, Any]) -> Parts:
    """The parts of a Qwen3Model, with or without the language-model head."""
    must_be(raw, "position_embedding_type", "rope", "rotary", None)
    d, heads = whole(raw, "hidden_size"), whole(raw, "num_attention_heads")
    layers = whole(raw, "num_hidden_layers", most=MOST_LAYERS)
    size = whole(raw, "head_dim", 128)
    theta, frequencies = read_rotary(raw, size)
    config = honour_keys(
        raw,
        Config(
            family="qwen3",
            d=d,
            heads=heads,
            kv_heads=read_kv_heads(raw, heads),
            head_size=size,
            layers=layers,
            hidden=whole(raw, "intermediate_size"),
            vocabulary=whole(raw, "vocab_size"),
            length=whole(raw, "max_position_embeddings", 32768),
            is_pre_norm=True,
            is_causal=True,
            activation=activation(raw, "hidden_act", "silu"),
            rope_theta=theta,
            rope_size=size,
            rope_frequencies=frequencies,
        ),
        READS,
        "Qwen3",
    )
    eps = number(raw, "rms_norm_eps", 1e-6)
    reader = Reader(tensors, ANCHOR.format(0))
    reader.no_more_layers(ANCHOR, layers)
    reader.must_agree(raw, "attention_bias", "layers.0.self_attn.q_proj.bias")
    embedding = Embedding(reader.take("embed_tokens.weight", config.vocabulary, d))

    def norm(name: str, width: int) -> Norm:
        return Norm("rms", reader.take(name + ".weight", width), None, eps)

    found = []
    for layer, window in enumerate(windows_of(raw, layers)):
        at = f"layers.{layer}."
        attention = read_attention(
            reader,
            at + "self_attn.",
            config,
            rotary=config.rotary,
            window=window,
            query_norm=norm(at + "self_attn.q_norm", size),
            key_norm=norm(at + "self_attn.k_norm", size),
        )
        found.append(
            pre_norm(
                attention,
                norm(at + "input_layernorm", d),
                read_gated_feedforward(reader, at + "mlp.", config),
                norm(at + "post_attention_layernorm", d),
            )
        )
    reader.refuse_unread("layers.", "qwen3")
    return Parts(config, embedding, tuple(found), norm("norm", d))
