"""Tokens back on the sphere after a step. Imported, and so compiled, only for runs on the
sphere.
"""

from __future__ import annotations

from attnlab.engine.callers import renormalise_signature
from attnlab.engine.compile import compiled
from attnlab.engine.lanes import (
    divide,
    fill,
    load,
    multiply,
    multiply_add,
    square_root,
    store,
    where_from,
)


@compiled(renormalise_signature)
def renormalise(y, n):
    """Every token divided by its norm, twice: once leaves 2 units in the last place."""
    d, n_pad = y.shape
    for _ in range(2):
        for i in range(0, n_pad, 8):
            square = fill(0.0)
            for a in range(d):
                x = load(y, a * n_pad + i)
                square = multiply_add(x, x, square)
            inverse = where_from(
                n - i, fill(0.0), divide(fill(1.0), square_root(square))
            )  # padding stays 0
            for a in range(d):
                store(y, a * n_pad + i, multiply(load(y, a * n_pad + i), inverse))
