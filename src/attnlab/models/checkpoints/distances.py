"""What scores get from the distance of two tokens, in models without places in the embedding or
rotary positions.

    biases by distance    s_ij + b[j - i]                              (MPNet, T5)
    slopes                s_ij - slope |i - j|                         (BLOOM, known as ALiBi)
    vectors by distance   s_ij + scale (<q_i, a[j - i]> + <b[j - i], k_j>)      (DeBERTa)

Each is per head. Tables hold the offsets up to some distance. Beyond it, the last entry holds.
"""

from __future__ import annotations

import numpy as np

from attnlab.models.checkpoints.record import Attention


def add_distances(
    attention: Attention,
    scores: np.ndarray,
    query: np.ndarray,
    key: np.ndarray,
    seen: np.ndarray,
) -> None:
    """Add to the scores (*batch, h, n, n), in place, what the distances of tokens give.

    query and key (*batch, h, n, size) are those of the scores, seen (*batch, n, n) is the mask.
    """
    places = np.arange(scores.shape[-1])
    offsets = places - places[:, None]  # (n, n): key minus query
    if attention.by_offset is not None:
        added = attention.by_offset[:, rows_of(offsets, attention.by_offset.shape[1])]
        scores += added.astype(scores.dtype)
    if attention.slopes is not None:
        # Only tokens that another one sees are counted: padding takes no place, as in the original.
        counted = np.cumsum(seen.any(axis=-2), axis=-1)  # (*batch, n)
        away = np.abs(counted[..., None] - counted[..., None, :])[..., None, :, :]
        scores -= attention.slopes.astype(scores.dtype)[:, None, None] * away
    if attention.offset_rows is not None:
        rows = attention.offset_rows[rows_of(offsets, len(attention.offset_rows))]  # (n, n)
        scale = attention.query.shape[1] ** -0.5 if attention.scale is None else attention.scale
        scores += scores.dtype.type(scale) * _by_content(attention, query, key, rows)


def rows_of(offsets: np.ndarray, length: int) -> np.ndarray:
    """Return the entry of each offset in a table of odd `length`, whose middle is offset 0."""
    farthest = length // 2
    return np.clip(offsets, -farthest, farthest) + farthest


def _by_content(
    attention: Attention, query: np.ndarray, key: np.ndarray, rows: np.ndarray
) -> np.ndarray:
    """Return <q_i, a[row of j - i]> + <b[row of j - i], k_j>, (*batch, h, n, n)."""
    total = np.zeros((*query.shape[:-1], len(rows)), query.dtype)
    index = np.broadcast_to(rows, total.shape)
    if attention.offset_keys is not None:  # every query with every row, then the row of each pair
        scores = query @ np.swapaxes(attention.offset_keys.astype(query.dtype), -1, -2)
        total += np.take_along_axis(scores, index, axis=-1)
    if attention.offset_queries is not None:
        scores = attention.offset_queries.astype(query.dtype) @ np.swapaxes(key, -1, -2)
        total += np.take_along_axis(scores, index, axis=-2)
    return total


def buckets_of(offsets: np.ndarray, buckets: int, farthest: int) -> np.ndarray:
    """Return the row, of so many, of each offset (the key's place minus the query's), in both
    directions (MPNet, T5).

    There is one row per short distance, then wider ones. Distances of `farthest` and more share the
    last one.
    """
    half = buckets // 2
    exact, away = half // 2, np.abs(offsets)
    # in single precision, as the original: rounding decides where a wide one begins
    logarithms = np.log(np.maximum(away, 1).astype(np.float32) / np.float32(exact)) / np.float32(
        np.log(farthest / exact)
    )
    wide = np.minimum(exact + (logarithms * np.float32(half - exact)).astype(int), half - 1)
    return np.where(away < exact, away, wide) + np.where(offsets > 0, half, 0)


def alibi_slopes(heads: int) -> np.ndarray:
    """Return the slopes (heads,) of BLOOM: a geometric sequence, 2^(-8 / heads) and so on if the
    number of heads is a power of 2. Other numbers take every second one of a finer sequence.
    """
    whole = 1 << (heads.bit_length() - 1)  # the largest power of 2 that is not larger
    slopes = [2.0 ** (-8 * power / whole) for power in range(1, whole + 1)]
    finer = [2.0 ** (-4 * power / whole) for power in range(1, 2 * (heads - whole), 2)]
    return np.array(slopes + finer)
