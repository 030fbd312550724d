"""Phi-3: Llama's layer with one matrix for queries, keys and values, and one for gate and inner
map.
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
    cut_columns,
    cut_rows,
    head_size_of,
    must_be,
    number,
    read_kv_heads,
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
    Tensors,
    pre_norm,
)
from attnlab.models.checkpoints.rotary import read_rotary, read_rotary_size

ANCHOR = "layers.{}.self_attn.qkv_proj.weight"
READS = ("rms_norm_eps", "hidden_act", "rope_theta", "partial_rotary_factor", "sliding_window")


@family("phi3", model_types=("phi3",), mark=ANCHOR.format(0))
def read(tensors: Tensors, raw: Mapping[str, Any]) -> Parts:
    """The parts of a Phi3Model, with or without the language-model head; angles that are stretched
    (longrope) are refused.
    """
    must_be(raw, "position_embedding_type", "rope", "rotary", None)
    d, heads = whole(raw, "hidden_size"), whole(raw, "num_attention_heads")
    layers, size = whole(raw, "num_hidden_layers", most=MOST_LAYERS), head_size_of(d, heads)
    rope_size = read_rotary_size(raw, size, 1.0)
    theta, frequencies = read_rotary(raw, rope_size)
    config = honour_keys(
        raw,
        Config(
            family="phi3",
            d=d,
            heads=heads,
            kv_heads=read_kv_heads(raw, heads),
            head_size=size,
            layers=layers,
            hidden=whole(raw, "intermediate_size"),
            vocabulary=whole(raw, "vocab_size"),
            length=whole(raw, "max_position_embeddings", 4096),
            is_pre_norm=True,
            is_causal=True,
            activation=activation(raw, "hidden_act", "silu"),
            rope_theta=theta,
            rope_size=rope_size,
            rope_frequencies=frequencies,
        ),
        READS,
        "Phi3",
    )
    eps = number(raw, "rms_norm_eps", 1e-5)
    reader = Reader(tensors, ANCHOR.format(0))
    reader.no_more_layers(ANCHOR, layers)
    embedding = Embedding(reader.take("embed_tokens.weight", config.vocabulary, d))
    found = tuple(
        _layer_of(reader, f"layers.{layer}.", config, eps, window)
        for layer, window in enumerate(windows_of(raw, layers))
    )
    reader.refuse_unread("layers.", "phi3")
    return Parts(config, embedding, found, Norm("rms", reader.take("norm.weight", d), None, eps))


def _layer_of(reader: Reader, at: str, config: Config, eps: float, window: int | None) -> Layer:
    d, heads, kv_heads, hidden = config.d, config.heads, config.kv_heads, config.hidden
    wide, narrow = heads * config.head_size, kv_heads * config.head_size
    joined = reader.take(at + "self_attn.qkv_proj.weight", wide + 2 * narrow, d)
    attention = Attention(
        query=cut_rows(joined[:wide], heads),
        key=cut_rows(joined[wide : wide + narrow], kv_heads),
        value=cut_rows(joined[wide + narrow :], kv_heads),
        output=cut_columns(reader.take(at + "self_attn.o_proj.weight", d, wide), heads),
        rotary=config.rotary,
        window=window,
    )
    both = reader.take(at + "mlp.gate_up_proj.weight", 2 * hidden, d)
    feedforward = FeedForward(
        config.activation,
        inner=both[hidden:],
        gate=both[:hidden],
        outer=reader.take(at + "mlp.down_proj.weight", d, hidden),
    )
    first, second = (
        Norm("rms", reader.take(f"{at}{name}.weight", d), None, eps)
        for name in ("input_layernorm", "post_attention_layernorm")
    )
    return pre_norm(attention, first, feedforward, second)
