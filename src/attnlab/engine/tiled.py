"""The attention of a block of rows for any number of coordinates: one register-tiled kernel, no n x n array.

Sixteen rows (two Lanes) times twelve columns are 24 accumulators in registers; the same small product
`C[12, 16] += sum_l P[l, 16] B[l, 12]` forms the scores (l = coordinate) and sums the values (l = token). Tokens come in
tiles of 240; a running maximum is kept and the sums are rescaled when it moves. Memory: 16 (240 + r) numbers a thread.

Keys and values are packed once a call into panels of twelve in the order of reading (power-of-two strides would collide
in the cache): keys [token block][coordinate][12], values [coordinate block][token][12].
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

from numba import boolean, float64, int64, void

from attnlab.engine.callers import pack_signature
from attnlab.engine.compile import compiled
from attnlab.engine.exp2 import exp2, exp2_within
from attnlab.engine.lanes import (
    add,
    divide,
    fill,
    get,
    larger,
    load,
    make_stack,
    multiply,
    multiply_add,
    put,
    spread,
    store,
    subtract,
    where_equal,
    where_from,
)
from attnlab.engine.tiling import PANEL, ROWS, TILE
from attnlab.engine.unrolled import CAUSAL, EXP_MEAN, HARDMAX, SMALL_SCORE, core_signature, largest_square

ACCUMULATORS = 2 * PANEL


@compiled(pack_signature)
def pack_keys(keys, n, packed):
    """keys (k, n_pad) -> panels [token block][coordinate][12], zeros where there is no token."""
    k = keys.shape[0]
    for panel in range((n + PANEL - 1) // PANEL):
        for c in range(k):
            for l in range(PANEL):
                j = panel * PANEL + l
                packed[(panel * k + c) * PANEL + l] = keys[c, j] if j < n else 0.0


@compiled(pack_signature)
def pack_values(values, n, packed):
    """values (r, n_pad) -> panels [coordinate block][token][12], zeros where there is no coordinate or token."""
    r = values.shape[0]
    tokens = (n + PANEL - 1) // PANEL * PANEL
    for panel in range((r + PANEL - 1) // PANEL):
        for j in range(tokens):
            for l in range(PANEL):
                c = panel * PANEL + l
                packed[(panel * tokens + j) * PANEL + l] = values[c, j] if c < r and j < n else 0.0


@compiled(void(float64[::1], int64, int64, float64[::1], int64, int64, float64[::1], int64, boolean))
def tile_product(P, first_p, stride_p, B, first_b, length, C, first_c, is_first):
    """C[12, 16] (+)= sum_{l < length} P[l, 16] B[l, 12]; P has rows `stride_p` apart, B and C are packed. is_first: C was 0."""
    acc = make_stack(ACCUMULATORS)
    if is_first:
        for m in range(ACCUMULATORS):
            put(acc, m, fill(0.0))
    else:
        for m in range(PANEL):
            put(acc, 2 * m, load(C, first_c + m * ROWS))
            put(acc, 2 * m + 1, load(C, first_c + m * ROWS + 8))
    for l in range(length):
        low = load(P, first_p + l * stride_p)
        high = load(P, first_p + l * stride_p + 8)
        for m in range(PANEL):
            b = spread(B, first_b + l * PANEL + m)
            put(acc, 2 * m, multiply_add(low, b, get(acc, 2 * m)))
            put(acc, 2 * m + 1, multiply_add(high, b, get(acc, 2 * m + 1)))
    for m in range(PANEL):
        store(C, first_c + m * ROWS, get(acc, 2 * m))
        store(C, first_c + m * ROWS + 8, get(acc, 2 * m + 1))


@compiled(float64(float64[::1], int64, int64))
def largest_packed_square(keys, k, n):
    """max_j |k_j|^2 of packed keys. A NaN is passed over: it comes out of the sums anyway."""
    top = 0.0
    for panel in range((n + PANEL - 1) // PANEL):
        for l in range(PANEL):
            square = 0.0
            for c in range(k):
                x = keys[(panel * k + c) * PANEL + l]
                square += x * x
            if square > top:                        # a NaN is passed over
                top = square
    return top


@cache
def tiled_core(KERNEL: int, MASK: int) -> Any:
    """The compiled function of the same signature as the unrolled ones; keys and values packed."""

    @compiled(core_signature, f"tiled_{KERNEL}_{MASK}")
    def core(q, keys, values, n, begin, end, factor, work, out):
        k, stride = q.shape
        r = out.shape[0]
        blocks = (r + PANEL - 1) // PANEL
        tokens = (n + PANEL - 1) // PANEL * PANEL
        sums = ROWS * TILE                                 # where the sums start in `work`
        scratch = sums + ROWS * PANEL * blocks
        flat_q = q.reshape(k * stride)
        bits, zero, one = fill(factor), fill(0.0), fill(1.0)
        # scores that are all small need no maximum, as in unrolled.py
        square = factor * factor * largest_square(flat_q, k, stride, n) * largest_packed_square(keys, k, n)
        is_small = KERNEL != HARDMAX and square <= SMALL_SCORE * SMALL_SCORE
        for i in range(begin, end, ROWS):
            stop = min(n, i + ROWS) if MASK == CAUSAL else n
            top_low, top_high = fill(-math.inf), fill(-math.inf)
            if is_small:
                top_low, top_high = zero, zero
            weight_low, weight_high = zero, zero
            for first in range(0, stop, TILE):
                last = min(stop, first + TILE)
                for panel in range(first // PANEL, (last + PANEL - 1) // PANEL):
                    tile_product(flat_q, i, stride, keys, panel * k * PANEL, k, work, (panel * PANEL - first) * ROWS, True)
                if not is_small:
                    new_low, new_high = top_low, top_high
                    for j in range(first, last):
                        at = (j - first) * ROWS
                        if MASK == CAUSAL:
                            new_low = where_from(j - i, larger(new_low, load(work, at)), new_low)
                            new_high = where_from(j - i - 8, larger(new_high, load(work, at + 8)), new_high)
                        else:
                            new_low, new_high = larger(new_low, load(work, at)), larger(new_high, load(work, at + 8))
                    if first > 0:
                        if KERNEL == HARDMAX:
                            keep_low = where_equal(top_low, new_low, one, zero)
                            keep_high = where_equal(top_high, new_high, one, zero)
                        else:
                            keep_low = exp2(multiply(subtract(top_low, new_low), bits))
                            keep_high = exp2(multiply(subtract(top_high, new_high), bits))
                        weight_low, weight_high = multiply(weight_low, keep_low), multiply(weight_high, keep_high)
                        for c in range(PANEL * blocks):
                            at = sums + c * ROWS
                            store(work, at, multiply(load(work, at), keep_low))
                            store(work, at + 8, multiply(load(work, at + 8), keep_high))
                    top_low, top_high = new_low, new_high
                part_low, part_high = zero, zero
                for j in range(first, last):
                    at = (j - first) * ROWS
                    low, high = load(work, at), load(work, at + 8)
                    if KERNEL == HARDMAX:
                        low = multiply_add(low, zero, where_equal(low, top_low, one, zero))     # a NaN score is not passed over
                        high = multiply_add(high, zero, where_equal(high, top_high, one, zero))
                    elif is_small:
                        low, high = exp2_within(multiply(low, bits)), exp2_within(multiply(high, bits))
                    else:
                        low, high = exp2(multiply(subtract(low, top_low), bits)), exp2(multiply(subtract(high, top_high), bits))
                    if MASK == CAUSAL:
                        low, high = where_from(j - i, low, zero), where_from(j - i - 8, high, zero)
                    store(work, at, low)
                    store(work, at + 8, high)
                    part_low, part_high = add(part_low, low), add(part_high, high)
                weight_low, weight_high = add(weight_low, part_low), add(weight_high, part_high)
                for block in range(blocks):
                    tile_product(
                        work, 0, ROWS, values, (block * tokens + first) * PANEL, last - first, work,
                        sums + block * PANEL * ROWS, first == 0,
                    )
            if KERNEL == EXP_MEAN:
                store(work, scratch, top_low)
                store(work, scratch + 8, top_high)
                for lane in range(ROWS):
                    seen = i + lane + 1 if MASK == CAUSAL else n
                    work[scratch + lane] = 2.0 ** (work[scratch + lane] * factor) / seen
                scale_low, scale_high = load(work, scratch), load(work, scratch + 8)
            else:
                scale_low, scale_high = divide(one, weight_low), divide(one, weight_high)
            for c in range(r):
                at = sums + c * ROWS
                store(out, c * stride + i, multiply(load(work, at), scale_low))
                store(out, c * stride + i + 8, multiply(load(work, at + 8), scale_high))

    return core
