"""The factor 1."""

from __future__ import annotations

from attnlab.axes.speeds import speeds


@speeds.register("constant")
class Constant:
    """The factor 1 at all times."""

    is_constant = True

    def __call__(self, t: float) -> float:
        """1."""
        return 1.0
