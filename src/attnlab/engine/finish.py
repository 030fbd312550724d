"""The end of a velocity: projection on the sphere's tangent space, or the feed-forward layer.
Compiled only when needed.
"""

from __future__ import annotations

import math

from attnlab.engine.callers import finish_signature
from attnlab.engine.compile import compiled
from attnlab.engine.lanes import fill, load, multiply, multiply_add, store, subtract
from attnlab.engine.products import apply
from attnlab.engine.system import BIAS, BIAS_OUTSIDE, RELU, TANH


@compiled(finish_signature)
def tangent_or_feedforward(feedforward, is_tangent, W, row, y, out, scratch):
    """out projected on the tangent space at y; or out = W sigma(out + bias) + bias_outside."""
    d, n_pad = y.shape
    if is_tangent:
        for i in range(0, n_pad, 8):
            inner = fill(0.0)
            for a in range(d):
                inner = multiply_add(load(out, a * n_pad + i), load(y, a * n_pad + i), inner)
            for a in range(d):
                at = a * n_pad + i
                store(out, at, subtract(load(out, at), multiply(inner, load(y, at))))
        return
    for a in range(d):
        for i in range(n_pad):
            u = out[a, i] + row[BIAS, a]
            if feedforward == RELU:
                u = 0.0 if u < 0.0 else u  # written like this to keep NaN
            elif feedforward == TANH:
                u = math.tanh(u)
            scratch[a, i] = u
    apply(W, scratch, out)
    for a in range(d):
        for i in range(n_pad):
            out[a, i] += row[BIAS_OUTSIDE, a]
