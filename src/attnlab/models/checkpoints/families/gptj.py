"""GPT-J: attention and feed-forward part read the same normed stream; neighbouring coordinates of a
head are turned.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attnlab.models.checkpoints.config_keys import honour_keys
from attnlab.models.checkpoints.families import family
from attnlab.models.checkpoints.reading import (
    MOST_LAYERS,
    Reader,
    activation,
    head_size_of,
    must_be,
    number,
    read_attention,
    whole,
)
from attnlab.models.checkpoints.record import (
    BadModel,
    Config,
    Embedding,
    FeedForward,
    Layer,
    Parts,
    Tensors,
    pre_norm,
)

ANCHOR = "h.{}.attn.q_proj.weight"
READS = ("layer_norm_epsilon", "activation_function", "rotary_dim")


@family(
    "gptj",
    model_types=("gptj",),
    mark=ANCHOR.format(0),
    aliases={
        "hidden_size": "n_embd",
        "max_position_embeddings": "n_positions",
        "num_attention_heads": "n_head",
        "num_hidden_layers": "n_layer",
    },
)
def read(tensors: Tensors, raw: Mapping[str, Any]) -> Parts:
    """The parts of a GPTJModel, with or without the language-model head."""
    must_be(raw, "position_embedding_type", "rotary", "rope", None)
    d, heads = whole(raw, "n_embd"), whole(raw, "n_head")
    layers, size, rope_size = (
        whole(raw, "n_layer", most=MOST_LAYERS),
        head_size_of(d, heads),
        whole(raw, "rotary_dim", 64),
    )
    if rope_size % 2 or rope_size > size:
        raise BadModel(
            f"rotary_dim in the config must be even and at most the head size {size}, found"
            f" {rope_size}."
        )
    config = honour_keys(
        raw,
        Config(
            family="gptj",
            d=d,
            heads=heads,
            kv_heads=heads,
            head_size=size,
            layers=layers,
            hidden=whole(raw, "n_inner", 4 * d),
            vocabulary=whole(raw, "vocab_size"),
            length=whole(raw, "n_positions", 2048),
            is_pre_norm=True,
            is_causal=True,
            is_parallel=True,
            activation=activation(raw, "activation_function", "gelu_new"),
            rope_theta=10000.0,
            rope_size=rope_size,
            rope_pairs="neighbours",
        ),
        READS,
        "GPTJ",
    )
    eps = number(raw, "layer_norm_epsilon", 1e-5)
    reader = Reader(tensors, ANCHOR.format(0))
    reader.no_more_layers(ANCHOR, layers)
    embedding = Embedding(reader.take("wte.weight", config.vocabulary, d))
    found = tuple(_layer_of(reader, f"h.{layer}.", config, eps) for layer in range(layers))
    reader.refuse_unread("h.", "gptj")
    return Parts(config, embedding, found, reader.norm("ln_f", d, eps))


def _layer_of(reader: Reader, at: str, config: Config, eps: float) -> Layer:
    inner, inner_bias = reader.linear(at + "mlp.fc_in", config.hidden, config.d)
    outer, outer_bias = reader.linear(at + "mlp.fc_out", config.d, config.hidden)
    norm = reader.norm(at + "ln_1", config.d, eps)
    attention = read_attention(reader, at + "attn.", config, "out_proj", rotary=config.rotary)
    return pre_norm(
        attention,
        norm,
        FeedForward(config.activation, inner, outer, inner_bias, outer_bias),
        norm,
        is_parallel=True,
    )
