"""The arithmetic of one Runge-Kutta step on tokens (d, n_pad): sums of stages, error norm, dense
output, renormalisation.

Padding stays zero and out of every norm.
"""

from __future__ import annotations

import math

from numba import float64, int64, void

from attnlab.engine.compile import compiled
from attnlab.engine.lanes import (
    absolute,
    add,
    divide,
    fill,
    larger,
    largest_lane,
    load,
    multiply,
    multiply_add,
    spread,
    store,
    subtract,
)

_matrix, _stack, _vector = float64[:, ::1], float64[:, :, ::1], float64[::1]
LAST_STAGE_WEIGHT, LAST_STAGE_SHARE = 0.25, 0.3
"""Chosen on 336 runs like those of tests/engine/test_accuracy.py: error / rtol has median 0.6 and
maximum 6.4, for 3 % more evaluations. Without the second estimate: median 2, one in ten above 9,
largest 164. (Weight 1: 5.9, 10 % more evaluations.)
"""


@compiled(void(_stack, float64, _vector, int64, _stack, _stack))
def add_stages(y, h, weights, count, K, out):
    """out = y + h sum_{l < count} weights[l] K[l]; y and out (2, d, n_pad) are hi and lo.

    lo keeps the rounding error of the addition. Tokens with equal velocities get equal increments,
    to the last bit, so their differences do not change at all.
    """
    size, length = y.shape[1] * y.shape[2], fill(h)
    whole = size // 32 * 32
    for i in range(
        0, whole, 32
    ):  # four at a time: the loop over stages costs as much as one of them
        total, total_1, total_2, total_3 = fill(0.0), fill(0.0), fill(0.0), fill(0.0)
        for l in range(count):
            if weights[l] != 0.0:
                weight, at = spread(weights, l), l * size + i
                total, total_1 = (
                    multiply_add(weight, load(K, at), total),
                    multiply_add(weight, load(K, at + 8), total_1),
                )
                total_2 = multiply_add(weight, load(K, at + 16), total_2)
                total_3 = multiply_add(weight, load(K, at + 24), total_3)
        store(out, i, total)
        store(out, i + 8, total_1)
        store(out, i + 16, total_2)
        store(out, i + 24, total_3)
    for i in range(whole, size, 8):
        total = fill(0.0)
        for l in range(count):
            if weights[l] != 0.0:
                total = multiply_add(spread(weights, l), load(K, l * size + i), total)
        store(out, i, total)
    for i in range(0, size, 8):
        total = load(out, i)
        before, change = load(y, i), multiply(length, total)
        after = add(before, change)
        added = subtract(after, before)
        rest = add(subtract(before, subtract(after, added)), subtract(change, added))
        store(out, i, after)
        store(out, size + i, add(load(y, size + i), rest))


@compiled(void(_matrix, _matrix))
def copy(y, out):
    """out = y. (A slice assignment would compile NumPy's broadcasting and its error messages: half
    a second each.)
    """
    for a in range(y.shape[0]):
        for i in range(y.shape[1]):
            out[a, i] = y[a, i]


@compiled(void(_matrix))
def clear(out):
    """out = 0, for any old content."""
    for a in range(out.shape[0]):
        for i in range(out.shape[1]):
            out[a, i] = 0.0


@compiled(float64(_matrix))
def largest(y):
    """max |y|; NaN where there is one."""
    top = 0.0
    for a in range(y.shape[0]):
        for i in range(y.shape[1]):
            size = abs(y[a, i])
            if not size <= top:  # written like this to catch NaN
                top = size
                if size != size:
                    return size
    return top


@compiled(void(_matrix, _matrix, int64[::1], float64, float64, float64, _vector))
def tolerances(y, after, group, rtol, atol, rounding, scale):
    """scale (d,) = atol + rtol * (the largest |coordinate| of the group), never below `rounding`
    times the largest of all.
    """
    d, n_pad = y.shape
    top = 0.0
    for a in range(d):
        scale[a] = 0.0
    for a in range(d):
        sizes = fill(0.0)
        for i in range(a * n_pad, (a + 1) * n_pad, 8):
            sizes = larger(larger(sizes, absolute(load(y, i))), absolute(load(after, i)))
        size = largest_lane(sizes)
        top = max(top, size)
        for b in range(d):
            if group[b] == group[a]:
                scale[b] = max(scale[b], size)
    for a in range(d):
        scale[a] = max(atol + rtol * scale[a], max(rounding * top, 1e-300))


