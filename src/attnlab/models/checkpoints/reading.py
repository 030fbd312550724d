"""Take tensors and numbers from a checkpoint. Errors name what is missing, has the wrong shape, or
is not finite.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from attnlab.models.checkpoints.record import (
    Attention,
    BadModel,
    Config,
    FeedForward,
    Layer,
    Norm,
    Tensors,
    post_norm,
    pre_norm,
)

LARGEST, MOST_LAYERS = 1 << 31, 10_000
"""The largest size in a config: a hostile one would need more memory than exists."""

ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_tanh": "gelu_tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
}


def whole(
    raw: Mapping[str, Any],
    key: str,
    default: int | None = None,
    *,
    least: int = 1,
    most: int = LARGEST,
) -> int:
    """Return the whole number under `key` of a config, or `default` if it is missing or null."""
    value = raw.get(key)
    value = default if value is None else value
    if value is None:
        raise BadModel(
            f"The config must say {key}, but it does not. Add it, or take the config.json that came"
            " with the checkpoint."
        )
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise BadModel(
            f"{key} in the config must be a whole number from {least} to {most}, found"
            f" {str(value)[:60]!r}."
        )
    return value


def number(raw: Mapping[str, Any], key: str, default: float) -> float:
    """Return the positive number under `key` of a config, or `default` if it is missing or null."""
    value = raw.get(key)
    value = default if value is None else value
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < 1e300:
        raise BadModel(f"{key} in the config must be a positive number, found {str(value)[:60]!r}.")
    return float(value)


def activation(raw: Mapping[str, Any], key: str, default: str) -> str:
    """Return attnlab's name of the activation under `key` of a config."""
    said = raw.get(key) or default
    if not isinstance(said, str) or said not in ACTIVATIONS:
        raise BadModel(
            f"{key} in the config is {str(said)[:60]!r}, which is not computed here. Known:"
            f" {', '.join(ACTIVATIONS)}."
        )
    return ACTIVATIONS[said]


STORED = (
    "attn.bias",
    "attn.masked_bias",
    "attention.bias",
    "attention.masked_bias",
    "rotary_embeddings.inv_freq",
    "rotary_emb.inv_freq",
    "rotary_emb.cos_cached",
    "rotary_emb.sin_cached",
    "attn.mask",
    "attn.IGNORE",
    "attn.rotary_cos",
    "attn.rotary_sin",
)
"""Masks and rotary tables that old files store in every layer. They are computed from the config
instead.
"""


def must_be(raw: Mapping[str, Any], key: str, *allowed: Any) -> None:
    """Refuse a config whose `key` asks for a variant of the architecture that is not computed
    here.
    """
    if raw.get(key, allowed[0]) not in allowed:
        raise BadModel(
            f"{key} in the config is {str(raw[key])[:60]!r}; only {' or '.join(map(repr, allowed))}"
            " is computed here. Such a checkpoint needs its own family."
        )


def head_size_of(d: int, heads: int) -> int:
    """Return d / heads, which must be a whole number."""
    if d % heads:
        raise BadModel(
            f"The width d = {d} (hidden_size, n_embd, dim or d_model in the config) must be a multiple"
            f" of the number of heads, but the config says {heads} heads (num_attention_heads, n_head,"
            " n_heads, num_heads or encoder_attention_heads)."
        )
    return d // heads


