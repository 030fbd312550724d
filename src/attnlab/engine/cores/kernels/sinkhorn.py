"""The compiled kernel sinkhorn: a table of all pairs, scaled until its rows and columns sum to 1.

    P = diag(u) M diag(v),     M_ij = 2^{s_ij - f_i - g_j},     s in powers of two

A sweep in logarithms finds f and g and makes the table M. Then sweeps multiply only: v_j = 1 /
sum_i M_ij u_i and u_i = 1 / sum_j M_ij v_j. Where a factor leaves 2^-300 .. 2^300, u goes into f
and the next sweep is one in logarithms again. The number of sweeps and the times of the check are
those of axes/kernels/sinkhorn.py, so that both fail at the same scores.

The table is stored in blocks of eight rows, [block][column][lane], and so are the scores. Rows of
the padding have the score -infinity, and hence weights of 0.
"""

from __future__ import annotations

import math
from functools import cache, partial
from typing import Any

from numba import boolean, float64, int64, void

from attnlab.axes.kernels.sinkhorn import MOST_ITERATIONS, TOLERANCE
from attnlab.engine.compile import compiled
from attnlab.engine.cores.kernels import Core, cores
from attnlab.engine.exp2 import exp2
from attnlab.engine.lanes import (
    add,
    divide,
    fill,
    larger,
    load,
    multiply,
    multiply_add,
    spread,
    store,
    subtract,
    where_from,
)
from attnlab.engine.unrolled import core_signature

LARGEST_SCORE = 1e300
"""As that of dynamics/attention.py: differences of scores stay finite."""

LARGEST_FACTOR = 2.0**300
"""What underflowed in the table is then below 2^-400 of a row."""

VECTORS, LANES = 7, 2
"""The arrays of n_pad numbers, and of eight numbers a token, beside the two tables."""

_matrix, _vector = float64[:, ::1], float64[::1]