@compiled(float64(_stack, _matrix, float64, _vector, _vector))
def error_norm(K, errors, h, scale, sums):
    """The largest (estimated error / tolerance) over tokens and coordinates; errors as in
    tables.Table, sums (8,) scratch.

    It is the largest and not the root mean square, because rtol bounds the error of every token.
    Hairer's estimate e5^2 / hypot(e5, e3 / 10) assumes that the step is much shorter than every
    change in it. But a token changes its leader within a time that shrinks like e^{-2 lambda_1 t}.
    In a step over such a change e5 may pass through 0, and steps were accepted with up to 160 times
    the allowed error. So a second estimate of the same order, the last stage minus the step, is
    used in the same way, and the larger one counts.
    """
    d, n_pad = K.shape[1], K.shape[2]
    fifths, thirds, eithers, wrong = fill(0.0), fill(0.0), fill(0.0), fill(0.0)
    for a in range(d):
        width = spread(scale, a)
        for i in range(a * n_pad, (a + 1) * n_pad, 8):
            e5, e3, last = fill(0.0), fill(0.0), fill(0.0)
            for l in range(12):
                rate = load(K, l * d * n_pad + i)
                e5 = multiply_add(spread(errors, l), rate, e5)
                e3 = multiply_add(spread(errors, 16 + l), rate, e3)
                last = multiply_add(spread(errors, 32 + l), rate, last)
            e5, e3 = divide(absolute(e5), width), divide(absolute(e3), width)
            last = divide(multiply(fill(LAST_STAGE_WEIGHT), absolute(last)), width)
            wrong = multiply_add(
                add(add(e5, e3), last), fill(0.0), wrong
            )  # 0 times infinity or NaN is NaN, and stays
            fifths, thirds, eithers = (
                larger(fifths, e5),
                larger(thirds, e3),
                larger(eithers, larger(e5, last)),
            )
    store(sums, 0, wrong)
    for lane in range(8):
        if sums[lane] != 0.0:
            return math.inf
    fifth, third, either = largest_lane(fifths), largest_lane(thirds), largest_lane(eithers)
    if either == 0.0:
        return 0.0
    smooth = fifth * (fifth / math.hypot(fifth, 0.1 * third))
    sudden = either * (either / math.hypot(either, LAST_STAGE_SHARE * third))
    return abs(h) * max(smooth, sudden)


@compiled(float64(_matrix, int64, _vector))
def scaled_norm(v, n, scale):
    """The largest |v| / tolerance."""
    top = 0.0
    for a in range(v.shape[0]):
        for i in range(n):
            u = abs(v[a, i]) / scale[a]
            if not u < math.inf:
                return math.inf
            top = max(top, u)
    return top


@compiled(void(float64, _matrix, _matrix, _stack, _matrix, _stack))
def prepare_dense(h, y, after, K, dense, F):
    """F (7, d, n_pad): the polynomial between y and after; K has all 16 stages."""
    size, length, two = y.size, fill(h), fill(2.0)
    for i in range(0, size, 8):
        change, first, last = (
            subtract(load(after, i), load(y, i)),
            load(K, i),
            load(K, 12 * size + i),
        )
        store(F, i, change)
        store(F, size + i, subtract(multiply(length, first), change))
        store(F, 2 * size + i, subtract(multiply(two, change), multiply(length, add(last, first))))
        for m in range(4):
            total = fill(0.0)
            for l in range(16):
                total = multiply_add(spread(dense, 16 * m + l), load(K, l * size + i), total)
            store(F, (3 + m) * size + i, multiply(length, total))


@compiled(void(float64, _matrix, _stack, _matrix))
def dense_value(part, y, F, out):
    """out = the dense output at the fraction `part` of the step that started at y."""
    size, p, q = y.size, fill(part), fill(1.0 - part)
    for i in range(0, size, 8):
        u = multiply(load(F, 6 * size + i), p)
        for m in range(3):
            u = multiply(add(u, load(F, (5 - 2 * m) * size + i)), q)
            u = multiply(add(u, load(F, (4 - 2 * m) * size + i)), p)
        store(out, i, add(load(y, i), u))


@compiled(float64(_matrix, int64[::1], _vector))
def smallest_group(y, group, sizes):
    """The smallest over groups of coordinates of the group's largest |y|, groups that are all 0
    left out; infinity if all are.

    sizes (d,) is scratch.
    """
    d, n_pad = y.shape
    smallest = math.inf
    for a in range(d):
        sizes[a] = 0.0
    for a in range(
        d
    ):  # a coordinate's size once: a group may be hundreds of them, and this is every step
        size = 0.0
        for i in range(n_pad):
            size = max(size, abs(y[a, i]))
        for b in range(d):
            if group[b] == group[a]:
                sizes[b] = max(sizes[b], size)
    for a in range(d):
        if 0.0 < sizes[a] < smallest:
            smallest = sizes[a]
    return smallest


@compiled(void(_matrix, float64))
def multiply_all(y, factor):
    """y *= factor, exact for a power of two."""
    for a in range(y.shape[0]):
        for i in range(y.shape[1]):
            y[a, i] *= factor
