"""ALBERT: BERT's layer with one set of weights for every layer, and a narrow embedding projected to the width of the stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attnlab.models.families import family
from attnlab.models.reading import (
    MOST_LAYERS,
    Reader,
    activation,
    cut_bias,
    cut_columns,
    cut_rows,
    head_size_of,
    must_be,
    number,
    whole,
)
from attnlab.models.record import BadModel, Config, Embedding, Layer, Parts, Tensors

GROUP = "encoder.albert_layer_groups.{}.albert_layers.0."


@family("albert", model_types=("albert",), mark=GROUP.format(0) + "attention.query.weight")
def read(tensors: Tensors, raw: Mapping[str, Any]) -> Parts:
    """The parts of an AlbertModel, with or without a head for some task on top."""
    must_be(raw, "position_embedding_type", "absolute", None)
    must_be(raw, "inner_group_num", 1, None)
    d, heads = whole(raw, "hidden_size"), whole(raw, "num_attention_heads")
    layers = whole(raw, "num_hidden_layers", 12, most=MOST_LAYERS)
    groups, width = whole(raw, "num_hidden_groups", 1), whole(raw, "embedding_size", 128)
    if groups > layers:
        raise BadModel(f"num_hidden_groups in the config must not exceed the {layers} layers, found {groups}.")
    config = Config(
        family="albert", d=d, heads=heads, kv_heads=heads, head_size=head_size_of(d, heads), layers=layers,
        hidden=whole(raw, "intermediate_size"), vocabulary=whole(raw, "vocab_size"),
        length=whole(raw, "max_position_embeddings", 512), is_tied=groups == 1,
        activation=activation(raw, "hidden_act", "gelu_new"),
    )  # fmt: skip
    eps = number(raw, "layer_norm_eps", 1e-12)
    reader = Reader(tensors, GROUP.format(0) + "attention.query.weight")
    reader.no_more_layers(GROUP + "attention.query.weight", groups)
    projection, projection_bias = reader.linear("encoder.embedding_hidden_mapping_in", d, width)
    embedding = Embedding(
        tokens=reader.take("embeddings.word_embeddings.weight", config.vocabulary, width),
        positions=reader.take("embeddings.position_embeddings.weight", config.length, width),
        kinds=reader.take("embeddings.token_type_embeddings.weight", whole(raw, "type_vocab_size", 2), width),
        norm=reader.norm("embeddings.LayerNorm", width, eps),
        projection=projection,
        projection_bias=projection_bias,
    )
    distinct = [_layer_of(reader, GROUP.format(group), config, eps) for group in range(groups)]
    return Parts(config, embedding, tuple(distinct[int(l / (layers / groups))] for l in range(layers)))


def _layer_of(reader: Reader, at: str, config: Config, eps: float) -> Layer:
    d, heads, hidden = config.d, config.heads, config.hidden
    query, query_bias = reader.linear(at + "attention.query", d, d)
    key, key_bias = reader.linear(at + "attention.key", d, d)
    value, value_bias = reader.linear(at + "attention.value", d, d)
    output, output_bias = reader.linear(at + "attention.dense", d, d)
    inner, inner_bias = reader.linear(at + "ffn", hidden, d)
    outer, outer_bias = reader.linear(at + "ffn_output", d, hidden)
    return Layer(
        query=cut_rows(query, heads), key=cut_rows(key, heads), value=cut_rows(value, heads), output=cut_columns(output, heads),
        query_bias=cut_bias(query_bias, heads), key_bias=cut_bias(key_bias, heads), value_bias=cut_bias(value_bias, heads),
        output_bias=output_bias,
        attention_norm=reader.norm(at + "attention.LayerNorm", d, eps),
        feedforward_norm=reader.norm(at + "full_layer_layer_norm", d, eps),
        inner=inner, inner_bias=inner_bias, gate=None, outer=outer, outer_bias=outer_bias,
    )  # fmt: skip
