"""TransformerEncoder of torch.nn: norms after or before each part, biases, no embedding: it reads x
(n, d).
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
    cut_bias,
    cut_columns,
    cut_rows,
    head_size_of,
    must_be,
    number,
    whole,
)
from attnlab.models.checkpoints.record import (
    ANY_LENGTH,
    Attention,
    BadModel,
    Config,
    FeedForward,
    Layer,
    Norm,
    Parts,
    Tensors,
    post_norm,
    pre_norm,
)

ANCHOR = "layers.{}.self_attn.in_proj_weight"
READS = ("activation", "is_causal")
KEYS = ("nhead", "norm_first", "activation", "layer_norm_eps", "is_causal")
IGNORED = (
    "model_type d_model dim_feedforward num_layers bias dropout batch_first enable_nested_tensor"
    " mask_check device dtype"
).split()
"""Arguments of torch that the tensors say as well, or that change no hidden state."""


@family("torch_encoder", model_types=("torch_encoder",), mark=ANCHOR.format(0))
def read(tensors: Tensors, raw: Mapping[str, Any]) -> Parts:
    """The parts of a TransformerEncoder. Its tensors say all but nhead, norm_first and the
    activation.
    """
    _refuse_unknown(raw)
    for key in ("norm_first", "is_causal"):
        must_be(raw, key, False, True, None)
    reader = Reader(tensors, ANCHOR.format(0))
    layers = 0
    while ANCHOR.format(layers) in reader and layers < MOST_LAYERS:
        layers += 1
    sizes = [_shape(reader, f"layers.0.{name}") for name in ("self_attn.out_proj", "linear1")]
    d, hidden = sizes[0][0], sizes[1][0]
    if raw.get("nhead") is None:
        raise BadModel(
            "The tensors of a torch.nn.TransformerEncoder do not say its number of heads: give"
            " config={'nhead': ..., 'norm_first': ..., 'activation': ...}, or the encoder itself."
        )
    heads = whole(raw, "nhead")
    config = Config(
        family="torch_encoder",
        d=d,
        heads=heads,
        kv_heads=heads,
        head_size=head_size_of(d, heads),
        layers=layers,
        hidden=hidden,
        vocabulary=0,
        length=ANY_LENGTH,
        is_pre_norm=bool(raw.get("norm_first")),
        is_causal=bool(raw.get("is_causal")),
        activation=activation(raw, "activation", "relu"),
    )
    config = honour_keys(raw, config, READS)
    eps = number(raw, "layer_norm_eps", 1e-5)
    found = tuple(_layer_of(reader, f"layers.{l}.", config, eps) for l in range(layers))
    reader.refuse_unread("layers.", "torch_encoder")
    has_norm = "norm.weight" in reader
    return Parts(config, None, found, _norm_of(reader, "norm", d, eps) if has_norm else None)


def _refuse_unknown(raw: Mapping[str, Any]) -> None:
    """Refuse a key that is not known: a person wrote this config, and norm_fist would be ignored."""
    unknown = next((key for key in raw if key not in (*KEYS, *IGNORED)), None)
    if unknown is not None:
        raise BadModel(
            f"The config of a torch.nn.TransformerEncoder has the keys {', '.join(KEYS)}, and"
            f" {str(unknown)[:80]!r} is none of them. Correct its name, or leave it out."
        )


def _shape(reader: Reader, name: str) -> tuple[int, int]:
    full = f"{name}.weight"
    shape: tuple[int, ...] = reader.tensors[reader.prefix + full].shape if full in reader else ()
    if len(shape) != 2:
        raise BadModel(
            f"The checkpoint must have the matrix {reader.prefix + full!r}, but it has"
            f" {'shape ' + str(shape) if full in reader else 'no such tensor'}."
        )
    return int(shape[0]), int(shape[1])


def _norm_of(reader: Reader, name: str, d: int, eps: float) -> Norm:
    return Norm("layer", reader.take(f"{name}.weight", d), reader.optional(f"{name}.bias", d), eps)


def _layer_of(reader: Reader, at: str, config: Config, eps: float) -> Layer:
    d, heads, hidden = config.d, config.heads, config.hidden
    joined = reader.take(at + "self_attn.in_proj_weight", 3 * d, d)
    biases = reader.optional(at + "self_attn.in_proj_bias", 3 * d)
    query, key, value = (cut_rows(joined[i * d : (i + 1) * d], heads) for i in range(3))
    query_bias, key_bias, value_bias = (
        None if biases is None else cut_bias(biases[i * d : (i + 1) * d], heads) for i in range(3)
    )
    attention = Attention(
        query=query,
        key=key,
        value=value,
        output=cut_columns(reader.take(at + "self_attn.out_proj.weight", d, d), heads),
        query_bias=query_bias,
        key_bias=key_bias,
        value_bias=value_bias,
        output_bias=reader.optional(at + "self_attn.out_proj.bias", d),
    )
    part = FeedForward(
        config.activation,
        inner=reader.take(at + "linear1.weight", hidden, d),
        outer=reader.take(at + "linear2.weight", d, hidden),
        inner_bias=reader.optional(at + "linear1.bias", hidden),
        outer_bias=reader.optional(at + "linear2.bias", d),
    )
    first, second = (_norm_of(reader, f"{at}norm{i}", d, eps) for i in (1, 2))
    return (pre_norm if config.is_pre_norm else post_norm)(attention, first, part, second)
