"""The model itself in plain NumPy: an embedding, then layers, each a tuple of blocks
(`record.Block`).

    post-norm   x = norm(x + attention(x));         x = norm(x + feedforward(x))
    pre-norm    x = x + attention(norm(x));         x = x + feedforward(norm(x))
    sandwich    x = x + norm'(attention(norm(x)));  x = x + norm'(feedforward(norm(x)))
    parallel    x = x + attention(norm(x)) + feedforward(norm'(x))

Tokens are (*batch, n, d) throughout.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from attnlab.displayed import Displayed, short_repr
from attnlab.models.checkpoints.distances import add_distances
from attnlab.models.checkpoints.record import (
    Attention,
    Block,
    Config,
    Embedding,
    FeedForward,
    Layer,
    Norm,
    Parts,
)
from attnlab.models.checkpoints.rotary import rotate
from attnlab.models.checkpoints.spread import ROWS, head_blocks, in_blocks, over_tokens, prepared


@dataclass(frozen=True, eq=False)
class Step(Displayed):
    """One layer: the stream after it, and what was kept of the attention inside it."""

    x: np.ndarray  # (*batch, n, d)
    attention: np.ndarray  # (*batch, h, n, n): row i is the attention of token i
    heads: np.ndarray | None = None  # (*batch, h, n, d): what each head adds to the stream
    fed: np.ndarray | None = None  # (*batch, n, d): what the feed-forward part adds
    __repr__ = short_repr


@dataclass(frozen=True, eq=False)
class Mixed(Displayed):
    """What attention adds to the stream, and, where it was kept, how."""

    added: np.ndarray  # (*batch, n, d)
    attention: np.ndarray | None = None  # (*batch, h, n, n)
    heads: np.ndarray | None = None  # (*batch, h, n, d): added = their sum + the output bias
    fed: np.ndarray | None = None  # (*batch, n, d): what the feed-forward part adds
    __repr__ = short_repr


NORMS, FEEDFORWARD, WINDOWS = "norms", "feedforward", "windows"
"""Parts that can be left out of a stack."""


ATTENTION, HEADS, FED = "attention", "heads", "feedforward"
"""What can be kept of a layer besides the stream."""


def steps(
    parts: Parts,
    x: np.ndarray,
    seen: np.ndarray,
    without: Collection[str] = (),
    keep: Collection[str] = (ATTENTION,),
) -> Iterator[Step]:
    """Yield the stream after every layer, from the embedded tokens x. `seen` (*batch, n, n) or (n,
    n): which token sees which.

    If the family has a final norm, it is applied to the last one, as in the hidden states of the
    original implementations. without: parts that are left out, NORMS (identities instead; those of
    queries and keys stay),
        FEEDFORWARD (nothing is added) or WINDOWS (distant tokens are seen too). keep: some of
        ATTENTION, HEADS and FED. Attention that is not kept is an array without rows.
    """
    tokens = x[..., 0].size
    for number, layer in enumerate(parts.layers):
        if tokens > ROWS:  # once, and not for every block
            layer = in_precision(layer, x.dtype)
        with prepared(tokens):
            x, mixed = run_layer(layer, x, seen, without, keep)
        if (
            number == len(parts.layers) - 1
            and parts.final_norm is not None
            and NORMS not in without
        ):
            x = apply_norm(parts.final_norm, x)
        yield Step(
            x,
            np.empty(0, x.dtype) if mixed.attention is None else mixed.attention,
            mixed.heads,
            mixed.fed,
        )


def layer_step(
    layer: Layer, x: np.ndarray, seen: np.ndarray, without: Collection[str] = ()
) -> tuple[np.ndarray, np.ndarray]:
    """Return the stream after one layer, without a final norm, and the attention (*batch, h, n, n)
    inside it.
    """
    x, mixed = run_layer(layer, x, seen, without, (ATTENTION,))
    assert mixed.attention is not None
    return x, mixed.attention


def run_layer(
    layer: Layer, x: np.ndarray, seen: np.ndarray, without: Collection[str], keep: Collection[str]
) -> tuple[np.ndarray, Mixed]:
    """Return the stream after one layer, without a final norm, and what its parts added."""

    def norm(by: Norm | None, x: np.ndarray) -> np.ndarray:
        return x if by is None or NORMS in without else apply_norm(by, x)

    entered, kept, fed = x, None, None
    for block in layer.blocks:
        entered = entered if block.is_beside else x
        if isinstance(block.mixer, Attention):
            mixer = replace(block.mixer, window=None) if WINDOWS in without else block.mixer
            before = partial(norm, block.norm_before)
            read = over_tokens(before, entered)
            kept = mix(mixer, read, seen, keep)
            stream = read if block.is_sum_normed else x
            x = over_tokens(partial(_add, block, norm), stream, kept.added)
            continue
        if FED in keep:
            fed = over_tokens(partial(_fed, block, norm), entered)
        x = over_tokens(partial(_feed, block, norm, FEEDFORWARD in without), x, entered)
    assert kept is not None
    return x, replace(kept, fed=fed)


def in_precision(layer: Layer, dtype: Any) -> Layer:
    """Return the layer with its matrices and biases in that precision."""
    changes: dict[str, Any] = {}
    for block in layer.blocks:
        changes |= {
            name: np.asarray(value, dtype)
            for name, value in vars(block.mixer).items()
            if isinstance(value, np.ndarray) and value.dtype.kind == "f"
        }
    return layer.change(**changes)


def _add(block: Block, norm: Any, x: np.ndarray, added: np.ndarray) -> np.ndarray:
    """Return the stream after a block that adds `added`."""
    result: np.ndarray = norm(block.norm_sum, x + norm(block.norm_output, added))
    return result


def _fed(block: Block, norm: Any, entered: np.ndarray) -> np.ndarray:
    """Return what a block with a feed-forward part that reads `entered` adds."""
    assert isinstance(block.mixer, FeedForward)
    return feedforward(block.mixer, norm(block.norm_before, entered))


def _feed(
    block: Block, norm: Any, is_left_out: bool, x: np.ndarray, entered: np.ndarray
) -> np.ndarray:
    """Return the stream after a block with a feed-forward part that reads `entered`."""
    assert isinstance(block.mixer, FeedForward)
    read = norm(block.norm_before, entered)
    added = np.zeros_like(x) if is_left_out else feedforward(block.mixer, read)
    return _add(block, norm, read if block.is_sum_normed else x, added)


def attention_output(
    attention: Attention, x: np.ndarray, seen: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return what attention adds to the stream when it reads x, and its matrix (*batch, h, n,
    n).
    """
    mixed = mix(attention, x, seen, (ATTENTION,))
    assert mixed.attention is not None
    return mixed.added, mixed.attention


