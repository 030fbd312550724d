"""The factor 1 / sqrt(t + 1): deeper layers move tokens less."""

from __future__ import annotations

import math

from attnlab.axes.speeds import speeds


@speeds.register("inverse_sqrt")
class InverseSqrt:
    """The factor 1 / sqrt(t + 1)."""

    def __call__(self, t: float) -> float:
        """The factor at time t."""
        return 1.0 / math.sqrt(t + 1.0)
