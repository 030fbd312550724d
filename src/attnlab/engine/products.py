"""Small matrices times tokens (d, n_pad): the loop over tokens is innermost, over contiguous
memory.
"""

from __future__ import annotations

from numba import float64, void

from attnlab.engine.compile import compiled

_matrix = float64[:, ::1]


@compiled(void(_matrix, _matrix, _matrix))
def apply(A, y, out):
    """out = A y, A (p, q), y (q, n_pad)."""
    for a in range(A.shape[0]):
        for i in range(y.shape[1]):
            out[a, i] = 0.0
        for b in range(A.shape[1]):
            c = A[a, b]
            if c != 0.0:
                for i in range(y.shape[1]):
                    out[a, i] += c * y[b, i]


@compiled(void(_matrix, _matrix, _matrix))
def apply_and_add(A, y, out):
    """out += A y."""
    for a in range(A.shape[0]):
        for b in range(A.shape[1]):
            c = A[a, b]
            if c != 0.0:
                for i in range(y.shape[1]):
                    out[a, i] += c * y[b, i]
