"""Whisper, its encoder of sound: GPT's norms, no mask, keys without a bias. It reads embedded
frames.

The stream that enters layer 0 is x (1500, d), what the two convolutions make of the sound, plus the
positions. In transformers these are `encoder.conv1`, `encoder.conv2` and `encoder.embed_positions`.
The decoder is not read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attnlab.models.checkpoints.config_keys import honour_keys
from attnlab.models.checkpoints.families import family
from attnlab.models.checkpoints.families.bart import ALIASES, ANCHOR, EPS, NAMES
from attnlab.models.checkpoints.reading import (
    MOST_LAYERS,
    Reader,
    activation,
    encoder_layer,
    head_size_of,
    must_be,
    whole,
)
from attnlab.models.checkpoints.record import Config, Parts, Tensors

READS = ("activation_function", "scale_embedding", "is_encoder_decoder")


@family(
    "whisper",
    model_types=("whisper",),
    aliases={**ALIASES, "num_key_value_heads": "encoder_attention_heads"},
    inner="encoder.",
)
def read(tensors: Tensors, raw: Mapping[str, Any]) -> Parts:
    """The parts of the encoder of a WhisperModel, with or without a head for some task on top."""
    must_be(raw, "position_embedding_type", "absolute", None)
    d, heads = whole(raw, "d_model"), whole(raw, "encoder_attention_heads")
    layers = whole(raw, "encoder_layers", most=MOST_LAYERS)
    config = honour_keys(
        raw,
        Config(
            family="whisper",
            d=d,
            heads=heads,
            kv_heads=heads,
            head_size=head_size_of(d, heads),
            layers=layers,
            hidden=whole(raw, "encoder_ffn_dim"),
            vocabulary=0,
            length=whole(raw, "max_source_positions", 1500),
            is_pre_norm=True,
            activation=activation(raw, "activation_function", "gelu"),
        ),
        READS,
    )
    reader = Reader(tensors, ANCHOR.format(0))
    reader.no_more_layers(ANCHOR, layers)
    found = tuple(
        encoder_layer(reader, f"encoder.layers.{layer}.", NAMES, config, EPS, without_bias=("key",))
        for layer in range(layers)
    )
    reader.refuse_unread("encoder.layers.", "whisper")
    return Parts(config, None, found, reader.norm("encoder.layer_norm", d, EPS))
