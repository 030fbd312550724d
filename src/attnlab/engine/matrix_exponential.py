"""e^{tA} inside compiled code, for the frame z. Imported, and so compiled, only by systems that
need it.
"""

from __future__ import annotations

import math

from numba import float64, void

from attnlab.engine.callers import exponential_signature
from attnlab.engine.compile import compiled
from attnlab.engine.products import apply
from attnlab.engine.system import BASIS, EIGENBASIS, GROWTH_RATE, INVERSE, SHIFTED, TURN

TAYLOR_DEGREE = 14
"""With the norm scaled below 1/2 the remainder is 0.5^15 / 15! = 2e-17."""

_stack, _matrix, _vector = float64[:, :, ::1], float64[:, ::1], float64[::1]


@compiled(void(float64, _matrix, _matrix, _vector, _vector, _matrix, _matrix))
def eigenbasis_exponential(t, basis, inverse, growth, turn, out, scratch):
    """out = basis e^{t blocks} inverse, blocks diagonal but for [[a, b], [-b, a]] where turn = b >
    0.
    """
    d = out.shape[0]
    row = 0
    while row < d:
        size = math.exp(growth[row] * t)
        if turn[row] == 0.0:
            for b in range(d):
                scratch[row, b] = size * inverse[row, b]
            row += 1
        else:
            cosine, sine = size * math.cos(turn[row] * t), size * math.sin(turn[row] * t)
            for b in range(d):
                first, second = inverse[row, b], inverse[row + 1, b]
                scratch[row, b] = cosine * first + sine * second
                scratch[row + 1, b] = cosine * second - sine * first
            row += 2
    apply(basis, scratch, out)


@compiled(void(float64, _matrix, _matrix, _matrix))
def taylor_exponential(t, shifted, out, scratch):
    """out = e^{t shifted} by Taylor series and squaring, for any eigenvectors."""
    d = out.shape[0]
    norm = 0.0
    for a in range(d):
        row_sum = 0.0
        for b in range(d):
            row_sum += abs(shifted[a, b] * t)
        norm = max(norm, row_sum)
    halvings = 0
    while norm > 0.5:
        norm, halvings = 0.5 * norm, halvings + 1
    step = t * 0.5**halvings
    for a in range(d):
        for b in range(d):
            out[a, b] = 1.0 if a == b else 0.0
    for degree in range(TAYLOR_DEGREE, 0, -1):  # Horner: out = I + (step A / degree) out
        apply(shifted, out, scratch)
        for a in range(d):
            for b in range(d):
                out[a, b] = scratch[a, b] * (step / degree) + (1.0 if a == b else 0.0)
    for _ in range(halvings):
        apply(out, out, scratch)
        for a in range(d):
            for b in range(d):
                out[a, b] = scratch[a, b]


@compiled(exponential_signature)
def exponential(method, t, square, row, out, scratch):
    """out = e^{t (A - rate)} by the method that System.exponential names; square and row are the
    System's.
    """
    if method == EIGENBASIS:
        eigenbasis_exponential(
            t, square[BASIS], square[INVERSE], row[GROWTH_RATE], row[TURN], out, scratch
        )
    else:
        taylor_exponential(t, square[SHIFTED], out, scratch)
