"""Attention of many different tokens without looking at all pairs: in cells of near tokens.

Tokens are in the order of `cell_order`. CELL of them in a row are a cell, and lie in the box centre
+- half. So a score <q, x> is at most <q, centre> + <|q|, half>. A block is eight rows. A cell whose
bound is more than `cut` bits below the best score of each row of a block is passed over. Let R be
what is passed over: its tokens weigh less than w = n 2^-cut together, beside the best token's 1.
With W >= 1 the weight of the others, the mean moves by w |mean of R - mean of the others| / (W +
w), which is less than n 2^-cut times the largest distance of two tokens. `cut_bits` makes this less
than the rounding of the first tokens: the size of the tokens relative to those is part of it.

Nothing is remembered from one velocity to the next, so no list of neighbours can be out of date.
Memory: a few numbers for each token. Equal tokens may be in different blocks, which keep different
cells, so there must be none.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from numba import float64, int64, void

from attnlab.engine.compile import compiled
from attnlab.engine.exp2 import exp2
from attnlab.engine.lanes import (
    absolute,
    add,
    any_reaches,
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
)
from attnlab.engine.unrolled import core_signature

CELL = 16
"""Tokens in a cell. With 8 boxes are tighter, but there are twice as many to look at."""

FLUSH = 32
"""Cells that are summed before their sum is added to the total: long sums round more."""

SPARE_BITS = 4.0
"""Of the cut, for the rounding of scores and boxes."""

LOOSE = 2.0**-50
"""Boxes are larger by this part of their tokens: more than rounding and the second double."""

_matrix, _vector = float64[:, ::1], float64[::1]


def cell_order(points: np.ndarray) -> np.ndarray:
    """An order of points (n, d) whose cells are small: halves along the widest side, again."""
    out = np.empty(len(points), np.int64)
    parts = [(0, np.arange(len(points)))]
    while parts:
        begin, index = parts.pop()
        if len(index) <= CELL:
            out[begin : begin + len(index)] = index
            continue
        inside = points[index]
        values = inside[:, int(np.argmax(np.ptp(inside, axis=0)))]
        half = CELL * (-(-len(index) // CELL) // 2)
        chosen = np.argpartition(values, half)
        parts += [(begin, index[chosen[:half]]), (begin + half, index[chosen[half:]])]
    return out


def cell_count(n: int) -> int:
    """The number of cells of n tokens."""
    return -(-n // CELL)


def cut_bits(n: int, growth: float) -> float:
    """The cut for n tokens whose size is e^growth times that of the start."""
    return 53.0 + SPARE_BITS + math.log2(n) + max(growth, 0.0) / math.log(2.0)


@compiled(void(_matrix, int64, _matrix, _matrix))
def make_boxes(tokens, n, centres, halves):
    """centres, halves (d, cells) of tokens (d, n_pad)."""
    for c in range(tokens.shape[0]):
        for cell in range(centres.shape[1]):
            first, last = cell * CELL, min(n, (cell + 1) * CELL)
            low, high = tokens[c, first], tokens[c, first]
            for j in range(first + 1, last):
                low, high = min(low, tokens[c, j]), max(high, tokens[c, j])
            centre = 0.5 * low + 0.5 * high
            half = max(high - centre, centre - low)
            centres[c, cell], halves[c, cell] = centre, half + LOOSE * max(abs(low), abs(high))


def packed_size(n: int, d: int) -> int:
    """The length of what `pack` writes, and of the counts behind it: one for each eight rows."""
    cells = cell_count(n)
    return cells * d * (CELL + 2) + cell_count(n) * CELL // 8


@compiled(void(_matrix, int64, _vector))
def pack(tokens, n, packed):
    """tokens (d, n_pad) -> [cell][coordinate][CELL], boxes [cell][coordinate][centre, half]."""
    d, cells = tokens.shape[0], (n + CELL - 1) // CELL
    boxes = cells * d * CELL
    for cell in range(cells):
        last = min(n - cell * CELL, CELL)
        for c in range(d):
            at, low, high = (cell * d + c) * CELL, tokens[c, cell * CELL], tokens[c, cell * CELL]
            for l in range(CELL):
                value = 0.0
                if l < last:
                    value = tokens[c, cell * CELL + l]
                    low, high = min(low, value), max(high, value)
                packed[at + l] = value
            centre = 0.5 * low + 0.5 * high
            half = max(high - centre, centre - low) + LOOSE * max(abs(low), abs(high))
            packed[boxes + 2 * (cell * d + c)], packed[boxes + 2 * (cell * d + c) + 1] = (
                centre,
                half,
            )


@cache
def cell_core(D: int) -> Any:
    """The compiled function for D coordinates, tokens as keys and values; called as unrolled.py's.

    keys: what `pack` wrote, and the counts of pairs behind it, which are added to. values: not
    read. number: the cut in bits. work: 8 numbers for each cell, and D more.
    """

    @compiled(core_signature, f"cells_{D}")
    def core(q, keys, values, n, begin, end, factor, number, is_small, work, out):
        stride, cells = q.shape[1], (n + CELL - 1) // CELL
        boxes, sums = cells * D * CELL, 8 * cells
        counts = boxes + 2 * cells * D
        Q, size, part, total = make_stack(D), make_stack(D), make_stack(D), make_stack(D)
        bits, zero, cut = fill(factor), fill(0.0), fill(number / factor)
        for i in range(begin, end, 8):
            for c in range(D):
                put(Q, c, load(q, c * stride + i))
                put(size, c, absolute(get(Q, c)))
                work[sums + c] = 0.0
                for lane in range(8):
                    work[sums + c] += q[c, i + lane]
            # the cell that is best for the rows together: its scores are a first bound
            nearest, highest = 0, -math.inf
            for cell in range(cells):
                score = 0.0
                for c in range(D):
                    score += work[sums + c] * keys[boxes + 2 * (cell * D + c)]
                if score > highest:
                    nearest, highest = cell, score
            top = fill(-math.inf)
            at = nearest * D * CELL
            for j in range(min(n - nearest * CELL, CELL)):
                s = multiply(get(Q, 0), spread(keys, at + j))
                for c in range(1, D):
                    s = multiply_add(get(Q, c), spread(keys, at + c * CELL + j), s)
                top = larger(top, s)
            for cell in range(cells):
                box = boxes + 2 * cell * D
                upper = multiply_add(
                    get(size, 0), spread(keys, box + 1), multiply(get(Q, 0), spread(keys, box))
                )
                for c in range(1, D):
                    upper = multiply_add(get(Q, c), spread(keys, box + 2 * c), upper)
                    upper = multiply_add(get(size, c), spread(keys, box + 2 * c + 1), upper)
                store(work, 8 * cell, upper)
                if cell != nearest and any_reaches(upper, top):
                    at = cell * D * CELL
                    for j in range(min(n - cell * CELL, CELL)):
                        s = multiply(get(Q, 0), spread(keys, at + j))
                        for c in range(1, D):
                            s = multiply_add(get(Q, c), spread(keys, at + c * CELL + j), s)
                        top = larger(top, s)
            lowest, kept = subtract(top, cut), 0
            weight, total_weight = zero, zero
            for c in range(D):
                put(part, c, zero)
                put(total, c, zero)
            for cell in range(cells):
                if not any_reaches(load(work, 8 * cell), lowest):
                    continue
                at = cell * D * CELL
                for j in range(min(n - cell * CELL, CELL)):
                    s = multiply(get(Q, 0), spread(keys, at + j))
                    for c in range(1, D):
                        s = multiply_add(get(Q, c), spread(keys, at + c * CELL + j), s)
                    e = exp2(multiply(subtract(s, top), bits))
                    weight = add(weight, e)
                    for c in range(D):
                        put(part, c, multiply_add(e, spread(keys, at + c * CELL + j), get(part, c)))
                kept += 1
                if kept % FLUSH == 0:
                    total_weight, weight = add(total_weight, weight), zero
                    for c in range(D):
                        put(total, c, add(get(total, c), get(part, c)))
                        put(part, c, zero)
            total_weight = add(total_weight, weight)
            for c in range(D):
                store(out, c * stride + i, divide(add(get(total, c), get(part, c)), total_weight))
            keys[counts + i // 8] += 8.0 * (kept * CELL + cells)

    return core
