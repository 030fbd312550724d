"""Every token sees every token."""

from __future__ import annotations

import numpy as np

from attnlab.axes.masks import masks


@masks.register("full")
class Full:
    """Every token sees every token."""

    sees_all = True

    def seen(self, n: int) -> np.ndarray:
        """True everywhere."""
        return np.ones((n, n), dtype=bool)
