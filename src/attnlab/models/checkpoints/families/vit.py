"""ViT, of images: GPT's norms, no mask. It reads embedded patches.

The stream that enters layer 0 is x (1 + patches, d), the first token for the class and then the
patches, with their positions. In transformers it is `vit.embeddings(pixel_values)[0]`. The last
hidden state is normed, which is `last_hidden_state` there.
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
from attnlab.models.checkpoints.record import ANY_LENGTH, Config, Parts, Tensors

READS = ("layer_norm_eps", "hidden_act")

FILE, MEMORY = "encoder.layer.", "layers."
NAMES = {
    FILE: EncoderNames(
        "attention.attention.query",
        "attention.attention.key",
        "attention.attention.value",
        "attention.output.dense",
        "layernorm_before",
        "intermediate.dense",
        "output.dense",
        "layernorm_after",
    ),
    MEMORY: EncoderNames(
        "attention.q_proj",
        "attention.k_proj",
        "attention.v_proj",
        "attention.o_proj",
        "layernorm_before",
        "mlp.fc1",
        "mlp.fc2",
        "layernorm_after",
    ),
}
"""The names in the files of checkpoints, and those in a model of transformers 5."""


@family("vit", model_types=("vit",), mark="encoder.layer.0.attention.attention.query.weight")
def read(tensors: Tensors, raw: Mapping[str, Any]) -> Parts:
    """The parts of a ViTModel, with or without a head for some task on top."""
    must_be(raw, "position_embedding_type", "absolute", None)
    must_be(raw, "qkv_bias", True, False, None)
    d, heads = whole(raw, "hidden_size"), whole(raw, "num_attention_heads")
    layers = whole(raw, "num_hidden_layers", most=MOST_LAYERS)
    config = honour_keys(
        raw,
        Config(
            family="vit",
            d=d,
            heads=heads,
            kv_heads=heads,
            head_size=head_size_of(d, heads),
            layers=layers,
            hidden=whole(raw, "intermediate_size"),
            vocabulary=0,
            length=ANY_LENGTH,
            is_pre_norm=True,
            activation=activation(raw, "hidden_act", "gelu"),
        ),
        READS,
    )
    eps = number(raw, "layer_norm_eps", 1e-12)
    at = MEMORY if any(f"layers.0.{NAMES[MEMORY].query}" in str(name) for name in tensors) else FILE
    anchor = at + "{}." + NAMES[at].query + ".weight"
    reader = Reader(tensors, anchor.format(0))
    reader.no_more_layers(anchor, layers)
    without = ("query", "key", "value") if raw.get("qkv_bias") is False else ()
    found = tuple(
        encoder_layer(reader, f"{at}{layer}.", NAMES[at], config, eps, without_bias=without)
        for layer in range(layers)
    )
    reader.refuse_unread(at, "vit")
    return Parts(config, None, found, reader.norm("layernorm", d, eps))
