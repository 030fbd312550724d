"""DistilBERT: BERT's layer under other names, without kinds of tokens."""

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
    whole,
)
from attnlab.models.checkpoints.record import Config, Embedding, Parts, Tensors

EPS = 1e-12  # fixed in the original implementation

NAMES = EncoderNames(
    "attention.q_lin",
    "attention.k_lin",
    "attention.v_lin",
    "attention.out_lin",
    "sa_layer_norm",
    "ffn.lin1",
    "ffn.lin2",
    "output_layer_norm",
)


@family(
    "distilbert",
    model_types=("distilbert",),
    mark="transformer.layer.0.attention.q_lin.weight",
    aliases={
        "hidden_size": "dim",
        "num_attention_heads": "n_heads",
        "num_hidden_layers": "n_layers",
    },
)
def read(tensors: Tensors, raw: Mapping[str, Any]) -> Parts:
    """The parts of a DistilBertModel, with or without a head for some task on top."""
    must_be(raw, "position_embedding_type", "absolute", None)
    d, heads = whole(raw, "dim"), whole(raw, "n_heads")
    layers = whole(raw, "n_layers", most=MOST_LAYERS)
    config = Config(
        family="distilbert",
        d=d,
        heads=heads,
        kv_heads=heads,
        head_size=head_size_of(d, heads),
        layers=layers,
        hidden=whole(raw, "hidden_dim"),
        vocabulary=whole(raw, "vocab_size"),
        length=whole(raw, "max_position_embeddings", 512),
        activation=activation(raw, "activation", "gelu"),
    )
    reader = Reader(tensors, "transformer.layer.0.attention.q_lin.weight")
    reader.no_more_layers("transformer.layer.{}.attention.q_lin.weight", layers)
    embedding = Embedding(
        tokens=reader.take("embeddings.word_embeddings.weight", config.vocabulary, d),
        positions=reader.take("embeddings.position_embeddings.weight", config.length, d),
        norm=reader.norm("embeddings.LayerNorm", d, EPS),
    )
    config = honour_keys(raw, config, ("activation",))
    found = tuple(
        encoder_layer(reader, f"transformer.layer.{l}.", NAMES, config, EPS) for l in range(layers)
    )
    reader.refuse_unread("transformer.layer.", "distilbert")
    return Parts(config, embedding, found)