class Reader:
    """The tensors of one checkpoint under the names of its family, without their prefix (`bert.`,
    `model.`).
    """

    def __init__(self, tensors: Tensors, anchor: str):
        """`anchor` is a name that every checkpoint of the family has; the part before it is the
        prefix of all names.
        """
        names = [str(name) for name in tensors]
        found = sorted(
            {
                name[: -len(anchor)]
                for name in names
                if name == anchor or name.endswith("." + anchor)
            }
        )
        if len(found) != 1:
            several = f"several models in one, under {', '.join(map(repr, found[:4]))}"
            what = several if found else _list_tensors(names)
            raise BadModel(
                f"The checkpoint must have one tensor whose name ends in {anchor!r}, but it has"
                f" {what}."
            )
        self.tensors, self.prefix, self._names = tensors, found[0], frozenset(names)
        self._read: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return self.prefix + name in self._names

    def take(self, name: str, *shape: int) -> np.ndarray:
        """Return the tensor `name`, which must have this shape and be finite."""
        full = self.prefix + name
        if full not in self._names:
            raise BadModel(
                f"The checkpoint must have the tensor {full!r}, but it has"
                f" {_list_tensors(self._names)}. The file is incomplete, or its config is that of"
                " another model."
            )
        array = self.tensors[full]
        self._read.add(full)
        if array.shape != shape:
            raise BadModel(
                f"The tensor {full!r} must have shape {shape} by the config, but has {array.shape}."
                " Config and tensors do not belong together: take both from the same checkpoint."
            )
        if not is_finite(array):
            raise BadModel(
                f"The tensor {full!r} holds NaN or infinite numbers. The checkpoint is damaged, or"
                " its training had diverged."
            )
        return array

    def optional(self, name: str, *shape: int) -> np.ndarray | None:
        """Return the tensor `name`, or None if the checkpoint does not have it."""
        return self.take(name, *shape) if name in self else None

    def take_shared(self, names: Sequence[str], *shape: int) -> np.ndarray:
        """Return the one tensor that a checkpoint has under one of these names, or under several if
        all are the same.
        """
        found = [self.take(name, *shape) for name in names if name in self]
        if not found:
            return self.take(names[0], *shape)  # raises
        for name, array in zip([name for name in names if name in self], found, strict=True):
            if not np.array_equal(array, found[0]):
                raise BadModel(
                    f"The tensor {self.prefix + name!r} must be the same as"
                    f" {self.prefix + names[0]!r}, because the model shares them, but it differs."
                    " Remove the wrong one from the checkpoint."
                )
        return found[0]

    def linear(self, name: str, outputs: int, inputs: int) -> tuple[np.ndarray, np.ndarray]:
        """Return weight (out, in) and bias (out,) of a PyTorch Linear."""
        return self.take(name + ".weight", outputs, inputs), self.take(name + ".bias", outputs)

    def norm(self, name: str, d: int, eps: float) -> Norm:
        """Return a LayerNorm. Checkpoints from TensorFlow call its gain gamma and its bias beta."""
        gain, bias = ("gamma", "beta") if f"{name}.gamma" in self else ("weight", "bias")
        return Norm("layer", self.take(f"{name}.{gain}", d), self.take(f"{name}.{bias}", d), eps)

    def no_more_layers(self, pattern: str, layers: int) -> None:
        """Refuse a config with fewer layers than the checkpoint has; `pattern` is a name with {}
        for the layer.
        """
        if pattern.format(layers) in self:
            raise BadModel(
                f"The config says {layers} layers, but the checkpoint also has"
                f" {self.prefix + pattern.format(layers)!r}. Config and tensors do not belong"
                " together: take both from the same checkpoint."
            )

    def must_agree(self, raw: Mapping[str, Any], key: str, name: str) -> None:
        """Refuse a config whose `key` is wrong about whether the checkpoint has the tensor
        `name`.
        """
        said = raw.get(key)
        if isinstance(said, bool) and said != (name in self):
            has = "does not have" if said else "has"
            raise BadModel(
                f"{key} in the config is {said}, but the checkpoint {has} the tensor"
                f" {self.prefix + name!r}. Config and tensors do not belong together: take both"
                " from the same checkpoint."
            )

    def refuse_unread(self, layers: str, family: str) -> None:
        """Refuse a checkpoint with a tensor inside a layer that was not read; the names of layers
        begin with `layers`.
        """
        inside = (
            name for name in self._names - self._read if name.startswith(self.prefix + layers)
        )
        unread = sorted(
            name for name in inside if not name.endswith(tuple(f".{end}" for end in STORED))
        )
        if unread:
            more = f" and {len(unread) - 1} more" if len(unread) > 1 else ""
            raise BadModel(
                f"The checkpoint has the tensor {unread[0][:120]!r}{more} inside a layer. The"
                f" family {family} does not compute with it, so hidden states would be wrong. Such"
                " a checkpoint needs its own family; another model_type does not make it right."
            )


def is_finite(array: np.ndarray) -> bool:
    """Whether every entry is finite. It checks pieces, so that a mapped file is read without a full
    copy.
    """
    flat = (
        array.reshape(-1) if array.flags.c_contiguous else np.ascontiguousarray(array).reshape(-1)
    )
    return all(
        bool(np.isfinite(flat[start : start + (1 << 20)]).all())
        for start in range(0, flat.size, 1 << 20)
    )


def cut_rows(matrix: np.ndarray, heads: int) -> np.ndarray:
    """(heads * size, d) -> (heads, size, d): head h owns rows h * size to (h + 1) * size of
    queries, keys and values.
    """
    return matrix.reshape(heads, -1, matrix.shape[1])


def cut_columns(matrix: np.ndarray, heads: int) -> np.ndarray:
    """(d, heads * size) -> (heads, d, size): head h owns the same columns of the output matrix."""
    return matrix.reshape(matrix.shape[0], heads, -1).transpose(1, 0, 2)


def cut_bias(bias: np.ndarray | None, heads: int) -> np.ndarray | None:
    """(heads * size,) -> (heads, size)."""
    return None if bias is None else bias.reshape(heads, -1)


class EncoderNames(NamedTuple):
    """The names in a family of the parts of a BERT-like layer, after the name of the layer."""

    query: str
    key: str
    value: str
    output: str
    attention_norm: str
    inner: str
    outer: str
    feedforward_norm: str


