"""GPT-2: pre-norm, causal, positions learned. Its Conv1D matrices are (in, out), with queries, keys
and values side by side.
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
    Parts,
    Tensors,
    pre_norm,
)

READS = (
    "layer_norm_epsilon",
    "activation_function",
    "scale_attn_weights",
    "scale_attn_by_inverse_layer_idx",
)


@family(
    "gpt2",
    model_types=("gpt2",),
    mark="h.0.attn.c_attn.weight",
    aliases={
        "hidden_size": "n_embd",
        "max_position_embeddings": "n_positions",
        "num_attention_heads": "n_head",
        "num_hidden_layers": "n_layer",
    },
)
def read(tensors: Tensors, raw: Mapping[str, Any]) -> Parts:
    """The parts of a GPT2Model, with or without the language-model head."""
    must_be(raw, "position_embedding_type", "absolute", None)
    must_be(raw, "scale_attn_weights", True, False, None)
    must_be(raw, "scale_attn_by_inverse_layer_idx", False, True, None)
    d, heads = whole(raw, "n_embd"), whole(raw, "n_head")
    layers = whole(raw, "n_layer", most=MOST_LAYERS)
    config = Config(
        family="gpt2",
        d=d,
        heads=heads,
        kv_heads=heads,
        head_size=head_size_of(d, heads),
        layers=layers,
        hidden=whole(raw, "n_inner", 4 * d),
        vocabulary=whole(raw, "vocab_size"),
        length=whole(raw, "n_positions", 1024),
        is_pre_norm=True,
        is_causal=True,
        activation=activation(raw, "activation_function", "gelu_new"),
    )
    eps = number(raw, "layer_norm_epsilon", 1e-5)
    reader = Reader(tensors, "h.0.attn.c_attn.weight")
    reader.no_more_layers("h.{}.attn.c_attn.weight", layers)
    embedding = Embedding(
        reader.take("wte.weight", config.vocabulary, d), reader.take("wpe.weight", config.length, d)
    )
    config = honour_keys(raw, config, READS)
    size = config.head_size
    found = tuple(
        _layer_of(reader, f"h.{l}.", config, eps, _scale_of(raw, size, l)) for l in range(layers)
    )
    reader.refuse_unread("h.", "gpt2")
    return Parts(config, embedding, found, reader.norm("ln_f", d, eps))


def _scale_of(raw: Mapping[str, Any], size: int, layer: int) -> float | None:
    """Return the factor of the scores; None for the usual size^(-1/2). If the layer number divides
    them, it counts from 1.
    """
    is_divided, by_layer = (
        raw.get("scale_attn_weights") is not False,
        bool(raw.get("scale_attn_by_inverse_layer_idx")),
    )
    if is_divided and not by_layer:
        return None
    return (size**-0.5 if is_divided else 1.0) / (layer + 1 if by_layer else 1)


def _layer_of(reader: Reader, at: str, config: Config, eps: float, scale: float | None) -> Layer:
    d, heads, hidden = config.d, config.heads, config.hidden
    joined = reader.take(at + "attn.c_attn.weight", d, 3 * d).T  # (3 d, d)
    joined_bias = reader.take(at + "attn.c_attn.bias", 3 * d)
    query, key, value = (cut_rows(joined[part * d : (part + 1) * d], heads) for part in range(3))
    query_bias, key_bias, value_bias = (
        cut_bias(joined_bias[part * d : (part + 1) * d], heads) for part in range(3)
    )
    attention = Attention(
        query=query,
        key=key,
        value=value,
        output=cut_columns(reader.take(at + "attn.c_proj.weight", d, d).T, heads),
        query_bias=query_bias,
        key_bias=key_bias,
        value_bias=value_bias,
        output_bias=reader.take(at + "attn.c_proj.bias", d),
        scale=scale,
    )
    feedforward = FeedForward(
        config.activation,
        inner=reader.take(at + "mlp.c_fc.weight", d, hidden).T,
        inner_bias=reader.take(at + "mlp.c_fc.bias", hidden),
        outer=reader.take(at + "mlp.c_proj.weight", hidden, d).T,
        outer_bias=reader.take(at + "mlp.c_proj.bias", d),
    )
    return pre_norm(
        attention, reader.norm(at + "ln_1", d, eps), feedforward, reader.norm(at + "ln_2", d, eps)
    )
