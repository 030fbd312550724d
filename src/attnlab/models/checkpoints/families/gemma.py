"""Gemma, the first one: Llama's layer with gains 1 + w, tokens scaled by sqrt(d), and heads with
their own width.

Its tensors have the names of Llama's, so only model_type distinguishes the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from attnlab.models.checkpoints.config_keys import honour_keys
from attnlab.models.checkpoints.families import family
from attnlab.models.checkpoints.reading import (
    ACTIVATIONS,
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
from attnlab.models.checkpoints.record import (
    BadModel,
    Config,
    Embedding,
    Norm,
    Parts,
    Tensors,
    pre_norm,
)
from attnlab.models.checkpoints.rotary import read_rotary

ANCHOR = "layers.{}.self_attn.q_proj.weight"
READS = ("rms_norm_eps", "hidden_act", "hidden_activation", "rope_theta")


@family("gemma", model_types=("gemma",))
def read(tensors: Tensors, raw: Mapping[str, Any]) -> Parts:
    """The parts of a GemmaModel, with or without the language-model head."""
    must_be(raw, "position_embedding_type", "rope", "rotary", None)
    d, heads = whole(raw, "hidden_size"), whole(raw, "num_attention_heads")
    layers, size = whole(raw, "num_hidden_layers", most=MOST_LAYERS), whole(raw, "head_dim", 256)
    theta, frequencies = read_rotary(raw, size)
    config = honour_keys(
        raw,
        Config(
            family="gemma",
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
            activation=_activation_of(raw),
            rope_theta=theta,
            rope_size=size,
            rope_frequencies=frequencies,
        ),
        READS,
        "Gemma",
    )
    eps = number(raw, "rms_norm_eps", 1e-6)
    reader = Reader(tensors, ANCHOR.format(0))
    reader.no_more_layers(ANCHOR, layers)
    reader.must_agree(raw, "attention_bias", "layers.0.self_attn.q_proj.bias")
    embedding = Embedding(reader.take("embed_tokens.weight", config.vocabulary, d), scale=d**0.5)
    found = []
    for layer in range(layers):
        at = f"layers.{layer}."
        found.append(
            pre_norm(
                read_attention(reader, at + "self_attn.", config, rotary=config.rotary),
                gemma_norm(reader, at + "input_layernorm", d, eps),
                read_gated_feedforward(reader, at + "mlp.", config),
                gemma_norm(reader, at + "post_attention_layernorm", d, eps),
            )
        )
    reader.refuse_unread("layers.", "gemma")
    return Parts(config, embedding, tuple(found), gemma_norm(reader, "norm", d, eps))


def gemma_norm(reader: Reader, name: str, width: int, eps: float) -> Norm:
    """An RMSNorm of Gemma, whose gain is 1 + w, in double precision: the sum would lose digits of w
    in single.
    """
    return Norm("rms", 1 + np.asarray(reader.take(name + ".weight", width), dtype=float), None, eps)


def _activation_of(raw: Mapping[str, Any]) -> str:
    """The activation by hidden_act, where the first configs say gelu and mean its approximation by
    tanh.
    """
    own, other = activation(raw, "hidden_act", "gelu_pytorch_tanh"), raw.get("hidden_activation")
    found = "gelu_tanh" if own == "gelu" else own
    if other is not None and (not isinstance(other, str) or ACTIVATIONS.get(other) != found):
        raise BadModel(
            f"hidden_activation in the config is {str(other)[:60]!r}, which contradicts "
            f"hidden_act = {str(raw.get('hidden_act'))[:40]!r}. "
            "Such a checkpoint needs a family of its own."
        )
    return found
