"""The compiled read rms_norm, and the text that it shares with unit_norm. Its number is eps."""

from __future__ import annotations

import math
from functools import cache, partial
from typing import Any

from attnlab.engine.callers import read_signature
from attnlab.engine.compile import compiled
from attnlab.engine.cores.reads import Read, reads
from attnlab.engine.lanes import (
    absolute,
    add,
    divide,
    fill,
    larger,
    load,
    multiply,
    multiply_add,
    square_root,
    store,
    where_from,
)


@cache
def norm(IS_MEAN: int) -> Any:
    """The compiled function out = y / sqrt(eps + mean of y^2), or the sum of y^2, token by
    token.
    """

    @compiled(read_signature, f"{IS_MEAN}")
    def read(y, n, eps, out):
        d, n_pad = y.shape
        share, root = fill(1.0 / d if IS_MEAN else 1.0), fill(math.sqrt(eps))
        for i in range(0, n_pad, 8):
            size = root
            for a in range(d):
                size = larger(
                    size, absolute(load(y, a * n_pad + i))
                )  # taken out first: squares overflow
            square = fill(0.0)
            for a in range(d):
                part = divide(load(y, a * n_pad + i), size)
                square = multiply_add(part, part, square)
            rest = divide(root, size)
            length = square_root(add(multiply(square, share), multiply(rest, rest)))
            for a in range(d):
                part = divide(divide(load(y, a * n_pad + i), size), length)
                store(out, a * n_pad + i, where_from(n - i, fill(0.0), part))  # padding stays 0

    return read


reads.register("rms_norm")(Read(partial(norm, 1), number=lambda read: read.eps))
