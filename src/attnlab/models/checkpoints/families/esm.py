"""ESM-1b and ESM-2, of proteins: BERT with the norms before each part and one at the end, rotary
positions in ESM-2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from attnlab.models.checkpoints.config_keys import honour_keys
from attnlab.models.checkpoints.families import family
from attnlab.models.checkpoints.reading import (
    MOST_LAYERS,
    EncoderNames,
    Reader,
    encoder_layer,
    head_size_of,
    must_be,
    number,
    whole,
)
from attnlab.models.checkpoints.record import BadModel, Config, Embedding, Parts, Rotary, Tensors
from attnlab.models.checkpoints.rotary import frequencies as angles_of
from attnlab.models.checkpoints.rotary import read_rotary

ANCHOR = "encoder.layer.{}.attention.self.query.weight"
READS = ("layer_norm_eps", "rope_theta", "token_dropout", "emb_layer_norm_before")
KEPT = 1 - 0.15 * 0.8  # of a text in training; fixed in the original implementation

NAMES = EncoderNames(
    "attention.self.query",
    "attention.self.key",
    "attention.self.value",
    "attention.output.dense",
    "attention.LayerNorm",
    "intermediate.dense",
    "output.dense",
    "LayerNorm",
)


@family("esm", model_types=("esm",))
def read(tensors: Tensors, raw: Mapping[str, Any]) -> Parts:
    """The parts of an EsmModel, with or without a head for some task on top; ESMFold is refused."""
    must_be(raw, "position_embedding_type", "absolute", "rotary", None)
    must_be(raw, "is_folding_model", False, None)
    must_be(raw, "is_decoder", False, None)
    for key in ("token_dropout", "emb_layer_norm_before"):
        must_be(raw, key, False, True, None)
    d, heads = whole(raw, "hidden_size"), whole(raw, "num_attention_heads")
    layers, size = whole(raw, "num_hidden_layers", most=MOST_LAYERS), head_size_of(d, heads)
    is_rotary, places = (
        raw.get("position_embedding_type") == "rotary",
        whole(raw, "max_position_embeddings", 1026),
    )
    padding = None if is_rotary else whole(raw, "pad_token_id", least=0)
    if padding is not None and padding + 1 >= places:
        raise BadModel(
            f"pad_token_id in the config must be below max_position_embeddings = {places}, found"
            f" {padding}."
        )
    theta, frequencies = read_rotary(raw, size) if is_rotary else (None, ())
    config = honour_keys(
        raw,
        Config(
            family="esm",
            d=d,
            heads=heads,
            kv_heads=heads,
            head_size=size,
            layers=layers,
            hidden=whole(raw, "intermediate_size"),
            vocabulary=whole(raw, "vocab_size"),
            length=places if padding is None else places - padding - 1,
            is_pre_norm=True,
            rope_theta=theta,
            rope_size=size if is_rotary else 0,
            rope_frequencies=frequencies,
        ),
        READS,
        "Esm",
    )
    eps = number(raw, "layer_norm_eps", 1e-12)
    reader = Reader(tensors, ANCHOR.format(0))
    reader.no_more_layers(ANCHOR, layers)
    if config.rotary is not None:
        _check_stored_angles(tensors, config.rotary)
    is_dropping = bool(raw.get("token_dropout"))
    embedding = Embedding(
        tokens=reader.take("embeddings.word_embeddings.weight", config.vocabulary, d),
        positions=(
            None
            if padding is None
            else reader.take("embeddings.position_embeddings.weight", places, d)
        ),
        position_offset=0 if padding is None else padding + 1,
        padding=padding,
        norm=(
            reader.norm("embeddings.layer_norm", d, eps)
            if raw.get("emb_layer_norm_before")
            else None
        ),
        scale=KEPT if is_dropping else None,
        dropped=whole(raw, "mask_token_id", least=0) if is_dropping else None,
    )
    found = tuple(
        encoder_layer(reader, f"encoder.layer.{layer}.", NAMES, config, eps, rotary=config.rotary)
        for layer in range(layers)
    )
    reader.refuse_unread("encoder.layer.", "esm")
    return Parts(config, embedding, found, reader.norm("encoder.emb_layer_norm_after", d, eps))


def _check_stored_angles(tensors: Tensors, rotary: Rotary) -> None:
    """Refuse stored angles other than those of the config: the original turns by the stored ones."""
    expected = angles_of(rotary)
    for name in tensors:
        if not str(name).endswith("rotary_embeddings.inv_freq"):
            continue
        stored = np.asarray(tensors[name], dtype=float)
        if stored.shape != expected.shape or not np.allclose(stored, expected, rtol=5e-3, atol=0):
            raise BadModel(
                f"The tensor {str(name)[:120]!r} must hold the angles of rope_theta ="
                f" {rotary.theta:g} in the config, but it holds others. Config and tensors do not"
                " belong together: take both from the same checkpoint."
            )