def table_size(n: int) -> int:
    """The length of the `work` array for n tokens: a note, the scores, the table and what is kept
    of rows and columns.
    """
    n_pad = -(-n // 8) * 8
    return 8 + (2 * n + VECTORS + 8 * LANES) * n_pad


@compiled(void(_matrix, _vector, int64, float64, _vector))
def fill_scores(q, keys, n, factor, scores):
    """scores = factor <q_i, k_j>, -infinity where i is padding."""
    k, stride = q.shape
    bits, zero, least = fill(factor), fill(0.0), fill(-LARGEST_SCORE)
    for i in range(0, stride, 8):
        for j in range(n):
            s = multiply(load(q, i), spread(keys, j))
            for c in range(1, k):
                s = multiply_add(load(q, c * stride + i), spread(keys, c * stride + j), s)
            s = larger(multiply(s, bits), least)  # this way round NaN stays
            s = subtract(zero, larger(subtract(zero, s), least))
            store(scores, i * n + 8 * j, where_from(n - i, fill(-math.inf), s))


@compiled(void(int64, _vector, _vector, _vector, _vector, _vector, _vector))
def sweep_logarithms(n, scores, f, g, tops, parts, table):
    """g from f, f from g, and the table: its rows then sum to 1."""
    lowest, zero = fill(-math.inf), fill(0.0)
    for j in range(n):
        store(tops, 8 * j, lowest)
        store(parts, 8 * j, zero)
    for i in range(0, len(f), 8):
        for j in range(n):
            store(
                tops,
                8 * j,
                larger(load(tops, 8 * j), subtract(load(scores, i * n + 8 * j), load(f, i))),
            )
    for j in range(n):
        g[j] = tops[8 * j]
        for lane in range(1, 8):
            g[j] = max(g[j], tops[8 * j + lane])
    for i in range(0, len(f), 8):
        for j in range(n):
            term = exp2(subtract(subtract(load(scores, i * n + 8 * j), load(f, i)), spread(g, j)))
            store(parts, 8 * j, add(load(parts, 8 * j), term))
    for j in range(n):
        total = 0.0
        for lane in range(8):
            total += parts[8 * j + lane]
        g[j] += math.log2(total)
    for i in range(0, len(f), 8):
        top, total = lowest, zero
        for j in range(n):
            top = larger(top, subtract(load(scores, i * n + 8 * j), spread(g, j)))
        for j in range(n):
            total = add(
                total, exp2(subtract(subtract(load(scores, i * n + 8 * j), spread(g, j)), top))
            )
        store(tops, 0, top)
        store(parts, 0, total)
        for lane in range(8):
            f[i + lane] = tops[lane] + math.log2(parts[lane]) if i + lane < n else 0.0
        for j in range(n):
            # not above 1: f is at least the row's top, formed by the same operations
            term = exp2(subtract(subtract(load(scores, i * n + 8 * j), spread(g, j)), load(f, i)))
            store(table, i * n + 8 * j, term)


@compiled(void(int64, _vector, _vector))
def add_lanes(n, parts, sums):
    """sums[j] = the sum of the eight parts of column j."""
    for j in range(n):
        sums[j] = 0.0
        for lane in range(8):
            sums[j] += parts[8 * j + lane]


@compiled(boolean(int64, _vector, _vector, _vector, _vector, _vector, _vector))
def sweep(n, table, sums, v, u, parts, new_sums):
    """v from the column sums, u from v, and the new column sums. Whether all factors have a
    moderate size.
    """
    zero, one = fill(0.0), fill(1.0)
    for j in range(n):
        v[j] = 1.0 / sums[j]
        if not 1.0 / LARGEST_FACTOR < v[j] < LARGEST_FACTOR:
            return False
        store(parts, 8 * j, zero)
    for i in range(0, len(u), 8):
        total = zero
        for j in range(n):
            total = multiply_add(load(table, i * n + 8 * j), spread(v, j), total)
        factor = where_from(n - i, zero, divide(one, total))
        store(u, i, factor)
        for j in range(n):
            store(
                parts, 8 * j, multiply_add(load(table, i * n + 8 * j), factor, load(parts, 8 * j))
            )
    for i in range(n):
        if not 1.0 / LARGEST_FACTOR < u[i] < LARGEST_FACTOR:
            return False
    add_lanes(n, parts, new_sums)
    return True


@compiled(float64(int64, _vector, _vector))
def column_error(n, sums, v):
    """How far the columns are from the sum 1; NaN where one is."""
    worst = 0.0
    for j in range(n):
        off = abs(v[j] * sums[j] - 1.0)
        if not off <= worst:
            worst = off
            if off != off:
                return off
    return worst


@cache
def sinkhorn_core(MOST: int, CLOSE: float) -> Any:
    """The compiled function of all rows at once. (Numbers from other folders are closed over: the
    cache then knows them.)
    """

    @compiled(core_signature)
    def core(q, keys, values, n, begin, end, factor, number, is_small, work, out):
        n_pad, pairs = q.shape[1], n * q.shape[1]
        vectors = work[8 + 2 * pairs :]
        scores, table = work[8 : 8 + pairs], work[8 + pairs : 8 + 2 * pairs]
        f, u, new_u = vectors[:n_pad], vectors[n_pad : 2 * n_pad], vectors[2 * n_pad : 3 * n_pad]
        g, v, sums = (
            vectors[3 * n_pad : 4 * n_pad],
            vectors[4 * n_pad : 5 * n_pad],
            vectors[5 * n_pad : 6 * n_pad],
        )
        new_sums, tops, parts = (
            vectors[6 * n_pad : 7 * n_pad],
            vectors[7 * n_pad : 15 * n_pad],
            vectors[15 * n_pad :],
        )
        fill_scores(q, keys, n, factor, scores)
        for i in range(n_pad):
            f[i], u[i] = 0.0, 1.0
        in_logarithms, is_settled = True, False
        for iteration in range(MOST):
            if not in_logarithms:
                in_logarithms = not sweep(n, table, sums, v, new_u, parts, new_sums)
                if not in_logarithms:
                    for i in range(n_pad):
                        u[i], sums[i] = new_u[i], new_sums[i]
            if in_logarithms:
                for i in range(n):
                    f[i] -= math.log2(u[i])
                sweep_logarithms(n, scores, f, g, tops, parts, table)
                for i in range(n_pad):
                    u[i], v[i] = 1.0, 1.0
                for j in range(n):
                    store(parts, 8 * j, fill(0.0))
                for i in range(0, n_pad, 8):
                    for j in range(n):
                        store(parts, 8 * j, add(load(parts, 8 * j), load(table, i * n + 8 * j)))
                add_lanes(n, parts, sums)
                in_logarithms = False
            if (iteration < 8 or iteration % 8 == 0) and not column_error(n, sums, v) > CLOSE:
                is_settled = True
                break
        if not is_settled:
            work[0] = 1.0  # to be read by who wants to know why the velocity is NaN
            for c in range(out.shape[0]):
                for i in range(n_pad):
                    out[c, i] = math.nan
            return
        for i in range(0, n_pad, 8):
            total = fill(0.0)
            for j in range(n):
                at = i * n + 8 * j
                weight = multiply(load(table, at), spread(v, j))
                store(table, at, weight)
                total = add(total, weight)
            for c in range(out.shape[0]):
                mean = fill(0.0)
                for j in range(n):
                    mean = multiply_add(
                        load(table, i * n + 8 * j), spread(values, c * n_pad + j), mean
                    )
                store(out, c * n_pad + i, divide(mean, total))

    return core


cores.register("sinkhorn")(
    Core(table=partial(sinkhorn_core, MOST_ITERATIONS, TOLERANCE), table_size=table_size)
)
