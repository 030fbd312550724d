"""GPT-Neo: GPT-2 with plain matrices, scores that are not divided by anything, and a window in
every second layer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
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

ANCHOR = "h.{}.attn.attention.q_proj.weight"
READS = ("layer_norm_epsilon", "activation_function", "attention_types", "window_size")


@family(
    "gpt_neo",
    model_types=("gpt_neo",),
    mark=ANCHOR.format(0),
    aliases={"num_attention_heads": "num_heads", "num_hidden_layers": "num_layers"},
)
def read(tensors: Tensors, raw: Mapping[str, Any]) -> Parts:
    """The parts of a GPTNeoModel, with or without the language-model head."""
    must_be(raw, "position_embedding_type", "absolute", None)
    d, heads = whole(raw, "hidden_size"), whole(raw, "num_heads")
    layers = whole(raw, "num_layers", most=MOST_LAYERS)
    windows = _windows_of(raw, layers)
    config = honour_keys(
        raw,
        Config(
            family="gpt_neo",
            d=d,
            heads=heads,
            kv_heads=heads,
            head_size=head_size_of(d, heads),
            layers=layers,
            hidden=whole(raw, "intermediate_size", 4 * d),
            vocabulary=whole(raw, "vocab_size"),
            length=whole(raw, "max_position_embeddings", 2048),
            is_pre_norm=True,
            is_causal=True,
            activation=activation(raw, "activation_function", "gelu_new"),
        ),
        READS,
        "GPTNeo",
    )
    if any(windows):
        config = replace(config, window=whole(raw, "window_size", 256), is_window_computed=True)
    eps = number(raw, "layer_norm_epsilon", 1e-5)
    reader = Reader(tensors, ANCHOR.format(0))
    reader.no_more_layers(ANCHOR, layers)
    embedding = Embedding(
        reader.take("wte.weight", config.vocabulary, d), reader.take("wpe.weight", config.length, d)
    )
    found = tuple(
        _layer_of(reader, f"h.{layer}.", config, eps, window)
        for layer, window in enumerate(windows)
    )
    reader.refuse_unread("h.", "gpt_neo")
    return Parts(config, embedding, found, reader.norm("ln_f", d, eps))


def _layer_of(reader: Reader, at: str, config: Config, eps: float, window: int | None) -> Layer:
    inner, inner_bias = reader.linear(at + "mlp.c_fc", config.hidden, config.d)
    outer, outer_bias = reader.linear(at + "mlp.c_proj", config.d, config.hidden)
    attention = read_attention(
        reader, at + "attn.attention.", config, "out_proj", scale=1.0, window=window
    )
    if attention.output_bias is None:
        reader.take(at + "attn.attention.out_proj.bias", config.d)  # raises: GPT-Neo always has one
    return pre_norm(
        attention,
        reader.norm(at + "ln_1", config.d, eps),
        FeedForward(config.activation, inner, outer, inner_bias, outer_bias),
        reader.norm(at + "ln_2", config.d, eps),
    )


def _windows_of(raw: Mapping[str, Any], layers: int) -> list[int | None]:
    """The window of each layer by attention_types, a list of [["global", "local"], how often].

    attention_layers, a word for each layer, comes first, as in the original.
    """
    width, types = whole(raw, "window_size", 256), raw.get("attention_types")
    if (words := raw.get("attention_layers")) is not None:
        types = [[words, 1]]
    kinds: list[Any] = []
    pieces: Any = [[["global", "local"], 12]] if types is None else types
    try:
        for names, times in pieces:
            kinds += list(names) * (
                min(whole({"times": times}, "times"), MOST_LAYERS)
                if len(kinds) < MOST_LAYERS
                else 0
            )
    except (TypeError, ValueError):
        kinds = []
    if len(kinds) != layers or not all(kind in ("global", "local") for kind in kinds):
        raise BadModel(
            "attention_types (or attention_layers) in the config must name global or local attention"
            " for each of the"
            f" {layers} layers, found {str(types)[:60]!r}. Take the config.json that came with the"
            " checkpoint."
        )
    return [width if kind == "local" else None for kind in kinds]
