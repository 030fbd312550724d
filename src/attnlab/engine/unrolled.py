"""The attention of a block of rows for few coordinates (at most four, or eight for few tokens):
everything in registers.

    out_i = sum_j w_ij u_j / Z_i,     w_ij = 2^{factor (s_ij - max_l s_il)},     s_ij = <q_i, k_j>

Two passes over j, maximum then sum; the score is formed by the same operations in both, so that the
largest weight is exactly 1. Rows whose scores are all small need no maximum, and one pass. One
function for each number of coordinates, kernel and mask, compiled when first asked for.

The sigmoid needs no maximum either: w_ij = 1 / (1 + 2^{-(factor s_ij + bias)}) and Z_i = 1.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

from numba import boolean, float64, int64, void

from attnlab.engine.compile import compiled
from attnlab.engine.exp2 import exp2, exp2_within, logistic
from attnlab.engine.lanes import (
    add,
    divide,
    fill,
    get,
    larger,
    largest_lane,
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

MOST_COORDINATES, MOST_COORDINATES_FEW_TOKENS, FEW_TOKENS = 4, 8, 256
"""Beyond these the tiled kernel is faster; with few tokens its packing and padding cost more than
registers that spill.
"""

SOFTMAX, EXP_MEAN, HARDMAX, SIGMOID = 0, 1, 2, 3
FULL, CAUSAL = 0, 1

CHUNK = 512
"""Columns are summed in chunks of this many, and the chunks added: the rounding of a sum grows with
its length.
"""

SMALL_SCORE = 90.0
"""Scores within this many bits of 0 need no maximum: weights stay between 2^-90 and 2^90, and even
coordinates that are 1e-280 of the largest ones (the smallest that a run keeps) do not underflow
under them.
"""

_matrix = float64[:, ::1]
core_signature = void(
    _matrix,
    float64[::1],
    float64[::1],
    int64,
    int64,
    int64,
    float64,
    float64,
    boolean,
    float64[::1],
    _matrix,
)
"""(q (k, n_pad), keys, values, n, first row, end row, factor, number, is_small, work, out (r,
n_pad)); rows in multiples of the block; number: the kernel's own, as the bias of the sigmoid.
"""


@compiled(boolean(_matrix, _matrix, float64))
def are_small(q, keys, factor):
    """Whether no score factor <q_i, k_j> can be beyond SMALL_SCORE bits, by Cauchy and Schwarz; q,
    keys (k, n_pad).

    The test is for all rows and columns together. With a test per block, equal tokens in different
    blocks might be summed in different ways, and separate. NaN is ignored here, because the sums
    contain it anyway.
    """
    k, n_pad = q.shape
    top_q, top_k = fill(0.0), fill(0.0)
    for i in range(0, n_pad, 8):
        square_q, square_k = fill(0.0), fill(0.0)
        for c in range(k):
            x, y = load(q, c * n_pad + i), load(keys, c * n_pad + i)
            square_q, square_k = multiply_add(x, x, square_q), multiply_add(y, y, square_k)
        top_q, top_k = larger(top_q, square_q), larger(top_k, square_k)
    return factor * factor * largest_lane(top_q) * largest_lane(top_k) <= SMALL_SCORE * SMALL_SCORE


@cache
def unrolled_core(DK: int, DV: int, KERNEL: int, MASK: int) -> Any:
    """The compiled function for DK score coordinates and DV value coordinates; keys (DK, n_pad),
    values (DV, n_pad).
    """

    @compiled(core_signature, f"unrolled_{DK}_{DV}_{KERNEL}_{MASK}")
    def core(q, keys, values, n, begin, end, factor, number, is_small, work, out):
        stride = q.shape[1]
        Q = make_stack(DK)
        part = make_stack(DV)
        total = make_stack(DV)
        bits = fill(factor)
        zero, one = fill(0.0), fill(1.0)
        for i in range(begin, end, 8):
            for c in range(DK):
                put(Q, c, load(q, c * stride + i))
            stop = min(n, i + 8) if MASK == CAUSAL else n
            top = zero
            if KERNEL == SIGMOID:
                # top is the bias of each row here
                for lane in range(8):
                    work[lane] = (
                        number
                        if number == number
                        else -math.log2(min(i + lane + 1, n) if MASK == CAUSAL else n)
                    )
                top = load(work, 0)
            elif KERNEL != HARDMAX and is_small:
                for c in range(DK):
                    put(Q, c, multiply(get(Q, c), bits))
            else:
                # four maxima, or each would wait for the one before
                top = fill(-math.inf)
                top_1, top_2, top_3 = top, top, top
                unmasked = min(stop, i) if MASK == CAUSAL else stop
                for j in range(0, unmasked - 3, 4):
                    s, s_1 = (
                        multiply(get(Q, 0), spread(keys, j)),
                        multiply(get(Q, 0), spread(keys, j + 1)),
                    )
                    s_2, s_3 = (
                        multiply(get(Q, 0), spread(keys, j + 2)),
                        multiply(get(Q, 0), spread(keys, j + 3)),
                    )
                    for c in range(1, DK):
                        s = multiply_add(get(Q, c), spread(keys, c * stride + j), s)
                        s_1 = multiply_add(get(Q, c), spread(keys, c * stride + j + 1), s_1)
                        s_2 = multiply_add(get(Q, c), spread(keys, c * stride + j + 2), s_2)
                        s_3 = multiply_add(get(Q, c), spread(keys, c * stride + j + 3), s_3)
                    top, top_1, top_2, top_3 = (
                        larger(top, s),
                        larger(top_1, s_1),
                        larger(top_2, s_2),
                        larger(top_3, s_3),
                    )
                top = larger(larger(top, top_1), larger(top_2, top_3))
                for j in range(max(unmasked, 0) // 4 * 4, stop):
                    s = multiply(get(Q, 0), spread(keys, j))
                    for c in range(1, DK):
                        s = multiply_add(get(Q, c), spread(keys, c * stride + j), s)
                    if MASK == CAUSAL:
                        top = where_from(j - i, larger(top, s), top)
                    else:
                        top = larger(top, s)
            total_weight = zero
            for c in range(DV):
                put(total, c, zero)
            for first in range(0, stop, CHUNK):
                weight = zero
                for c in range(DV):
                    put(part, c, zero)
                for j in range(first, min(stop, first + CHUNK)):
                    s = multiply(get(Q, 0), spread(keys, j))
                    for c in range(1, DK):
                        s = multiply_add(get(Q, c), spread(keys, c * stride + j), s)
                    if KERNEL == HARDMAX:
                        e = multiply_add(
                            s, zero, where_equal(s, top, one, zero)
                        )  # a NaN score is not passed over
                    elif KERNEL == SIGMOID:
                        e = logistic(multiply_add(s, bits, top))
                    elif is_small:
                        e = exp2_within(s)
                    else:
                        e = exp2(multiply(subtract(s, top), bits))
                    if MASK == CAUSAL:
                        e = where_from(j - i, e, zero)
                    weight = add(weight, e)
                    for c in range(DV):
                        put(part, c, multiply_add(e, spread(values, c * stride + j), get(part, c)))
                total_weight = add(total_weight, weight)
                for c in range(DV):
                    put(total, c, add(get(total, c), get(part, c)))
            if KERNEL == EXP_MEAN:
                # the true size of the largest weight goes back in, one row at a time: it may
                # overflow to inf, and must
                store(work, 0, top)
                for lane in range(8):
                    seen = i + lane + 1 if MASK == CAUSAL else n
                    work[lane] = 2.0 ** (work[lane] * factor) / seen
                scale = load(work, 0)
                for c in range(DV):
                    store(out, c * stride + i, multiply(get(total, c), scale))
            elif KERNEL == SIGMOID:
                for c in range(DV):
                    store(out, c * stride + i, get(total, c))
            else:
                for c in range(DV):
                    store(out, c * stride + i, divide(get(total, c), total_weight))

    return core
