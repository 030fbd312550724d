"""The attention of a block of rows for any number of coordinates: one register-tiled kernel, no n x
n array.

Sixteen rows (two Lanes) times twelve columns are 24 accumulators in registers; the same small
product `C[12, 16] += sum_l P[l, 16] B[l, 12]` forms the scores (l = coordinate) and sums the values
(l = token). Tokens come in tiles of 240; a running maximum is kept and the sums are rescaled when
it moves, unless all scores are small (unrolled.py). A tile is used for a group of up to eight
blocks of rows before the next one is read: it stays in the cache of the core, and what would
otherwise be read once for every sixteen rows comes from the cache shared by all cores. Memory: 16
(240 + 8 (k + r)) numbers a thread at most.

Keys and values are packed once a call into panels of twelve in the order of reading (power-of-two
strides would collide in the cache): keys [token block][coordinate][12], values [coordinate
block][token][12], or 8 where that wastes less.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

from numba import boolean, float64, int64, void

from attnlab.engine.callers import pack_signature
from attnlab.engine.compile import compiled
from attnlab.engine.exp2 import exp2, exp2_within, logistic
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
from attnlab.engine.tiling import NARROW, PANEL, ROWS, STATE, TILE, group_size, value_width
from attnlab.engine.unrolled import CAUSAL, EXP_MEAN, HARDMAX, SIGMOID, core_signature


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
    """values (r, n_pad) -> panels [coordinate block][token][width], zeros where there is no
    coordinate or token.
    """
    r = values.shape[0]
    width = value_width(r)
    tokens = (n + PANEL - 1) // PANEL * PANEL
    for panel in range((r + width - 1) // width):
        for j in range(tokens):
            for l in range(width):
                c = panel * width + l
                packed[(panel * tokens + j) * width + l] = values[c, j] if c < r and j < n else 0.0


def _make_tile_product(WIDTH: int) -> Any:
    COUNT = 2 * WIDTH  # a name of its own: only so is it a literal inside

    @compiled(
        void(float64[::1], int64, float64[::1], int64, int64, float64[::1], int64, boolean),
        f"{WIDTH}",
    )
    def tile_product(P, first_p, B, first_b, length, C, first_c, is_first):
        """C[width, 16] (+)= sum_{l < length} P[l, 16] B[l, width], all of them packed. is_first: C
        was 0.
        """
        acc = make_stack(COUNT)
        if is_first:
            for m in range(COUNT):
                put(acc, m, fill(0.0))
        else:
            for m in range(WIDTH):
                put(acc, 2 * m, load(C, first_c + m * ROWS))
                put(acc, 2 * m + 1, load(C, first_c + m * ROWS + 8))
        for l in range(length):
            low, high = load(P, first_p + l * ROWS), load(P, first_p + l * ROWS + 8)
            for m in range(WIDTH):
                b = spread(B, first_b + l * WIDTH + m)
                put(acc, 2 * m, multiply_add(low, b, get(acc, 2 * m)))
                put(acc, 2 * m + 1, multiply_add(high, b, get(acc, 2 * m + 1)))
        for m in range(WIDTH):
            store(C, first_c + m * ROWS, get(acc, 2 * m))
            store(C, first_c + m * ROWS + 8, get(acc, 2 * m + 1))

    return tile_product


tile_product, narrow_product = _make_tile_product(PANEL), _make_tile_product(NARROW)


@cache
def tiled_core(KERNEL: int, MASK: int) -> Any:
    """The compiled function of the same signature as the unrolled ones; keys and values packed."""

    @compiled(core_signature, f"tiled_{KERNEL}_{MASK}")
    def core(q, keys, values, n, begin, end, factor, number, is_small, work, out):
        k, stride = q.shape
        r = out.shape[0]
        width = value_width(r)
        blocks = (r + width - 1) // width
        tokens = (n + PANEL - 1) // PANEL * PANEL
        group = group_size(k, r)
        # `work` holds a tile of scores; then for each block of the group its queries, its sums, its
        # maxima and weights
        queries = ROWS * TILE
        sums = queries + group * ROWS * k
        states = sums + group * ROWS * width * blocks
        bits, zero, one = fill(factor), fill(0.0), fill(1.0)
        lowest = zero if KERNEL != HARDMAX and is_small else fill(-math.inf)
        for group_begin in range(begin, end, group * ROWS):
            count = min(group, (end - group_begin) // ROWS)
            for b in range(count):
                i = group_begin + b * ROWS
                for c in range(k):
                    at = queries + (b * k + c) * ROWS
                    store(work, at, load(q, c * stride + i))
                    store(work, at + 8, load(q, c * stride + i + 8))
                if KERNEL == SIGMOID:
                    # where other kernels keep the largest score, the bias of each row
                    for lane in range(ROWS):
                        seen = min(i + lane + 1, n) if MASK == CAUSAL else n
                        work[states + b * STATE + lane] = (
                            number if number == number else -math.log2(seen)
                        )
                else:
                    store(work, states + b * STATE, lowest)
                    store(work, states + b * STATE + 8, lowest)
                store(work, states + b * STATE + 16, zero)
                store(work, states + b * STATE + 24, zero)
            for first in range(
                0, min(n, group_begin + count * ROWS) if MASK == CAUSAL else n, TILE
            ):
                for b in range(count):
                    i = group_begin + b * ROWS
                    last = min(min(n, i + ROWS) if MASK == CAUSAL else n, first + TILE)
                    if last <= first:
                        continue
                    sum_at, state = sums + b * ROWS * width * blocks, states + b * STATE
                    top_low, top_high = load(work, state), load(work, state + 8)
                    weight_low, weight_high = load(work, state + 16), load(work, state + 24)
                    for panel in range(first // PANEL, (last + PANEL - 1) // PANEL):
                        at = (panel * PANEL - first) * ROWS
                        tile_product(
                            work, queries + b * k * ROWS, keys, panel * k * PANEL, k, work, at, True
                        )
                    if KERNEL != SIGMOID and (KERNEL == HARDMAX or not is_small):
                        new_low, new_high = top_low, top_high
                        for j in range(first, last):
                            at = (j - first) * ROWS
                            if MASK == CAUSAL:
                                new_low = where_from(
                                    j - i, larger(new_low, load(work, at)), new_low
                                )
                                new_high = where_from(
                                    j - i - 8, larger(new_high, load(work, at + 8)), new_high
                                )
                            else:
                                new_low, new_high = (
                                    larger(new_low, load(work, at)),
                                    larger(new_high, load(work, at + 8)),
                                )
                        if first > 0:
                            if KERNEL == HARDMAX:
                                keep_low = where_equal(top_low, new_low, one, zero)
                                keep_high = where_equal(top_high, new_high, one, zero)
                            else:
                                keep_low = exp2(multiply(subtract(top_low, new_low), bits))
                                keep_high = exp2(multiply(subtract(top_high, new_high), bits))
                            weight_low, weight_high = (
                                multiply(weight_low, keep_low),
                                multiply(weight_high, keep_high),
                            )
                            for c in range(width * blocks):
                                at = sum_at + c * ROWS
                                store(work, at, multiply(load(work, at), keep_low))
                                store(work, at + 8, multiply(load(work, at + 8), keep_high))
                        top_low, top_high = new_low, new_high
                    part_low, part_high = zero, zero
                    for j in range(first, last):
                        at = (j - first) * ROWS
                        low, high = load(work, at), load(work, at + 8)
                        if KERNEL == HARDMAX:
                            low = multiply_add(
                                low, zero, where_equal(low, top_low, one, zero)
                            )  # a NaN is not passed over
                            high = multiply_add(high, zero, where_equal(high, top_high, one, zero))
                        elif KERNEL == SIGMOID:
                            low, high = (
                                logistic(multiply_add(low, bits, top_low)),
                                logistic(multiply_add(high, bits, top_high)),
                            )
                        elif is_small:
                            low, high = (
                                exp2_within(multiply(low, bits)),
                                exp2_within(multiply(high, bits)),
                            )
                        else:
                            low = exp2(multiply(subtract(low, top_low), bits))
                            high = exp2(multiply(subtract(high, top_high), bits))
                        if MASK == CAUSAL:
                            low, high = (
                                where_from(j - i, low, zero),
                                where_from(j - i - 8, high, zero),
                            )
                        store(work, at, low)
                        store(work, at + 8, high)
                        part_low, part_high = add(part_low, low), add(part_high, high)
                    for block in range(blocks):
                        at, panel = sum_at + block * width * ROWS, (block * tokens + first) * width
                        if width == NARROW:
                            narrow_product(
                                work, 0, values, panel, last - first, work, at, first == 0
                            )
                        else:
                            tile_product(work, 0, values, panel, last - first, work, at, first == 0)
                    store(work, state, top_low)
                    store(work, state + 8, top_high)
                    store(work, state + 16, add(weight_low, part_low))
                    store(work, state + 24, add(weight_high, part_high))
            for b in range(count):
                i, sum_at, state = (
                    group_begin + b * ROWS,
                    sums + b * ROWS * width * blocks,
                    states + b * STATE,
                )
                if KERNEL == EXP_MEAN:
                    # the true size of the largest weight goes back in, one row at a time: it may
                    # overflow to inf, and must
                    for lane in range(ROWS):
                        seen = i + lane + 1 if MASK == CAUSAL else n
                        work[state + 16 + lane] = 2.0 ** (work[state + lane] * factor) / seen
                    scale_low, scale_high = load(work, state + 16), load(work, state + 24)
                elif KERNEL == SIGMOID:
                    scale_low, scale_high = one, one
                else:
                    scale_low, scale_high = (
                        divide(one, load(work, state + 16)),
                        divide(one, load(work, state + 24)),
                    )
                for c in range(r):
                    at = sum_at + c * ROWS
                    store(out, c * stride + i, multiply(load(work, at), scale_low))
                    store(out, c * stride + i + 8, multiply(load(work, at + 8), scale_high))

    return core
