"""Llama and what computes the same (SmolLM, Mistral, Qwen2): RMSNorm before, rotary positions, grouped keys, a gate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attnlab.models.config_keys import honour_keys
from attnlab.models.families import family
from attnlab.models.reading import (
    MOST_LAYERS,
    Reader,
    activation,
    cut_bias,
    cut_columns,
    cut_rows,
    head_size_of,
    must_be,
    number,
    whole,
)
from attnlab.models.record import Attention, BadModel, Config, Embedding, FeedForward, Layer, Norm, Parts, Tensors, pre_norm
from attnlab.models.rotary import read_rotary

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
    kv_heads, size = whole(raw, "num_key_value_heads", heads), whole(raw, "head_dim", 0, least=0) or head_size_of(d, heads)
    if heads % kv_heads:
        raise BadModel(
            f"The {heads} heads must be a multiple of the key heads they share, but the config says {kv_heads} of those."
        )
    theta, frequencies = read_rotary(raw, size)
    config = Config(
        family="llama", d=d, heads=heads, kv_heads=kv_heads, head_size=size, layers=layers,
        hidden=whole(raw, "intermediate_size"), vocabulary=whole(raw, "vocab_size"),
        length=whole(raw, "max_position_embeddings", 2048),
        is_pre_norm=True, is_causal=True, activation=activation(raw, "hidden_act", "silu"),
        rope_theta=theta, rope_size=size, rope_frequencies=frequencies, rope_pairs=raw.get("rope_pairs") or "halves",
    )  # fmt: skip
    config = honour_keys(raw, config, ("rms_norm_eps", "hidden_act", "rope_theta"))
    eps = number(raw, "rms_norm_eps", 1e-6)
    reader = Reader(tensors, ANCHOR.format(0))
    reader.no_more_layers(ANCHOR, layers)
    if raw.get("model_type") in ("llama", None):            # the others do not read these keys
        reader.must_agree(raw, "attention_bias", "layers.0.self_attn.q_proj.bias")
        reader.must_agree(raw, "mlp_bias", "layers.0.mlp.up_proj.bias")
    embedding = Embedding(reader.take("embed_tokens.weight", config.vocabulary, d))
    found = tuple(_layer_of(reader, f"layers.{l}.", config, eps) for l in range(layers))
    reader.refuse_unread("layers.", "llama")
    return Parts(config, embedding, found, Norm("rms", reader.take("norm.weight", d), None, eps))


def _layer_of(reader: Reader, at: str, config: Config, eps: float) -> Layer:
    d, heads, kv_heads, hidden = config.d, config.heads, config.kv_heads, config.hidden
    wide, narrow = heads * config.head_size, kv_heads * config.head_size
    attention = Attention(
        query=cut_rows(reader.take(at + "self_attn.q_proj.weight", wide, d), heads),
        key=cut_rows(reader.take(at + "self_attn.k_proj.weight", narrow, d), kv_heads),
        value=cut_rows(reader.take(at + "self_attn.v_proj.weight", narrow, d), kv_heads),
        output=cut_columns(reader.take(at + "self_attn.o_proj.weight", d, wide), heads),
        query_bias=cut_bias(reader.optional(at + "self_attn.q_proj.bias", wide), heads),
        key_bias=cut_bias(reader.optional(at + "self_attn.k_proj.bias", narrow), kv_heads),
        value_bias=cut_bias(reader.optional(at + "self_attn.v_proj.bias", narrow), kv_heads),
        output_bias=reader.optional(at + "self_attn.o_proj.bias", d),
        rotary=config.rotary,
    )
    feedforward = FeedForward(
        config.activation,
        inner=reader.take(at + "mlp.up_proj.weight", hidden, d),
        inner_bias=reader.optional(at + "mlp.up_proj.bias", hidden),
        gate=reader.take(at + "mlp.gate_proj.weight", hidden, d),
        gate_bias=reader.optional(at + "mlp.gate_proj.bias", hidden),
        outer=reader.take(at + "mlp.down_proj.weight", d, hidden),
        outer_bias=reader.optional(at + "mlp.down_proj.bias", d),
    )
    return pre_norm(attention, Norm("rms", reader.take(at + "input_layernorm.weight", d), None, eps),
                    feedforward, Norm("rms", reader.take(at + "post_attention_layernorm.weight", d), None, eps))
