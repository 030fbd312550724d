"""The best token of each row, and its gap: from differences of tokens, so that the order inside a
cluster is kept.
"""

from __future__ import annotations

import math

import numpy as np
from numba import boolean, float64, int64, void

from attnlab.engine.compile import compiled
from attnlab.engine.extended import first_largest, gaps_to

_matrix, _stack = float64[:, ::1], float64[:, :, ::1]


@compiled(
    void(_matrix, _stack, float64[::1], int64[::1], boolean, int64[::1], float64[::1], int64[::1]),
    allocates=True,
)
def best_tokens(q, tokens, bonus, same_as, is_causal, leader, gap, rival):
    """leader (n,), gap (n,) to the best other token, rival (n,) that token; q (d, n) with scores
    <q_i, x_j> + bonus_j.

    tokens (2, d, n) are hi and lo. Tokens that are equal from the start, same_as (n,), count as
    one: the first represents all, and its bonus contains their number. A row with no other token
    has the gap infinity and the rival -1.
    """
    n = q.shape[1]
    row = np.empty(n)
    for i in range(n):
        gaps, best = row[: i + 1] if is_causal else row, i
        for _ in range(3):
            gaps_to(q, tokens, i, best, gaps)
            for j in range(len(gaps)):
                gaps[j] += bonus[j] - bonus[best]
            best = same_as[first_largest(gaps)]
        leader[i], gap[i], rival[i] = best, math.inf, -1
        for j in range(len(gaps)):
            if same_as[j] == j and j != best and gaps[best] - gaps[j] < gap[i]:
                gap[i], rival[i] = gaps[best] - gaps[j], j
