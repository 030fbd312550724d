"""As extended.py and leaders.py, tokens as hi + lo, in cells instead of all pairs (cells.py).

Here boxes bound differences of scores, g = <q_i, x - x_ref> <= <q_i, centre - x_ref> + <|q_i|,
half>, formed from differences of tokens. So cells inside a cluster are told apart although their
scores agree to fifteen digits.
"""

from __future__ import annotations

import math

import numba
import numpy as np
from numba import float64, int64, void

from attnlab.engine.cells import CELL, cell_order, make_boxes
from attnlab.engine.compile import OPTIONS, compiled

_matrix, _stack, _vector, _whole = float64[:, ::1], float64[:, :, ::1], float64[::1], int64[::1]


@numba.njit(**OPTIONS)
def bounds_to(q, tokens, i, ref, centres, halves, extra, uppers):
    """uppers[cell]: no <q_i, x_j - x_ref> + bonus_j exceeds it; extra: the largest bonuses."""
    for cell in range(len(uppers)):
        uppers[cell] = extra[cell]
    for c in range(q.shape[0]):
        weight, size, high, low = q[c, i], abs(q[c, i]), tokens[0, c, ref], tokens[1, c, ref]
        for cell in range(len(uppers)):
            uppers[cell] += weight * ((centres[c, cell] - high) - low) + size * halves[c, cell]


@numba.njit(**OPTIONS)
def gaps_in_cell(q, tokens, i, ref, n, cell, bonus, gaps):
    """gaps[l] = <q_i, x_j - x_ref> + bonus_j of the cell's tokens j; how many these are."""
    first = cell * CELL
    count = min(n - first, CELL)
    for l in range(count):
        gaps[l] = bonus[first + l]
    for c in range(q.shape[0]):
        weight, high, low = q[c, i], tokens[0, c, ref], tokens[1, c, ref]
        for l in range(count):
            j = first + l
            gaps[l] += weight * ((tokens[0, c, j] - high) + (tokens[1, c, j] - low))
    return count


@numba.njit(**OPTIONS)
def first_guess(q, tokens, bonus, i, ref, n, centres, gaps):
    """The best token for row i in the cell whose centre is best; ref if no centre is a number."""
    nearest, highest = -1, -math.inf
    for cell in range(centres.shape[1]):
        score = 0.0
        for c in range(q.shape[0]):
            score += q[c, i] * (centres[c, cell] - tokens[0, c, ref])
        if score > highest:
            nearest, highest = cell, score
    best, most = ref, bonus[ref]
    if nearest >= 0:
        for l in range(gaps_in_cell(q, tokens, i, ref, n, nearest, bonus, gaps)):
            if gaps[l] > most:
                best, most = nearest * CELL + l, gaps[l]
    return best


@numba.njit(**OPTIONS)
def settle(q, tokens, bonus, i, best, n, centres, halves, extra, uppers, gaps):
    """(the best token for row i, pairs looked at), from a guess; uppers are then relative to it."""
    pairs = 0
    for _ in range(n):
        bounds_to(q, tokens, i, best, centres, halves, extra, uppers)
        pairs += len(uppers)
        better, most = best, bonus[best]
        for cell in range(len(uppers)):
            if uppers[cell] <= most:  # a NaN goes on to be seen
                continue
            pairs += CELL
            for l in range(gaps_in_cell(q, tokens, i, best, n, cell, bonus, gaps)):
                if gaps[l] > most:
                    better, most = cell * CELL + l, gaps[l]
        if better == best:
            break
        best = better
    return best, pairs


@compiled(
    void(
        _matrix, _stack, int64, int64, int64, float64, float64, _matrix, _matrix, _vector, _matrix
    ),
    allocates=True,
)
def extended_rows_in_cells(q, tokens, n, begin, end, factor, cut, centres, halves, counts, mean):
    """As extended.extended_rows for softmax without a mask, without cells below the cut.

    counts: the pairs looked at are added to counts[begin // 8].
    """
    d, cells = centres.shape
    uppers, extra, bonus, gaps = np.empty(cells), np.zeros(cells), np.zeros(n), np.empty(CELL)
    for i in range(begin, min(end, n)):
        guess = first_guess(q, tokens, bonus, i, i, n, centres, gaps)
        best, pairs = settle(q, tokens, bonus, i, guess, n, centres, halves, extra, uppers, gaps)
        total = 0.0
        for c in range(d):
            mean[c, i] = 0.0
        for cell in range(cells):
            if uppers[cell] * factor < -cut:
                continue
            pairs += CELL
            for l in range(gaps_in_cell(q, tokens, i, best, n, cell, bonus, gaps)):
                j, exponent = cell * CELL + l, gaps[l] * factor
                if exponent < -1000.0:
                    continue
                weight = math.exp2(min(exponent, 1.0))
                total += weight
                for c in range(d):
                    mean[c, i] += weight * (
                        (tokens[0, c, j] - tokens[0, c, best])
                        + (tokens[1, c, j] - tokens[1, c, best])
                    )
        for c in range(d):
            mean[c, i] = tokens[0, c, best] + mean[c, i] / total
        counts[begin // 8] += pairs + cells


@compiled(void(_matrix, _stack, _vector, _whole, _vector, _whole, _vector), allocates=True)
def best_tokens_in_cells(q, tokens, bonus, leader, gap, rival, counted):
    """As leaders.best_tokens for different tokens that see all; pairs are added to counted (1,)."""
    d, n = q.shape
    cells = (n + CELL - 1) // CELL
    centres, halves, uppers, extra = (
        np.empty((d, cells)),
        np.empty((d, cells)),
        np.empty(cells),
        np.empty(cells),
    )
    make_boxes(tokens[0], n, centres, halves)
    gaps = np.empty(CELL)
    for cell in range(cells):
        extra[cell] = -math.inf
        for j in range(cell * CELL, min(n, (cell + 1) * CELL)):
            extra[cell] = max(extra[cell], bonus[j])
    for i in range(n):
        guess = first_guess(q, tokens, bonus, i, i, n, centres, gaps)
        best, pairs = settle(q, tokens, bonus, i, guess, n, centres, halves, extra, uppers, gaps)
        leader[i], gap[i], rival[i] = best, math.inf, -1
        own = best // CELL
        for turn in range(cells + 1):  # the leader's cell first: its tokens are rivals mostly
            cell = own if turn == 0 else turn - 1
            if turn > 0 and (cell == own or bonus[best] - uppers[cell] >= gap[i]):
                continue
            pairs += CELL
            for l in range(gaps_in_cell(q, tokens, i, best, n, cell, bonus, gaps)):
                j, apart = cell * CELL + l, bonus[best] - gaps[l]
                if j != best and apart < gap[i]:
                    gap[i], rival[i] = apart, j
        counted[0] += pairs + cells


def best_of_many(
    q: np.ndarray,
    tokens: np.ndarray,
    bonus: np.ndarray,
    leader: np.ndarray,
    gap: np.ndarray,
    rival: np.ndarray,
) -> float:
    """As leaders.best_tokens, for different tokens that see all, in cells; the share of pairs
    looked at.
    """
    order, counted = cell_order(tokens[0].T), np.zeros(1)
    found, widths, others = np.empty_like(leader), np.empty_like(gap), np.empty_like(rival)
    arranged = (np.ascontiguousarray(array[..., order]) for array in (q, tokens, bonus))
    best_tokens_in_cells(*arranged, found, widths, others, counted)
    leader[order], gap[order] = order[found], widths
    rival[order] = np.where(others >= 0, order[others], -1)
    return min(float(counted[0]) / len(order) ** 2, 1.0)