def mix(attention: Attention, x: np.ndarray, seen: np.ndarray, keep: Collection[str]) -> Mixed:
    """Return what attention adds to the stream when it reads x. Blocks of heads share the
    threads.
    """
    (*batch, n, _), (heads, d, size) = x.shape, attention.output.shape
    tokens, group = x[..., 0].size, heads // len(attention.key)
    values = np.empty((*batch, n, heads, size), x.dtype)
    matrix = np.empty((*batch, heads, n, n), x.dtype) if ATTENTION in keep else None

    def mix_block(block: slice) -> None:
        some = some_heads(attention, block)
        weights = attention_matrix(some, x, seen)
        value = np.repeat(map_heads(some.value, some.value_bias, x), group, axis=-3)
        values[..., block, :] = np.moveaxis(weights @ value, -3, -2)
        if matrix is not None:
            matrix[..., block, :, :] = weights

    in_blocks(mix_block, head_blocks(heads, group, tokens * n), tokens)
    merged = values.reshape(*batch, n, heads * size)
    output = as_dtype(attention.output, x).transpose(1, 0, 2).reshape(d, -1)  # (d, h * size)
    return Mixed(
        merged @ output.T
        if attention.output_bias is None
        else merged @ output.T + as_dtype(attention.output_bias, x),
        matrix,
        head_outputs(attention, values) if HEADS in keep else None,
    )


