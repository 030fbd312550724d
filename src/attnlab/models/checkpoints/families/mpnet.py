"""MPNet: BERT's layer with biases on scores by distance, the same in all layers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from attnlab.models.checkpoints.config_keys import honour_keys
from attnlab.models.checkpoints.distances import buckets_of
from attnlab.models.checkpoints.families import family
from attnlab.models.checkpoints.reading import (
    MOST_LAYERS,
    EncoderNames,
    Reader,
    activation,
    encoder_layer,
    head_size_of,
    must_be,
    number,
    whole,
)
from attnlab.models.checkpoints.record import Config, Embedding, Parts, Tensors

ANCHOR = "encoder.layer.{}.attention.attn.q.weight"
READS = ("layer_norm_eps", "hidden_act")
PADDING, BUCKETS, FARTHEST = (
    1,
    32,
    128,
)  # fixed in the original implementation, whatever the config says

NAMES = EncoderNames(
    "attention.attn.q",
    "attention.attn.k",
    "attention.attn.v",
    "attention.attn.o",
    "attention.LayerNorm",
    "intermediate.dense",
    "output.dense",
    "output.LayerNorm",
)


@family("mpnet", model_types=("mpnet",), mark=ANCHOR.format(0))
def read(tensors: Tensors, raw: Mapping[str, Any]) -> Parts:
    """The parts of an MPNetModel, with or without a head for some task on top."""
    must_be(raw, "position_embedding_type", "absolute", None)
    must_be(raw, "relative_attention_num_buckets", BUCKETS, None)
    d, heads = whole(raw, "hidden_size"), whole(raw, "num_attention_heads")
    layers = whole(raw, "num_hidden_layers", most=MOST_LAYERS)
    places = whole(raw, "max_position_embeddings", 512, least=PADDING + 2)
    config = honour_keys(
        raw,
        Config(
            family="mpnet",
            d=d,
            heads=heads,
            kv_heads=heads,
            head_size=head_size_of(d, heads),
            layers=layers,
            hidden=whole(raw, "intermediate_size"),
            vocabulary=whole(raw, "vocab_size"),
            length=places - PADDING - 1,
            activation=activation(raw, "hidden_act", "gelu"),
        ),
        READS,
        "MPNet",
    )
    eps = number(raw, "layer_norm_eps", 1e-12)
    reader = Reader(tensors, ANCHOR.format(0))
    reader.no_more_layers(ANCHOR, layers)
    embedding = Embedding(
        tokens=reader.take("embeddings.word_embeddings.weight", config.vocabulary, d),
        positions=reader.take("embeddings.position_embeddings.weight", places, d),
        position_offset=PADDING + 1,
        padding=PADDING,
        norm=reader.norm("embeddings.LayerNorm", d, eps),
    )
    table = reader.take("encoder.relative_attention_bias.weight", BUCKETS, heads)
    by_offset = np.ascontiguousarray(
        table[buckets_of(np.arange(-FARTHEST, FARTHEST + 1), BUCKETS, FARTHEST)].T
    )
    found = tuple(
        encoder_layer(reader, f"encoder.layer.{layer}.", NAMES, config, eps, by_offset=by_offset)
        for layer in range(layers)
    )
    reader.refuse_unread("encoder.layer.", "mpnet")
    return Parts(config, embedding, found)
