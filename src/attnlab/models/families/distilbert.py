"""DistilBERT: BERT's layer under other names, without kinds of tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attnlab.models.families import family
from attnlab.models.reading import MOST_LAYERS, Reader, activation, cut_bias, cut_columns, cut_rows, head_size_of, whole
from attnlab.models.record import Config, Embedding, Layer, Parts, Tensors

EPS = 1e-12             # fixed in the original implementation


@family("distilbert", model_types=("distilbert",), mark="transformer.layer.0.attention.q_lin.weight")
def read(tensors: Tensors, raw: Mapping[str, Any]) -> Parts:
    """The parts of a DistilBertModel, with or without a head for some task on top."""
    d, heads = whole(raw, "dim"), whole(raw, "n_heads")
    layers = whole(raw, "n_layers", most=MOST_LAYERS)
    config = Config(
        family="distilbert", d=d, heads=heads, kv_heads=heads, head_size=head_size_of(d, heads), layers=layers,
        hidden=whole(raw, "hidden_dim"), vocabulary=whole(raw, "vocab_size"), length=whole(raw, "max_position_embeddings", 512),
        activation=activation(raw, "activation", "gelu"),
    )  # fmt: skip
    reader = Reader(tensors, "transformer.layer.0.attention.q_lin.weight")
    reader.no_more_layers("transformer.layer.{}.attention.q_lin.weight", layers)
    embedding = Embedding(
        tokens=reader.take("embeddings.word_embeddings.weight", config.vocabulary, d),
        positions=reader.take("embeddings.position_embeddings.weight", config.length, d),
        norm=reader.norm("embeddings.LayerNorm", d, EPS),
    )
    return Parts(config, embedding, tuple(_layer_of(reader, f"transformer.layer.{l}.", config) for l in range(layers)))


def _layer_of(reader: Reader, at: str, config: Config) -> Layer:
    d, heads, hidden = config.d, config.heads, config.hidden
    query, query_bias = reader.linear(at + "attention.q_lin", d, d)
    key, key_bias = reader.linear(at + "attention.k_lin", d, d)
    value, value_bias = reader.linear(at + "attention.v_lin", d, d)
    output, output_bias = reader.linear(at + "attention.out_lin", d, d)
    inner, inner_bias = reader.linear(at + "ffn.lin1", hidden, d)
    outer, outer_bias = reader.linear(at + "ffn.lin2", d, hidden)
    return Layer(
        query=cut_rows(query, heads), key=cut_rows(key, heads), value=cut_rows(value, heads), output=cut_columns(output, heads),
        query_bias=cut_bias(query_bias, heads), key_bias=cut_bias(key_bias, heads), value_bias=cut_bias(value_bias, heads),
        output_bias=output_bias,
        attention_norm=reader.norm(at + "sa_layer_norm", d, EPS), feedforward_norm=reader.norm(at + "output_layer_norm", d, EPS),
        inner=inner, inner_bias=inner_bias, gate=None, outer=outer, outer_bias=outer_bias,
    )  # fmt: skip
