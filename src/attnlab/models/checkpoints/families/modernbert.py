"""ModernBERT: norms before each part but the first, a gate, rotary positions, and windows to both
sides in most layers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from attnlab.models.checkpoints.config_keys import honour_keys, windows_of
from attnlab.models.checkpoints.families import family
from attnlab.models.checkpoints.families.gemma3 import rotaries_of
from attnlab.models.checkpoints.reading import (
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
from attnlab.models.checkpoints.record import (
    Attention,
    Config,
    Embedding,
    FeedForward,
    Layer,
    Norm,
    Parts,
    Rotary,
    Tensors,
    pre_norm,
)

ANCHOR = "layers.{}.attn.Wqkv.weight"
READS = ("norm_eps", "hidden_activation", "local_attention", "sliding_window")


@family("modernbert", model_types=("modernbert",), mark=ANCHOR.format(0))
def read(tensors: Tensors, raw: Mapping[str, Any]) -> Parts:
    """The parts of a ModernBertModel, with or without a head for some task on top."""
    must_be(
        raw, "position_embedding_type", "rope", "rotary", "absolute", "sans_pos", None
    )  # not read by transformers
    d, heads = whole(raw, "hidden_size"), whole(raw, "num_attention_heads")
    layers, size = whole(raw, "num_hidden_layers", most=MOST_LAYERS), head_size_of(d, heads)
    far, near = rotaries_of(
        raw, size, "global_rope_theta", 160_000.0, "local_rope_theta", 1e4, is_near_stretched=True
    )
    windows = _windows_of(raw, layers)
    config = honour_keys(
        raw,
        Config(
            family="modernbert",
            d=d,
            heads=heads,
            kv_heads=heads,
            head_size=size,
            layers=layers,
            hidden=whole(raw, "intermediate_size"),
            vocabulary=whole(raw, "vocab_size"),
            length=whole(raw, "max_position_embeddings", 8192),
            is_pre_norm=True,
            activation=activation(raw, "hidden_activation", "gelu"),
            rope_theta=far.theta,
            rope_size=size,
            rope_frequencies=far.frequencies,
        ),
        READS,
    )
    config = replace(
        config,
        window=max((width for width in windows if width), default=None),
        is_window_computed=True,
    )
    eps = number(raw, "norm_eps", 1e-5)
    reader = Reader(tensors, ANCHOR.format(0))
    reader.no_more_layers(ANCHOR, layers)
    for key, name in (
        ("attention_bias", "layers.0.attn.Wqkv.bias"),
        ("mlp_bias", "layers.0.mlp.Wi.bias"),
        ("norm_bias", "final_norm.bias"),
    ):
        reader.must_agree(raw, key, name)
    embedding = Embedding(
        reader.take("embeddings.tok_embeddings.weight", config.vocabulary, d),
        norm=_norm(reader, "embeddings.norm", d, eps),
    )
    found = tuple(
        _layer_of(reader, f"layers.{layer}.", config, eps, window, far if window is None else near)
        for layer, window in enumerate(windows)
    )
    reader.refuse_unread("layers.", "modernbert")
    return Parts(config, embedding, found, _norm(reader, "final_norm", d, eps))


def _windows_of(raw: Mapping[str, Any], layers: int) -> tuple[int | None, ...]:
    """The window of each layer: half of local_attention to both sides, in all layers but every
    third.

    sliding_window is that half and comes first, as in the original.
    """
    half = whole(raw, "sliding_window", whole(raw, "local_attention", 128) // 2, least=0)
    every = whole(raw, "global_attn_every_n_layers", 3)
    types = ["sliding_attention" if layer % every else "full_attention" for layer in range(layers)]
    types = types if raw.get("layer_types") is None else raw["layer_types"]
    return windows_of(
        {"layer_types": types, "sliding_window": half + 1},
        layers,
    )


def _norm(reader: Reader, name: str, d: int, eps: float) -> Norm:
    return Norm("layer", reader.take(name + ".weight", d), reader.optional(name + ".bias", d), eps)


def _layer_of(
    reader: Reader, at: str, config: Config, eps: float, window: int | None, rotary: Rotary
) -> Layer:
    d, heads, hidden = config.d, config.heads, config.hidden
    joined, bias = (
        reader.take(at + "attn.Wqkv.weight", 3 * d, d),
        reader.optional(at + "attn.Wqkv.bias", 3 * d),
    )
    query, key, value = (cut_rows(joined[part * d : (part + 1) * d], heads) for part in range(3))
    query_bias, key_bias, value_bias = (
        None if bias is None else cut_bias(bias[part * d : (part + 1) * d], heads)
        for part in range(3)
    )
    attention = Attention(
        query,
        key,
        value,
        cut_columns(reader.take(at + "attn.Wo.weight", d, d), heads),
        query_bias,
        key_bias,
        value_bias,
        reader.optional(at + "attn.Wo.bias", d),
        rotary=rotary,
        window=window,
    )
    both, both_bias = (
        reader.take(at + "mlp.Wi.weight", 2 * hidden, d),
        reader.optional(at + "mlp.Wi.bias", 2 * hidden),
    )
    feedforward = FeedForward(
        config.activation,
        gate=both[:hidden],
        inner=both[hidden:],
        outer=reader.take(at + "mlp.Wo.weight", d, hidden),
        gate_bias=None if both_bias is None else both_bias[:hidden],
        inner_bias=None if both_bias is None else both_bias[hidden:],
        outer_bias=reader.optional(at + "mlp.Wo.bias", d),
    )
    first = (
        None if at == "layers.0." else _norm(reader, at + "attn_norm", d, eps)
    )  # the embedding has just been normed
    return pre_norm(attention, first, feedforward, _norm(reader, at + "mlp_norm", d, eps))
