"""The state between two fixed steps. Imported, and so compiled, only where steps are fixed."""

from __future__ import annotations

from attnlab.engine.callers import fixed_signature
from attnlab.engine.compile import compiled


@compiled(fixed_signature)
def fixed_value(part, h, y, after, before_velocity, after_velocity, is_cubic, out):
    """out = the state at the fraction `part` of a fixed step: cubic Hermite for rk4, a straight
    line for Euler.
    """
    d, n_pad = y.shape
    for a in range(d):
        for i in range(n_pad):
            change = after[a, i] - y[a, i]
            u = part * change
            if is_cubic:
                p, q = part, 1.0 - part
                u += (
                    p
                    * q
                    * (
                        q * (h * before_velocity[a, i] - change)
                        - p * (h * after_velocity[a, i] - change)
                    )
                )
            out[a, i] = y[a, i] + u
