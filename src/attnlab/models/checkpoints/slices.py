"""The heads of a layer as matrices of the theory, M = W_Q^T W_K / sqrt(head size) and V = W_O W_V,
and what they leave out.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from attnlab.models.checkpoints.head_names import name_head
from attnlab.models.checkpoints.record import Attention, Block, Norm, Parts, Rotary
from attnlab.models.checkpoints.rotary import rotate
from attnlab.types import Weights


def weights_of(
    parts: Parts,
    name: str,
    layer: int,
    head: int | Sequence[int] | None = None,
    *,
    fold_norm: bool = True,
    offset: int = 0,
) -> Weights:
    """Return the matrices of one head (1, ., .), of some, or of all heads of a layer (h, ., .). V
    stays in its factors.

    Q = W_Q / sqrt(head size), K = W_K, so that M = Q^T K, and V = B C with B = W_O[:, h], C =
    W_V[h]: stream to stream. fold_norm : in a pre-norm model attention reads gain * (x - mean) /
    deviation. The gain, and for LayerNorm the centring, are
        linear and go into Q, K and C; division by the deviation does not. A post-norm model reads
        the stream itself.
    offset : with rotary positions, the query's place minus the key's; M depends on it.
    """
    config = parts.config
    number = check_index("layer", layer, config.layers)
    heads = _check_heads(head, config.heads)
    offset = operator.index(offset)
    if offset and config.rope_theta is None:
        raise ValueError(
            f"offset = {offset} is for rotary positions, but {name} has none: its M is the same"
            " everywhere. Leave offset out."
        )
    block, part = parts.layers[number].attention_block, parts.layers[number].attention
    shared = [h // (config.heads // config.kv_heads) for h in heads]
    Q, K, C = (
        np.asarray(array, dtype=float)
        for array in (part.query[list(heads)], part.key[shared], part.value[shared])
    )
    B = np.asarray(part.output[list(heads)], dtype=float)
    norm = block.norm_before if fold_norm else None
    if norm is not None:
        Q, K, C = (fold_norm_into(norm, matrix) for matrix in (Q, K, C))
    if fold_norm:
        Q, K = fold_norm_into_rows(part.query_norm, Q), fold_norm_into_rows(part.key_norm, K)
    if offset:
        Q = turn_rows(part.rotary, Q, offset)
    which = f"layer {number}" if head is None else " ".join(name_head(number, one) for one in heads)
    source = f"{name} {which}{_describe_changes(block, part, fold_norm, offset)}"
    Q = Q / config.head_size**0.5 if part.scale is None else Q * part.scale
    return Weights(Q=Q, K=K, V=(B, C), source=source)


def fold_norm_into(norm: Norm, matrix: np.ndarray) -> np.ndarray:
    """Return matrix diag(gain), for LayerNorm times I - 1 1^T / d."""
    scaled = matrix * np.asarray(norm.gain, dtype=float)
    return scaled - scaled.mean(axis=-1, keepdims=True) if norm.kind == "layer" else scaled


def fold_norm_into_rows(norm: Norm | None, matrices: np.ndarray) -> np.ndarray:
    """Return diag(gain) W, for LayerNorm diag(gain) (I - 1 1^T / k) W, (h, k, d): W with a norm of
    queries or keys.
    """
    if norm is None:
        return matrices
    if norm.kind == "layer":
        matrices = matrices - matrices.mean(axis=-2, keepdims=True)
    return matrices * np.asarray(norm.gain, dtype=float)[:, None]


def turn_rows(rotary: Rotary | None, matrices: np.ndarray, offset: int) -> np.ndarray:
    """Return R(offset) W for (h, head_size, d): a query matrix for keys `offset` places before."""
    columns = np.swapaxes(matrices, 1, 2)  # (h, d, head_size)
    return np.swapaxes(rotate(rotary, columns, np.full(columns.shape[1], offset)), 1, 2)


def check_index(what: str, value: Any, count: int) -> int:
    """Return `value` as the number of an existing layer or head."""
    try:
        index = operator.index(value)
    except TypeError:
        raise ValueError(f"The {what} must be a whole number, got {value!r}.") from None
    if isinstance(value, bool) or not 0 <= index < count:
        raise ValueError(
            f"There is no {what} {value}: this model's {what}s are 0 to {count - 1}, counted"
            " from 0."
        )
    return index


def _check_heads(head: Any, count: int) -> list[int]:
    """Return the numbers of the heads: one, a list of different ones, or None for all."""
    if head is None:
        return list(range(count))
    if not isinstance(head, list | tuple):
        return [check_index("head", head, count)]
    found = [check_index("head", one, count) for one in head]
    if not found or len(set(found)) < len(found):
        raise ValueError(
            f"head must be the number of a head, or a list of different ones, got {head!r}."
        )
    return found


def _describe_changes(block: Block, attention: Attention, fold_norm: bool, offset: int) -> str:
    """Describe what was done to the matrices, and what they leave out."""
    notes = []
    norm = block.norm_before
    if norm is not None and fold_norm:
        what = (
            "gain and centring of the LayerNorm" if norm.kind == "layer" else "gain of the RMSNorm"
        )
        notes.append(f"{what} before it folded in")
    elif norm is not None:
        notes.append("norm before not folded in")
    if attention.rotary is not None:
        notes.append(f"rotary positions at offset {offset}")
    if attention.query_norm is not None or attention.key_norm is not None:
        gains = "gains" if fold_norm else "gains not"
        notes.append(f"norms of queries and keys without their division, {gains} folded in")
    if attention.cap is not None:
        notes.append(f"cap of {attention.cap:g} on scores left out")
    if attention.by_offset is not None or attention.slopes is not None:
        notes.append("biases by distance left out")
    if attention.offset_rows is not None:
        notes.append("scores of vectors by distance left out")
    if attention.window is not None:
        notes.append(f"window of {attention.window} tokens left out")
    if block.norm_output is not None:
        notes.append("norm of the output left out")
    biases = (
        attention.query_bias,
        attention.key_bias,
        attention.value_bias,
        attention.output_bias,
        norm and norm.bias,
    )
    if any(bias is not None for bias in biases):
        notes.append("biases dropped")
    return f" ({', '.join(notes)})" if notes else ""
