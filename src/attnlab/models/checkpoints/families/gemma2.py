"""Gemma 2: Gemma with norms around each part, capped scores, and a sliding window in every second
layer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attnlab.models.checkpoints.config_keys import honour_keys, windows_of
from attnlab.models.checkpoints.families import family
from attnlab.models.checkpoints.families.gemma import ANCHOR, gemma_norm
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
from attnlab.models.checkpoints.record import Config, Embedding, Layer, Parts, Tensors, sandwich
from attnlab.models.checkpoints.rotary import read_rotary

READS = (
    "rms_norm_eps",
    "hidden_activation",
    "rope_theta",
    "attn_logit_softcapping",
    "query_pre_attn_scalar",
    "sliding_window",
)


@family("gemma2", model_types=("gemma2",))
def read(tensors: Tensors, raw: Mapping[str, Any]) -> Parts:
    """The parts of a Gemma2Model, with or without the language-model head."""
    must_be(raw, "position_embedding_type", "rope", "rotary", None)
    d, heads = whole(raw, "hidden_size"), whole(raw, "num_attention_heads")
    layers, size = whole(raw, "num_hidden_layers", most=MOST_LAYERS), whole(raw, "head_dim", 256)
    theta, frequencies = read_rotary(raw, size)
    config = honour_keys(
        raw,
        Config(
            family="gemma2",
            d=d,
            heads=heads,
            kv_heads=read_kv_heads(raw, heads),
            head_size=size,
            layers=layers,
            hidden=whole(raw, "intermediate_size"),
            vocabulary=whole(raw, "vocab_size"),
            length=whole(raw, "max_position_embeddings", 8192),
            is_pre_norm=True,
            is_causal=True,
            activation=activation(raw, "hidden_activation", "gelu_pytorch_tanh"),
            rope_theta=theta,
            rope_size=size,
            rope_frequencies=frequencies,
        ),
        READS,
        "Gemma2",
    )
    eps, scale = (
        number(raw, "rms_norm_eps", 1e-6),
        number(raw, "query_pre_attn_scalar", 256) ** -0.5,
    )
    is_capped = raw.get("attn_logit_softcapping", 50.0) is not None
    cap = number(raw, "attn_logit_softcapping", 50.0) if is_capped else None
    reader = Reader(tensors, ANCHOR.format(0))
    reader.no_more_layers(ANCHOR, layers)
    reader.must_agree(raw, "attention_bias", "layers.0.self_attn.q_proj.bias")
    embedding = Embedding(reader.take("embed_tokens.weight", config.vocabulary, d), scale=d**0.5)
    found = tuple(
        sandwiched(
            reader,
            f"layers.{layer}.",
            config,
            eps,
            rotary=config.rotary,
            scale=scale,
            cap=cap,
            window=window,
        )
        for layer, window in enumerate(windows_of(raw, layers))
    )
    reader.refuse_unread("layers.", "gemma2")
    return Parts(config, embedding, found, gemma_norm(reader, "norm", d, eps))


def sandwiched(reader: Reader, at: str, config: Config, eps: float, **attention: Any) -> Layer:
    """A layer with a norm before and after each part; what attention has beside its matrices comes
    by name.
    """
    before_attention, after_attention, before_feedforward, after_feedforward = (
        gemma_norm(reader, f"{at}{name}_layernorm", config.d, eps)
        for name in ("input", "post_attention", "pre_feedforward", "post_feedforward")
    )
    return sandwich(
        read_attention(reader, at + "self_attn.", config, **attention),
        before_attention,
        after_attention,
        read_gated_feedforward(reader, at + "mlp.", config),
        before_feedforward,
        after_feedforward,
    )
