"""BART, its encoder: BERT's layer, learned positions that start at 2. Also mBART (a norm before),
Pegasus (a norm before, sines as positions) and Marian (sines). The decoder is not read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

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
from attnlab.models.checkpoints.record import BadModel, Config, Embedding, Norm, Parts, Tensors

ANCHOR = "encoder.layers.{}.self_attn.q_proj.weight"
READS = ("activation_function", "scale_embedding", "is_encoder_decoder", "normalize_before")
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


class Variant(NamedTuple):
    """What model_types of this family do differently."""

    is_pre_norm: bool = False
    has_final_norm: bool = False
    has_embedding_norm: bool = True
    has_sines: bool = False
    offset: int = 2  # so many first places of the table belong to no token


VARIANTS = {
    "bart": Variant(),
    "mbart": Variant(is_pre_norm=True, has_final_norm=True),
    "pegasus": Variant(
        True, has_final_norm=True, has_embedding_norm=False, has_sines=True, offset=0
    ),
    "marian": Variant(has_embedding_norm=False, has_sines=True, offset=0),
}

ALIASES = {
    "num_attention_heads": "encoder_attention_heads",
    "hidden_size": "d_model",
    "num_hidden_layers": "encoder_layers",
}


@family("bart", model_types=tuple(VARIANTS), aliases=ALIASES, inner="encoder.")
def read(tensors: Tensors, raw: Mapping[str, Any]) -> Parts:
    """The parts of the encoder of a BartModel, with or without a head for some task on top."""
    must_be(raw, "position_embedding_type", "absolute", None)
    must_be(raw, "scale_embedding", False, True, None)
    variant = VARIANTS[raw.get("model_type") or "bart"]
    must_be(raw, "normalize_before", variant.is_pre_norm, None)
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
            is_pre_norm=variant.is_pre_norm,
            activation=activation(raw, "activation_function", "gelu"),
        ),
        READS,
    )
    reader = Reader(tensors, ANCHOR.format(0))
    reader.no_more_layers(ANCHOR, layers)

    def norm(name: str, has_it: bool) -> Norm | None:
        if not has_it and f"{name}.weight" in reader:
            raise BadModel(
                f"The checkpoint has the norm {name!r}, which a model of model_type"
                f" {raw.get('model_type', 'bart')!r} does not have. Correct the model_type; known:"
                f" {', '.join(VARIANTS)}."
            )
        return reader.norm(name, d, EPS) if has_it else None

    embedding = Embedding(
        reader.take_shared(_names_of_tokens(raw, reader), config.vocabulary, d),
        _positions_of(reader, variant, config.length, d),
        position_offset=variant.offset,
        norm=norm("encoder.layernorm_embedding", variant.has_embedding_norm),
        scale=d**0.5 if raw.get("scale_embedding") else None,
    )
    found = tuple(
        encoder_layer(reader, f"encoder.layers.{layer}.", NAMES, config, EPS)
        for layer in range(layers)
    )
    reader.refuse_unread("encoder.layers.", "bart")
    return Parts(config, embedding, found, norm("encoder.layer_norm", variant.has_final_norm))


def _positions_of(reader: Reader, variant: Variant, length: int, d: int) -> np.ndarray:
    """The table of positions. Files leave out one of sines."""
    name = "encoder.embed_positions.weight"
    if variant.has_sines and name not in reader:
        return sines(length, d)
    return reader.take(name, length + variant.offset, d)


def sines(length: int, d: int) -> np.ndarray:
    """Positions (length, d): the sines of place 10000^(-2 i / d), and then their cosines, in single
    precision as in the original.
    """
    places, pairs = np.arange(length)[:, None], np.arange(0, d, 2)
    angles = places / 10000.0 ** (pairs / d)
    both = np.concatenate([np.sin(angles), np.cos(angles[:, : d // 2])], axis=1)
    return both.astype(np.float32)


def _names_of_tokens(raw: Mapping[str, Any], reader: Reader) -> tuple[str, ...]:
    """The names of the embedding: one tensor, which encoder and decoder share unless the config
    says no.
    """
    own = "encoder.embed_tokens.weight"
    is_shared = raw.get("tie_word_embeddings") is not False or own not in reader
    return ("shared.weight", own) if is_shared else (own,)
