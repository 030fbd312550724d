"""The model itself in plain NumPy: embedding, attention, feed-forward part, in the order its family has them.

    post-norm   x = norm(x + attention(x));   x = norm(x + feedforward(x))
    pre-norm    x = x + attention(norm(x));   x = x + feedforward(norm(x))
    parallel    x = x + attention(norm(x)) + feedforward(norm'(x))

Tokens are (*batch, n, d) throughout.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from attnlab.displayed import Displayed, short_repr
from attnlab.models.record import Config, Embedding, Layer, Norm, Parts
from attnlab.models.rotary import rotated


@dataclass(frozen=True, eq=False)
class Step(Displayed):
    """One layer done: the stream after it and the attention inside it."""

    x: np.ndarray                   # (*batch, n, d)
    attention: np.ndarray           # (*batch, h, n, n): row i says where token i looks
    __repr__ = short_repr


NORMS, FEEDFORWARD = "norms", "feedforward"
"""Pieces that can be taken out of a stack."""


def steps(parts: Parts, x: np.ndarray, seen: np.ndarray, without: Collection[str] = ()) -> Iterator[Step]:
    """The stream after every layer, from the embedded tokens x on; `seen` (*batch, n, n) or (n, n) says which token sees which.

    The last one has the final norm applied where the family has one, as the hidden states of the original implementations do.
    without: pieces that are taken out, NORMS (identities instead) or FEEDFORWARD (nothing is added).
    """
    for number, layer in enumerate(parts.layers):
        x, attention = layer_step(parts.config, layer, x, seen, without)
        if number == len(parts.layers) - 1 and parts.final_norm is not None and NORMS not in without:
            x = normed(parts.final_norm, x)
        yield Step(x, attention)


def layer_step(
    config: Config, layer: Layer, x: np.ndarray, seen: np.ndarray, without: Collection[str] = ()
) -> tuple[np.ndarray, np.ndarray]:
    """The stream after one layer, without a final norm, and the attention (*batch, h, n, n) inside it."""

    def norm(by: Norm, x: np.ndarray) -> np.ndarray:
        return x if NORMS in without else normed(by, x)

    def forward(x: np.ndarray) -> np.ndarray:
        return np.zeros_like(x) if FEEDFORWARD in without else feedforward(config, layer, x)

    if not config.is_pre_norm:
        output, attention = attention_output(config, layer, x, seen)
        x = norm(layer.attention_norm, x + output)
        return norm(layer.feedforward_norm, x + forward(x)), attention
    output, attention = attention_output(config, layer, norm(layer.attention_norm, x), seen)
    if config.is_parallel:
        return x + output + forward(norm(layer.feedforward_norm, x)), attention
    x = x + output
    return x + forward(norm(layer.feedforward_norm, x)), attention


def attention_output(config: Config, layer: Layer, x: np.ndarray, seen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What attention adds to the stream when it reads x, all heads in one product, and its matrix (*batch, h, n, n)."""
    attention = attention_matrix(config, layer, x, seen)
    group = config.heads // config.kv_heads
    value = np.repeat(mapped(layer.value, layer.value_bias, x), group, axis=-3)               # (*batch, h, n, size)
    mixed = np.moveaxis(attention @ value, -3, -2)                                            # (*batch, n, h, size)
    merged = mixed.reshape(*mixed.shape[:-2], config.heads * config.head_size)
    output = as_dtype(layer.output, x).transpose(1, 0, 2).reshape(config.d, -1)               # (d, h * size)
    result = merged @ output.T
    return result if layer.output_bias is None else result + as_dtype(layer.output_bias, x), attention


