"""The attention of a block of rows for tokens kept as hi + lo, two doubles: exact where tokens of a
cluster almost coincide.

A cluster's tokens keep their distances while their size grows like e^{lambda_1 t}, so in plain
double a change of leader inside the cluster, at the time when two scores cross, is located only to
about 1e-16 e^{lambda_1 t}: 1e-4 at lambda_1 t = 28, and slow coordinates of z are wrong by as much.
Here scores are differences to the row's best token, formed from differences of tokens:

    g_ij = <q_i, x_j - x_best>,     mean_i = x_best + sum_j w_ij (x_j - x_best) / Z_i,     w_ij = 2^{factor g_ij}

Followers of one leader get its `hi` to the last bit, so that equal increments keep their
differences exactly. It is several times slower than the kernels of unrolled.py and tiled.py, so it
is used only when it matters.
"""

from __future__ import annotations

import math

import numpy as np
from numba import float64, int64, void

from attnlab.engine.callers import extended_signature, transposed_signature
from attnlab.engine.compile import compiled

_matrix, _stack = float64[:, ::1], float64[:, :, ::1]


@compiled(transposed_signature)
def apply_transposed(A, y, out):
    """out = A^T y, A (q, p), y (q, n_pad)."""
    for b in range(A.shape[1]):
        for i in range(y.shape[1]):
            out[b, i] = 0.0
        for a in range(A.shape[0]):
            c = A[a, b]
            if c != 0.0:
                for i in range(y.shape[1]):
                    out[b, i] += c * y[a, i]


@compiled(void(_matrix, _stack, int64, int64, float64[::1]))
def gaps_to(q, tokens, i, best, gaps):
    """gaps[j] = <q_i, x_j - x_best>; tokens (2, d, n_pad) are hi and lo."""
    for j in range(len(gaps)):
        gaps[j] = 0.0
    for c in range(q.shape[0]):
        weight, high, low = q[c, i], tokens[0, c, best], tokens[1, c, best]
        for j in range(len(gaps)):
            gaps[j] += weight * ((tokens[0, c, j] - high) + (tokens[1, c, j] - low))


@compiled(int64(float64[::1]))
def first_largest(values):
    """The place of the first of the largest values, or of the first NaN. (np.argmax would import
    SciPy when it is loaded.)
    """
    best = 0
    for j in range(len(values)):
        if values[j] != values[j]:
            return j
        if values[j] > values[best]:
            best = j
    return best


@compiled(extended_signature, allocates=True)
def extended_rows(q, tokens, n, begin, end, factor, is_causal, is_hardmax, mean):
    """mean (d, n_pad) for the rows begin to end - 1; q (d, n_pad) with scores <q_i, x_j>, softmax
    or hardmax.
    """
    d = q.shape[0]
    row = np.empty(n)
    for i in range(begin, min(end, n)):
        gaps = row[: i + 1] if is_causal else row
        best = i
        for _ in range(2):
            # the first time among all tokens by differences to token i, the second to make sure of
            # it among near ties
            gaps_to(q, tokens, i, best, gaps)
            best = first_largest(gaps)
        gaps_to(q, tokens, i, best, gaps)
        total = 0.0
        for c in range(d):
            mean[c, i] = 0.0
        for j in range(len(gaps)):
            weight = 1.0 if gaps[j] == 0.0 else 0.0
            if not is_hardmax:
                exponent = gaps[j] * factor
                # below 2^-1000 a weight is nothing beside the best token's 1; NaN goes on to be
                # seen
                weight = 0.0 if exponent < -1000.0 else math.exp2(min(exponent, 1.0))
            if weight != 0.0:
                total += weight
                for c in range(d):
                    mean[c, i] += weight * (
                        (tokens[0, c, j] - tokens[0, c, best])
                        + (tokens[1, c, j] - tokens[1, c, best])
                    )
        for c in range(d):
            mean[c, i] = tokens[0, c, best] + mean[c, i] / total
