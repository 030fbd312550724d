"""BART, its encoder: BERT's layer, learned positions that start at 2. The decoder is not read."""

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

ANCHOR = "encoder.layers.{}.self_attn.q_proj.weight"
READS = ("activation_function", "scale_embedding", "is_encoder_decoder")
OFFSET = 2  # the first places of the table belong to no token
EPS = 1e-5  # fixed in the original implementation

NAMES = EncoderNames(
    "self_attn.q_proj",
    "self_attn.k_proj",
    "self_attn.v_proj",
    "self_attn.out_proj",
    "self_attn_layer_norm",
    "fc1",
    "fc2",
    "final_layer_norm",
)
ALIASES = {
    "num_attention_heads": "encoder_attention_heads",
    "hidden_size": "d_model",
    "num_hidden_layers": "encoder_layers",
}


@family("bart", model_types=("bart",), aliases=ALIASES, inner="encoder.")
def read(tensors: Tensors, raw: Mapping[str, Any]) -> Parts:
    """The parts of the encoder of a BartModel, with or without a head for some task on top."""
    must_be(raw, "position_embedding_type", "absolute", None)
    must_be(raw, "scale_embedding", False, True, None)
    d, heads = whole(raw, "d_model"), whole(raw, "encoder_attention_heads")
    layers = whole(raw, "encoder_layers", most=MOST_LAYERS)
    config = honour_keys(
        raw,
        Config(
            family="bart",
            d=d,
            heads=heads,
            kv_heads=heads,
            head_size=head_size_of(d, heads),
            layers=layers,
            hidden=whole(raw, "encoder_ffn_dim"),
            vocabulary=whole(raw, "vocab_size"),
            length=whole(raw, "max_position_embeddings", 1024),
            activation=activation(raw, "activation_function", "gelu"),
        ),
        READS,
    )
    reader = Reader(tensors, ANCHOR.format(0))
    reader.no_more_layers(ANCHOR, layers)
    embedding = Embedding(
        reader.take_shared(_names_of_tokens(raw, reader), config.vocabulary, d),
        reader.take("encoder.embed_positions.weight", config.length + OFFSET, d),
        position_offset=OFFSET,
        norm=reader.norm("encoder.layernorm_embedding", d, EPS),
        scale=d**0.5 if raw.get("scale_embedding") else None,
    )
    found = tuple(
        encoder_layer(reader, f"encoder.layers.{layer}.", NAMES, config, EPS)
        for layer in range(layers)
    )
    reader.refuse_unread("encoder.layers.", "bart")
    return Parts(config, embedding, found)


def _names_of_tokens(raw: Mapping[str, Any], reader: Reader) -> tuple[str, ...]:
    """The names of the embedding: one tensor, which encoder and decoder share unless the config
    says no.
    """
    own = "encoder.embed_tokens.weight"
    is_shared = raw.get("tie_word_embeddings") is not False or own not in reader
    return ("shared.weight", own) if is_shared else (own,)