def attention_matrix(config: Config, layer: Layer, x: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """softmax over j of <q_i, k_j> / sqrt(head_size), (*batch, h, n, n); a token that sees nothing has a row of zeros."""
    places = np.arange(x.shape[-2])
    group = config.heads // config.kv_heads
    query = rotated(config, mapped(layer.query, layer.query_bias, x), places)                 # (*batch, h, n, size)
    key = np.repeat(rotated(config, mapped(layer.key, layer.key_bias, x), places), group, axis=-3)
    scores = query @ np.swapaxes(key, -1, -2) * x.dtype.type(config.head_size**-0.5)          # (*batch, h, n, n)
    scores = np.where(seen[..., None, :, :], scores, -np.inf)
    largest = scores.max(axis=-1, keepdims=True)
    weights = np.exp(scores - np.where(np.isfinite(largest), largest, 0))
    return weights / np.maximum(weights.sum(axis=-1, keepdims=True), np.finfo(x.dtype).tiny)


def mapped(matrices: np.ndarray, bias: np.ndarray | None, x: np.ndarray) -> np.ndarray:
    """W_h x_i + b_h for every head and token: (h, size, d), (h, size) or None, (*batch, n, d) -> (*batch, h, n, size)."""
    result = x[..., None, :, :] @ np.swapaxes(as_dtype(matrices, x), 1, 2)
    return result if bias is None else result + as_dtype(bias, x)[:, None, :]


def feedforward(config: Config, layer: Layer, x: np.ndarray) -> np.ndarray:
    """outer activation(inner x), with the gate where there is one."""
    inner = _affine(layer.inner, layer.inner_bias, x)
    if layer.gate is None:
        inner = activated(config.activation, inner)
    else:
        inner = activated(config.activation, _affine(layer.gate, layer.gate_bias, x)) * inner
    return _affine(layer.outer, layer.outer_bias, inner)


def normed(norm: Norm, x: np.ndarray) -> np.ndarray:
    """The norm of every token."""
    if norm.kind == "layer":
        x = x - x.mean(axis=-1, keepdims=True)
    scale = np.sqrt(np.square(x).mean(axis=-1, keepdims=True) + x.dtype.type(norm.eps))
    result = x / scale * as_dtype(norm.gain, x)
    return result if norm.bias is None else result + as_dtype(norm.bias, x)


def activated(name: str, x: np.ndarray) -> np.ndarray:
    """The activation function of this name, entry by entry."""
    if name == "relu":
        return np.maximum(x, 0)
    from scipy import special

    if name == "silu":
        return x * special.expit(x)
    if name == "gelu":
        return x * (1 + special.erf(x * x.dtype.type(0.5**0.5))) / 2
    if name == "gelu_tanh":
        return x * (1 + np.tanh(x.dtype.type((2 / np.pi) ** 0.5) * (x + x.dtype.type(0.044715) * x**3))) / 2
    raise ValueError(f"The activation must be gelu, gelu_tanh, relu or silu, got {name!r}.")


def embedded(embedding: Embedding, ids: np.ndarray, dtype: Any) -> np.ndarray:
    """The tokens (*batch, n, d) that enter the first layer."""
    x = np.asarray(embedding.tokens[ids], dtype=dtype)
    if embedding.kinds is not None:
        x = x + as_dtype(embedding.kinds[0], x)
    if embedding.positions is not None:
        places = np.arange(ids.shape[-1]) + embedding.position_offset
        if embedding.padding is not None:           # RoBERTa counts tokens that are there; padding has the place before the first
            real = ids != embedding.padding
            places = np.where(real, np.cumsum(real, axis=-1) - 1 + embedding.position_offset, embedding.position_offset - 1)
        x = x + np.asarray(embedding.positions[places], dtype=dtype)
    if embedding.norm is not None:
        x = normed(embedding.norm, x)
    return x if embedding.projection is None else _affine(embedding.projection, embedding.projection_bias, x)


def seen_by(config: Config, mask: np.ndarray) -> np.ndarray:
    """Whether token i sees token j, (*batch, n, n): j is no padding by `mask` (*batch, n) and, in a causal model, not later."""
    n = mask.shape[-1]
    seen = np.broadcast_to(mask[..., None, :], (*mask.shape[:-1], n, n))
    return seen & np.tri(n, dtype=bool) if config.is_causal else seen


def as_dtype(array: np.ndarray, like: np.ndarray) -> np.ndarray:
    """`array` in the precision that `like` is computed in."""
    return np.asarray(array, dtype=like.dtype)


def _affine(matrix: np.ndarray, bias: np.ndarray | None, x: np.ndarray) -> np.ndarray:
    result = x @ as_dtype(matrix, x).T
    return result if bias is None else result + as_dtype(bias, x)