def head_outputs(attention: Attention, values: np.ndarray) -> np.ndarray:
    """Return what each head adds to the stream (*batch, h, n, d), from its mixed values (*batch, n,
    h, size).
    """
    return np.moveaxis(values, -2, -3) @ np.swapaxes(as_dtype(attention.output, values), 1, 2)


PER_HEAD = (
    "query",
    "output",
    "query_bias",
    "by_offset",
    "slopes",
    "offset_keys",
    "offset_queries",
)
PER_GROUP = ("key", "value", "key_bias", "value_bias")
"""The arrays of an Attention whose first axis counts heads, or heads of keys and values."""


def some_heads(attention: Attention, block: slice) -> Attention:
    """Return some heads of a layer: whole groups of heads that share keys and values."""
    group = len(attention.query) // len(attention.key)
    shared = slice(block.start // group, -(-block.stop // group))
    chosen = dict.fromkeys(PER_HEAD, block) | dict.fromkeys(PER_GROUP, shared)
    arrays = {name: getattr(attention, name) for name in chosen}
    return replace(
        attention,
        **{name: array[chosen[name]] for name, array in arrays.items() if array is not None},
    )


def attention_matrix(attention: Attention, x: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Return softmax over j of <q_i, k_j> scale, (*batch, h, n, n). The row of a token that sees
    nothing is 0.

    The order is: norms of queries and keys, rotation, scale, cap, what distances add, mask and
    window.
    """
    places = np.arange(x.shape[-2])
    heads, size, _ = attention.query.shape
    query, key = (
        map_heads(attention.query, attention.query_bias, x),
        map_heads(attention.key, attention.key_bias, x),
    )
    if attention.query_norm is not None:
        query = apply_norm(attention.query_norm, query)
    if attention.key_norm is not None:
        key = apply_norm(attention.key_norm, key)
    query, key = rotate(attention.rotary, query, places), rotate(attention.rotary, key, places)
    key = np.repeat(key, heads // len(attention.key), axis=-3)  # (*batch, h, n, size)
    scale = size**-0.5 if attention.scale is None else attention.scale
    scores = query @ np.swapaxes(key, -1, -2)  # (*batch, h, n, n), changed in place from here on
    scores *= x.dtype.type(scale)
    if attention.cap is not None:
        scores /= x.dtype.type(attention.cap)
        np.tanh(scores, out=scores)
        scores *= x.dtype.type(attention.cap)
    offsets = places - places[:, None]  # (n, n): key minus query
    add_distances(attention, scores, query, key, seen)
    if attention.window is not None:
        seen = seen & (np.abs(offsets) < attention.window)
    if not seen.all():
        np.copyto(scores, -np.inf, where=~seen[..., None, :, :])
    largest = scores.max(axis=-1, keepdims=True)
    scores -= np.where(np.isfinite(largest), largest, 0)
    np.exp(scores, out=scores)
    scores /= np.maximum(scores.sum(axis=-1, keepdims=True), np.finfo(x.dtype).tiny)
    return scores


def map_heads(matrices: np.ndarray, bias: np.ndarray | None, x: np.ndarray) -> np.ndarray:
    """Return W_h x_i + b_h, (*batch, h, n, size), from (h, size, d), (h, size) or None, and x
    (*batch, n, d).
    """
    result = x[..., None, :, :] @ np.swapaxes(as_dtype(matrices, x), 1, 2)
    return result if bias is None else result + as_dtype(bias, x)[:, None, :]


def feedforward(part: FeedForward, x: np.ndarray) -> np.ndarray:
    """Return outer activation(inner x), with the gate if there is one."""
    inner = _affine(part.inner, part.inner_bias, x)
    if part.gate is None:
        inner = activate(part.activation, inner)
    else:
        inner = activate(part.activation, _affine(part.gate, part.gate_bias, x)) * inner
    return _affine(part.outer, part.outer_bias, inner)


def apply_norm(norm: Norm, x: np.ndarray) -> np.ndarray:
    """Apply a norm to every token."""
    if norm.kind == "layer":
        x = x - x.mean(axis=-1, keepdims=True)
    scale = np.sqrt(np.square(x).mean(axis=-1, keepdims=True) + x.dtype.type(norm.eps))
    result = x / scale
    result *= as_dtype(norm.gain, x)
    if norm.bias is not None:
        result += as_dtype(norm.bias, x)
    return result


def activate(name: str, x: np.ndarray) -> np.ndarray:
    """Apply the activation function of this name to every entry."""
    if name == "relu":
        return np.maximum(x, 0)
    from scipy import special

    if name == "silu":
        return x * special.expit(x)
    if name == "gelu":
        return x * (1 + special.erf(x * x.dtype.type(0.5**0.5))) / 2
    if name in ("gelu_tanh", "gelu_bloom"):  # BLOOM rounds sqrt(2 / pi) to eight digits
        slope = x.dtype.type((2 / np.pi) ** 0.5 if name == "gelu_tanh" else 0.79788456)
        return x * (1 + np.tanh(slope * (x + x.dtype.type(0.044715) * x**3))) / 2
    raise ValueError(
        f"The activation must be gelu, gelu_tanh, gelu_bloom, relu or silu, got {name!r}."
    )


def enter(
    parts: Parts, given: np.ndarray, dtype: Any, mask: np.ndarray | None = None
) -> np.ndarray:
    """Return the stream (*batch, n, d) that enters the first layer: the embedded ids (*batch, n),
    or, in a model without an embedding, the given x (*batch, n, d) itself.
    """
    if parts.embedding is None:
        return np.asarray(given, dtype=dtype)
    return embed(parts.embedding, given, dtype, mask)


def embed(
    embedding: Embedding, ids: np.ndarray, dtype: Any, mask: np.ndarray | None = None
) -> np.ndarray:
    """Return the tokens (*batch, n, d) that enter the first layer. mask (*batch, n): false for
    padding.
    """
    x = np.asarray(embedding.tokens[ids], dtype=dtype)
    if embedding.scale is not None:
        x = x * x.dtype.type(embedding.scale)
    if embedding.dropped is not None:
        kept = (ids != embedding.dropped)[..., None]
        length = np.sum(np.ones_like(ids) if mask is None else mask, axis=-1)[..., None, None]
        share = (1 - np.sum(~kept, axis=-2, keepdims=True) / np.maximum(length, 1)).astype(x.dtype)
        x = np.where(kept, x / np.where(share > 0, share, 1), 0)
    if embedding.kinds is not None:
        x = x + as_dtype(embedding.kinds[0], x)
    if embedding.positions is not None:
        places = np.arange(ids.shape[-1]) + embedding.position_offset
        if (
            embedding.padding is not None
        ):  # RoBERTa does not count padding, which has the place before the first token
            real = ids != embedding.padding
            places = np.where(
                real,
                np.cumsum(real, axis=-1) - 1 + embedding.position_offset,
                embedding.position_offset - 1,
            )
        if embedding.is_counting_seen and mask is not None:
            places = np.where(mask, np.cumsum(mask, axis=-1) - 1, -1) + embedding.position_offset
        x = x + np.asarray(embedding.positions[places], dtype=dtype)
    if embedding.norm is not None:
        x = apply_norm(embedding.norm, x)
    return (
        x
        if embedding.projection is None
        else _affine(embedding.projection, embedding.projection_bias, x)
    )


def seen_by(config: Config, mask: np.ndarray) -> np.ndarray:
    """Return whether token i sees token j, (*batch, n, n): j is not padding (`mask`) and, in a
    causal model, not later.
    """
    n = mask.shape[-1]
    seen = np.broadcast_to(mask[..., None, :], (*mask.shape[:-1], n, n))
    return seen & np.tri(n, dtype=bool) if config.is_causal else seen


def as_dtype(array: np.ndarray, like: np.ndarray) -> np.ndarray:
    """Return `array` in the precision of `like`."""
    return np.asarray(array, dtype=like.dtype)


def _affine(matrix: np.ndarray, bias: np.ndarray | None, x: np.ndarray) -> np.ndarray:
    result = x @ as_dtype(matrix, x).T
    return result if bias is None else result + as_dtype(bias, x)
