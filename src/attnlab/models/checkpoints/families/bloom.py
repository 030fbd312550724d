"""BLOOM: GPT-NeoX's layer with the parts in turn, scores that fall with the distance, a norm after
the embedding.

The original adds slope times the place of the key to a score. In a row these numbers differ from
-slope times the distance by a constant, which softmax does not see.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from attnlab.models.checkpoints.config_keys import honour_keys
from attnlab.models.checkpoints.distances import alibi_slopes
from attnlab.models.checkpoints.families import family
from attnlab.models.checkpoints.reading import (
    MOST_LAYERS,
    Reader,
    head_size_of,
    must_be,
    number,
    read_joined_attention,
    whole,
)
from attnlab.models.checkpoints.record import (
    ANY_LENGTH,
    Config,
    Embedding,
    FeedForward,
    Layer,
    Parts,
    Tensors,
    pre_norm,
)

ANCHOR = "h.{}.self_attention.query_key_value.weight"
READS = ("layer_norm_epsilon", "apply_residual_connection_post_layernorm", "alibi")


@family(
    "bloom",
    model_types=("bloom",),
    mark=ANCHOR.format(0),
    aliases={
        "n_embed": "hidden_size",
        "num_hidden_layers": "n_layer",
        "num_attention_heads": "n_head",
    },
)
def read(tensors: Tensors, raw: Mapping[str, Any]) -> Parts:
    """The parts of a BloomModel, with or without the language-model head."""
    must_be(raw, "position_embedding_type", "absolute", "alibi", None)
    must_be(raw, "alibi", True, None)
    must_be(raw, "apply_residual_connection_post_layernorm", False, True, None)
    if whole(raw, "pretraining_tp", 1) > 1:  # the original then leaves out biases
        must_be(raw, "slow_but_exact", False, None)
    d, heads = whole(raw, "hidden_size", 64), whole(raw, "n_head", 8)
    layers = whole(raw, "n_layer", 2, most=MOST_LAYERS)
    config = honour_keys(
        raw,
        Config(
            family="bloom",
            d=d,
            heads=heads,
            kv_heads=heads,
            head_size=head_size_of(d, heads),
            layers=layers,
            hidden=4 * d,
            vocabulary=whole(raw, "vocab_size"),
            length=ANY_LENGTH,
            is_pre_norm=True,
            is_causal=True,
            activation="gelu_bloom",
        ),
        READS,
    )
    eps = number(raw, "layer_norm_epsilon", 1e-5)
    reader = Reader(tensors, ANCHOR.format(0))
    reader.no_more_layers(ANCHOR, layers)
    embedding = Embedding(
        reader.take("word_embeddings.weight", config.vocabulary, d),
        norm=reader.norm("word_embeddings_layernorm", d, eps),
    )
    is_normed = bool(raw.get("apply_residual_connection_post_layernorm"))
    slopes = alibi_slopes(heads)
    found = tuple(
        _layer_of(reader, f"h.{layer}.", config, eps, slopes, is_normed) for layer in range(layers)
    )
    reader.refuse_unread("h.", "bloom")
    return Parts(config, embedding, found, reader.norm("ln_f", d, eps))


def _layer_of(
    reader: Reader, at: str, config: Config, eps: float, slopes: np.ndarray, is_normed: bool
) -> Layer:
    inner, inner_bias = reader.linear(at + "mlp.dense_h_to_4h", config.hidden, config.d)
    outer, outer_bias = reader.linear(at + "mlp.dense_4h_to_h", config.d, config.hidden)
    layer = pre_norm(
        read_joined_attention(
            reader, at + "self_attention.", config, has_biases=True, slopes=slopes
        ),
        reader.norm(at + "input_layernorm", config.d, eps),
        FeedForward(config.activation, inner, outer, inner_bias, outer_bias),
        reader.norm(at + "post_attention_layernorm", config.d, eps),
    )
    if not is_normed:
        return layer
    return Layer(tuple(replace(block, is_sum_normed=True) for block in layer.blocks))
