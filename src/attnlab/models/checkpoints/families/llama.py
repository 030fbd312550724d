"""Llama and what computes the same (SmolLM, Mistral, Qwen2): RMSNorm before, rotary positions,
grouped keys, a gate.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attnlab.models.checkpoints.config_keys import honour_keys, windows_of
from attnlab.models.checkpoints.families import family
from attnlab.models.checkpoints.reading import (
    MOST_LAYERS,
    Reader,
    activation,
    head_size_of,
    must_be,
    number,
    read_attention,
    read_gated_feedforward,
    read_kv_heads,
    whole,
)
from attnlab.models.checkpoints.record import (
    Config,
    Embedding,
    Layer,
    Norm,
    Parts,
    Tensors,
    pre_norm,
)
from attnlab.models.checkpoints.rotary import read_rotary

ANCHOR = "layers.{}.self_attn.q_proj.weight"


@family("llama", model_types=("llama", "mistral", "qwen2"), mark=ANCHOR.format(0))
def read(tensors: Tensors, raw: Mapping[str, Any]) -> Parts:
    """The parts of a LlamaModel, with or without the language-model head.

    `rope_pairs` in the config is ours: llama2.c pairs neighbours.
    """
    must_be(raw, "rope_pairs", "halves", "neighbours")
    must_be(raw, "position_embedding_type", "rope", "rotary", None)
    d, heads = whole(raw, "hidden_size"), whole(raw, "num_attention_heads")
    layers = whole(raw, "num_hidden_layers", most=MOST_LAYERS)
    kv_heads, size = (
        read_kv_heads(raw, heads),
        whole(raw, "head_dim", 0, least=0) or head_size_of(d, heads),
    )
    theta, frequencies = read_rotary(raw, size)
    config = Config(
        family="llama",
        d=d,
        heads=heads,
        kv_heads=kv_heads,
        head_size=size,
        layers=layers,
        hidden=whole(raw, "intermediate_size"),
        vocabulary=whole(raw, "vocab_size"),
        length=whole(raw, "max_position_embeddings", 2048),
        is_pre_norm=True,
        is_causal=True,
        activation=activation(raw, "hidden_act", "silu"),
        rope_theta=theta,
        rope_size=size,
        rope_frequencies=frequencies,
        rope_pairs=raw.get("rope_pairs") or "halves",
    )
    config = honour_keys(
        raw, config, ("rms_norm_eps", "hidden_act", "rope_theta", "sliding_window")
    )
    eps = number(raw, "rms_norm_eps", 1e-6)
    reader = Reader(tensors, ANCHOR.format(0))
    reader.no_more_layers(ANCHOR, layers)
    if raw.get("model_type") in ("llama", None):  # the others do not read these keys
        reader.must_agree(raw, "attention_bias", "layers.0.self_attn.q_proj.bias")
        reader.must_agree(raw, "mlp_bias", "layers.0.mlp.up_proj.bias")
    embedding = Embedding(reader.take("embed_tokens.weight", config.vocabulary, d))
    windows = windows_of(raw, layers)
    found = tuple(_layer_of(reader, f"layers.{l}.", config, eps, windows[l]) for l in range(layers))
    reader.refuse_unread("layers.", "llama")
    return Parts(config, embedding, found, Norm("rms", reader.take("norm.weight", d), None, eps))


def _layer_of(reader: Reader, at: str, config: Config, eps: float, window: int | None) -> Layer:
    attention = read_attention(
        reader, at + "self_attn.", config, rotary=config.rotary, window=window
    )
    return pre_norm(
        attention,
        Norm("rms", reader.take(at + "input_layernorm.weight", config.d), None, eps),
        read_gated_feedforward(reader, at + "mlp.", config),
        Norm("rms", reader.take(at + "post_attention_layernorm.weight", config.d), None, eps),
    )