def encoder_layer(
    reader: Reader,
    at: str,
    names: EncoderNames,
    config: Config,
    eps: float,
    without_bias: Collection[str] = (),
    **more: Any,
) -> Layer:
    """Return the BERT-like layer with tensors `at`...: every map has a bias, each head has its key
    head, no gate.

    It is pre-norm if the config says so. without_bias: which of query, key and value have no bias.
    more: other fields of its attention.
    """
    d, heads, hidden = config.d, config.heads, config.hidden

    def linear(part: str) -> tuple[np.ndarray, np.ndarray | None]:
        name = at + getattr(names, part)
        if part in without_bias:
            return reader.take(name + ".weight", d, d), None
        return reader.linear(name, d, d)

    (query, query_bias), (key, key_bias), (value, value_bias) = map(
        linear, ("query", "key", "value")
    )
    output, output_bias = reader.linear(at + names.output, d, d)
    inner, inner_bias = reader.linear(at + names.inner, hidden, d)
    outer, outer_bias = reader.linear(at + names.outer, d, hidden)
    attention = Attention(
        query=cut_rows(query, heads),
        key=cut_rows(key, heads),
        value=cut_rows(value, heads),
        output=cut_columns(output, heads),
        query_bias=cut_bias(query_bias, heads),
        key_bias=cut_bias(key_bias, heads),
        value_bias=cut_bias(value_bias, heads),
        output_bias=output_bias,
        **more,
    )
    feedforward = FeedForward(config.activation, inner, outer, inner_bias, outer_bias)
    arrange = pre_norm if config.is_pre_norm else post_norm
    return arrange(
        attention,
        reader.norm(at + names.attention_norm, d, eps),
        feedforward,
        reader.norm(at + names.feedforward_norm, d, eps),
    )


def read_attention(
    reader: Reader,
    at: str,
    config: Config,
    output: str = "o_proj",
    has_biases: bool = False,
    **more: Any,
) -> Attention:
    """Return the attention with the matrices `at`q_proj, k_proj, v_proj and `output`.

    has_biases : each of them must have a bias; if false, they may have one
    more       : other fields of the record
    """
    bias_of = reader.take if has_biases else reader.optional
    d, heads, kv_heads = config.d, config.heads, config.kv_heads
    wide, narrow = heads * config.head_size, kv_heads * config.head_size
    return Attention(
        query=cut_rows(reader.take(at + "q_proj.weight", wide, d), heads),
        key=cut_rows(reader.take(at + "k_proj.weight", narrow, d), kv_heads),
        value=cut_rows(reader.take(at + "v_proj.weight", narrow, d), kv_heads),
        output=cut_columns(reader.take(f"{at}{output}.weight", d, wide), heads),
        query_bias=cut_bias(bias_of(at + "q_proj.bias", wide), heads),
        key_bias=cut_bias(bias_of(at + "k_proj.bias", narrow), kv_heads),
        value_bias=cut_bias(bias_of(at + "v_proj.bias", narrow), kv_heads),
        output_bias=bias_of(f"{at}{output}.bias", d),
        **more,
    )


def read_joined_attention(
    reader: Reader, at: str, config: Config, has_biases: bool = False, **more: Any
) -> Attention:
    """Return the attention whose queries, keys and values are one matrix `at`query_key_value, with
    the rows (heads, 3, head size).

    has_biases and more: as in `read_attention`.
    """
    bias_of = reader.take if has_biases else reader.optional
    d, heads = config.d, config.heads
    joined = reader.take(at + "query_key_value.weight", 3 * d, d).reshape(heads, 3, -1, d)
    bias = bias_of(at + "query_key_value.bias", 3 * d)
    query_bias, key_bias, value_bias = (
        None if bias is None else bias.reshape(heads, 3, -1)[:, part] for part in range(3)
    )
    return Attention(
        query=joined[:, 0],
        key=joined[:, 1],
        value=joined[:, 2],
        output=cut_columns(reader.take(at + "dense.weight", d, d), heads),
        query_bias=query_bias,
        key_bias=key_bias,
        value_bias=value_bias,
        output_bias=bias_of(at + "dense.bias", d),
        **more,
    )


def read_gated_feedforward(reader: Reader, at: str, config: Config) -> FeedForward:
    """Return a feed-forward part with a gate: `at`gate_proj, up_proj and down_proj, with their
    biases if any.
    """
    d, hidden = config.d, config.hidden
    return FeedForward(
        config.activation,
        inner=reader.take(at + "up_proj.weight", hidden, d),
        inner_bias=reader.optional(at + "up_proj.bias", hidden),
        gate=reader.take(at + "gate_proj.weight", hidden, d),
        gate_bias=reader.optional(at + "gate_proj.bias", hidden),
        outer=reader.take(at + "down_proj.weight", d, hidden),
        outer_bias=reader.optional(at + "down_proj.bias", d),
    )


def read_kv_heads(raw: Mapping[str, Any], heads: int, default: int | None = None) -> int:
    """Return num_key_value_heads of a config: the number of key heads. Equally many heads share
    each of them.
    """
    kv_heads = whole(raw, "num_key_value_heads", heads if default is None else default)
    if heads % kv_heads:
        raise BadModel(
            f"The {heads} heads must be a multiple of the key heads they share, but the config says"
            f" {kv_heads} of those."
        )
    return kv_heads


def _list_tensors(names: Any) -> str:
    some = sorted(str(name)[:80] for name in names)
    return (
        f"{len(some)} tensors, such as {', '.join(map(repr, some[:3]))}"
        if some
        else "no tensors at all"
    )
