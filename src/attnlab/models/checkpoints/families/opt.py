"""OPT: causal, learned positions that start at 2, norms before or after each part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from attnlab.models.checkpoints.config_keys import honour_keys
from attnlab.models.checkpoints.families import family
from attnlab.models.checkpoints.reading import (
    MOST_LAYERS,
    Reader,
    activation,
    head_size_of,
    must_be,
    read_attention,
    whole,
)
from attnlab.models.checkpoints.record import (
    BadModel,
    Config,
    Embedding,
    FeedForward,
    Layer,
    Norm,
    Parts,
    Tensors,
    post_norm,
    pre_norm,
)

ANCHOR = "decoder.layers.{}.self_attn.q_proj.weight"
OFFSET = 2  # the first places of the table belong to no token
READS = ("activation_function", "do_layer_norm_before")
EPS = 1e-5  # fixed in the original implementation


@family("opt", model_types=("opt",), inner="decoder.")
def read(tensors: Tensors, raw: Mapping[str, Any]) -> Parts:
    """The parts of an OPTModel, with or without the language-model head."""
    must_be(raw, "position_embedding_type", "absolute", None)
    for key in ("do_layer_norm_before", "enable_bias", "layer_norm_elementwise_affine"):
        must_be(raw, key, True, False, None)
    d, heads = whole(raw, "hidden_size"), whole(raw, "num_attention_heads")
    if whole(raw, "word_embed_proj_dim", d) != d:
        raise BadModel(
            f"word_embed_proj_dim in the config must be hidden_size = {d}, found"
            f" {raw['word_embed_proj_dim']}. The narrow embedding of OPT-350m needs a family of its"
            " own."
        )
    layers, is_pre_norm = (
        whole(raw, "num_hidden_layers", most=MOST_LAYERS),
        raw.get("do_layer_norm_before") is not False,
    )
    config = honour_keys(
        raw,
        Config(
            family="opt",
            d=d,
            heads=heads,
            kv_heads=heads,
            head_size=head_size_of(d, heads),
            layers=layers,
            hidden=whole(raw, "ffn_dim"),
            vocabulary=whole(raw, "vocab_size"),
            length=whole(raw, "max_position_embeddings", 2048),
            is_pre_norm=is_pre_norm,
            is_causal=True,
            activation=activation(raw, "activation_function", "relu"),
        ),
        READS,
    )
    reader = Reader(tensors, ANCHOR.format(0))
    reader.no_more_layers(ANCHOR, layers)
    has_biases, has_gains = (
        raw.get("enable_bias") is not False,
        raw.get("layer_norm_elementwise_affine") is not False,
    )

    def norm(name: str) -> Norm:
        return reader.norm(name, d, EPS) if has_gains else Norm("layer", np.ones(d), None, EPS)

    def layer_of(at: str) -> Layer:
        attention = read_attention(reader, at + "self_attn.", config, "out_proj", has_biases)
        inner, outer = (
            reader.take(at + "fc1.weight", config.hidden, d),
            reader.take(at + "fc2.weight", d, config.hidden),
        )
        biases = (
            (reader.take(at + "fc1.bias", config.hidden), reader.take(at + "fc2.bias", d))
            if has_biases
            else (None, None)
        )
        arrange = pre_norm if is_pre_norm else post_norm
        return arrange(
            attention,
            norm(at + "self_attn_layer_norm"),
            FeedForward(config.activation, inner, outer, *biases),
            norm(at + "final_layer_norm"),
        )

    embedding = Embedding(
        reader.take("decoder.embed_tokens.weight", config.vocabulary, d),
        reader.take("decoder.embed_positions.weight", config.length + OFFSET, d),
        position_offset=OFFSET,
        is_counting_seen=True,
    )
    found = tuple(layer_of(f"decoder.layers.{layer}.") for layer in range(layers))
    reader.refuse_unread("decoder.layers.", "opt")
    has_last = is_pre_norm and not raw.get("_remove_final_layer_norm")
    return Parts(config, embedding, found, norm("decoder.final_layer_norm") if has_last else None)
