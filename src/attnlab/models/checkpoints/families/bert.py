"""BERT and what computes the same: MiniLM, ELECTRA, RoBERTa, XLM-RoBERTa, CamemBERT. Post-norm,
biases, learned positions.
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

COUNT_FROM_PADDING = ("roberta", "xlm-roberta", "camembert")

NAMES = EncoderNames(
    "attention.self.query",
    "attention.self.key",
    "attention.self.value",
    "attention.output.dense",
    "attention.output.LayerNorm",
    "intermediate.dense",
    "output.dense",
    "output.LayerNorm",
)


@family(
    "bert",
    model_types=("bert", "electra", *COUNT_FROM_PADDING),
    mark="encoder.layer.0.attention.self.query.weight",
)
def read(tensors: Tensors, raw: Mapping[str, Any]) -> Parts:
    """The parts of a BertModel, with or without a head for some task on top."""
    must_be(raw, "position_embedding_type", "absolute", None)
    must_be(raw, "is_decoder", False, True, None)
    d, heads = whole(raw, "hidden_size"), whole(raw, "num_attention_heads")
    layers = whole(raw, "num_hidden_layers", most=MOST_LAYERS)
    config = Config(
        family="bert",
        d=d,
        heads=heads,
        kv_heads=heads,
        head_size=head_size_of(d, heads),
        layers=layers,
        hidden=whole(raw, "intermediate_size"),
        vocabulary=whole(raw, "vocab_size"),
        length=whole(raw, "max_position_embeddings", 512),
        is_causal=bool(raw.get("is_decoder")),
        activation=activation(raw, "hidden_act", "gelu"),
    )
    eps = number(raw, "layer_norm_eps", 1e-12)
    reader = Reader(tensors, "encoder.layer.0.attention.self.query.weight")
    reader.no_more_layers("encoder.layer.{}.attention.self.query.weight", layers)
    embedding = embedding_of(reader, raw, config, eps)
    if embedding.position_offset:
        config = Config(**{**vars(config), "length": config.length - embedding.position_offset})
    config = honour_keys(raw, config, ("layer_norm_eps", "hidden_act"))
    found = tuple(
        encoder_layer(reader, f"encoder.layer.{l}.", NAMES, config, eps) for l in range(layers)
    )
    reader.refuse_unread("encoder.layer.", "bert")
    return Parts(config, embedding, found)


def embedding_of(reader: Reader, raw: Mapping[str, Any], config: Config, eps: float) -> Embedding:
    """The embedding; ELECTRA's may be narrower than the stream and is then projected."""
    # only ELECTRA reads the key; others may have it without a meaning
    is_electra = (raw.get("model_type") or "electra") == "electra"
    width = whole(raw, "embedding_size", config.d) if is_electra else config.d
    padding = None
    if (raw.get("model_type") or reader.prefix.rstrip(".")) in COUNT_FROM_PADDING:
        padding = whole(raw, "pad_token_id", 1, least=0)
        if padding + 1 >= config.length:
            raise BadModel(
                "pad_token_id in the config must be below max_position_embeddings ="
                f" {config.length}, found {padding}."
            )
    projection, projection_bias = None, None
    if "embeddings_project.weight" in reader:
        projection, projection_bias = reader.linear("embeddings_project", config.d, width)
    return Embedding(
        tokens=reader.take("embeddings.word_embeddings.weight", config.vocabulary, width),
        positions=reader.take("embeddings.position_embeddings.weight", config.length, width),
        position_offset=0 if padding is None else padding + 1,
        padding=padding,
        kinds=reader.take(
            "embeddings.token_type_embeddings.weight", whole(raw, "type_vocab_size", 2), width
        ),
        norm=reader.norm("embeddings.LayerNorm", width, eps),
        projection=projection,
        projection_bias=projection_bias,
    )
