"""ALBERT: BERT's layer with one set of weights for every layer, and a narrow embedding projected to
the width of the stream.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attnlab.models.checkpoints.config_keys import honour_keys
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
from attnlab.models.checkpoints.record import BadModel, Config, Embedding, Parts, Tensors

GROUP = "encoder.albert_layer_groups.{}.albert_layers.0."

NAMES = EncoderNames(
    "attention.query",
    "attention.key",
    "attention.value",
    "attention.dense",
    "attention.LayerNorm",
    "ffn",
    "ffn_output",
    "full_layer_layer_norm",
)


@family("albert", model_types=("albert",), mark=GROUP.format(0) + "attention.query.weight")
def read(tensors: Tensors, raw: Mapping[str, Any]) -> Parts:
    """The parts of an AlbertModel, with or without a head for some task on top."""
    must_be(raw, "position_embedding_type", "absolute", None)
    must_be(raw, "inner_group_num", 1, None)
    d, heads = whole(raw, "hidden_size"), whole(raw, "num_attention_heads")
    layers = whole(raw, "num_hidden_layers", 12, most=MOST_LAYERS)
    groups, width = whole(raw, "num_hidden_groups", 1), whole(raw, "embedding_size", 128)
    if groups > layers:
        raise BadModel(
            f"num_hidden_groups in the config must not exceed the {layers} layers, found {groups}."
        )
    config = Config(
        family="albert",
        d=d,
        heads=heads,
        kv_heads=heads,
        head_size=head_size_of(d, heads),
        layers=layers,
        hidden=whole(raw, "intermediate_size"),
        vocabulary=whole(raw, "vocab_size"),
        length=whole(raw, "max_position_embeddings", 512),
        is_tied=groups == 1,
        activation=activation(raw, "hidden_act", "gelu_new"),
    )
    eps = number(raw, "layer_norm_eps", 1e-12)
    reader = Reader(tensors, GROUP.format(0) + "attention.query.weight")
    reader.no_more_layers(GROUP + "attention.query.weight", groups)
    projection, projection_bias = reader.linear("encoder.embedding_hidden_mapping_in", d, width)
    embedding = Embedding(
        tokens=reader.take("embeddings.word_embeddings.weight", config.vocabulary, width),
        positions=reader.take("embeddings.position_embeddings.weight", config.length, width),
        kinds=reader.take(
            "embeddings.token_type_embeddings.weight", whole(raw, "type_vocab_size", 2), width
        ),
        norm=reader.norm("embeddings.LayerNorm", width, eps),
        projection=projection,
        projection_bias=projection_bias,
    )
    config = honour_keys(raw, config, ("layer_norm_eps", "hidden_act"))
    distinct = [
        encoder_layer(reader, GROUP.format(group), NAMES, config, eps) for group in range(groups)
    ]
    reader.refuse_unread("encoder.albert_layer_groups.", "albert")
    return Parts(
        config, embedding, tuple(distinct[int(l / (layers / groups))] for l in range(layers))
    )
