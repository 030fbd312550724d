"""Gemma 3, its language model: Gemma 2 without the cap, with norms on queries and keys, and two
kinds of rotary positions.

Layers with a sliding window use different angles. The model for images has this one inside a
separate config; it is not read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attnlab.models.checkpoints.config_keys import honour_keys, windows_of
from attnlab.models.checkpoints.families import family
from attnlab.models.checkpoints.families.gemma import ANCHOR, gemma_norm
from attnlab.models.checkpoints.families.gemma2 import sandwiched
from attnlab.models.checkpoints.reading import (
    MOST_LAYERS,
    Reader,
    activation,
    must_be,
    number,
    read_kv_heads,
    whole,
)
from attnlab.models.checkpoints.record import BadModel, Config, Embedding, Parts, Rotary, Tensors
from attnlab.models.checkpoints.rotary import read_rotary

READS = (
    "rms_norm_eps",
    "hidden_activation",
    "rope_theta",
    "rope_local_base_freq",
    "query_pre_attn_scalar",
    "sliding_window",
)


@family("gemma3", model_types=("gemma3_text",))
def read(tensors: Tensors, raw: Mapping[str, Any]) -> Parts:
    """The parts of a Gemma3TextModel, with or without the language-model head."""
    must_be(raw, "position_embedding_type", "rope", "rotary", None)
    d, heads = whole(raw, "hidden_size"), whole(raw, "num_attention_heads")
    layers, size = whole(raw, "num_hidden_layers", most=MOST_LAYERS), whole(raw, "head_dim", 256)
    far, near = rotaries_of(raw, size, "rope_theta", 1e6, "rope_local_base_freq", 1e4)
    config = honour_keys(
        raw,
        Config(
            family="gemma3",
            d=d,
            heads=heads,
            kv_heads=read_kv_heads(raw, heads),
            head_size=size,
            layers=layers,
            hidden=whole(raw, "intermediate_size"),
            vocabulary=whole(raw, "vocab_size"),
            length=whole(raw, "max_position_embeddings", 131072),
            is_pre_norm=True,
            is_causal=True,
            activation=activation(raw, "hidden_activation", "gelu_pytorch_tanh"),
            rope_theta=far.theta,
            rope_size=size,
            rope_frequencies=far.frequencies,
        ),
        READS,
        "Gemma3",
    )
    eps, scale = (
        number(raw, "rms_norm_eps", 1e-6),
        number(raw, "query_pre_attn_scalar", 256) ** -0.5,
    )
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
            rotary=far if window is None else near,
            scale=scale,
            window=window,
            query_norm=gemma_norm(reader, f"layers.{layer}.self_attn.q_norm", size, eps),
            key_norm=gemma_norm(reader, f"layers.{layer}.self_attn.k_norm", size, eps),
        )
        for layer, window in enumerate(windows_of(raw, layers))
    )
    reader.refuse_unread("layers.", "gemma3")
    return Parts(config, embedding, found, gemma_norm(reader, "norm", d, eps))


def rotaries_of(
    raw: Mapping[str, Any],
    size: int,
    far_key: str,
    far_base: float,
    near_key: str,
    near_base: float,
    is_near_stretched: bool = False,
) -> tuple[Rotary, Rotary]:
    """The rotary positions of layers that see everything, and of those with a window.

    New configs keep one table for each kind in rope_parameters. Old ones have the bases under two
    keys and one rope_scaling: it stretches the angles of the first kind, and with is_near_stretched
    of the second too.
    """
    tables = raw.get("rope_parameters")
    if tables is not None and not (
        isinstance(tables, Mapping)
        and all(isinstance(tables.get(kind, {}), Mapping | None) for kind in KINDS)
        and set(tables) <= set(KINDS)
    ):
        raise BadModel(
            f"rope_parameters in the config must hold a table for {' and '.join(KINDS)}, found"
            f" {str(tables)[:60]!r}. Take the config.json that came with the checkpoint."
        )
    found = []
    for kind, key, base in zip(KINDS, (far_key, near_key), (far_base, near_base), strict=True):
        own = (tables or {}).get(kind) or {}
        asked = {
            "rope_theta": number(own, "rope_theta", number(raw, key, base)),
            "rope_parameters": own,
        }
        if not own and (kind == KINDS[0] or is_near_stretched):
            asked = {**asked, "rope_scaling": raw.get("rope_scaling")}
        theta, frequencies = read_rotary(asked, size)
        found.append(Rotary(theta, size, frequencies=frequencies))
    return found[0], found[1]


KINDS = ("full_attention", "sliding_attention")
