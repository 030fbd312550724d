"""Token i sees tokens 0 to i."""

from __future__ import annotations

import numpy as np

from attnlab.axes.masks import masks


@masks.register("causal")
class Causal:
    """Token i sees tokens 0 to i."""

    is_causal = True

    def seen(self, n: int) -> np.ndarray:
        """True on and below the diagonal."""
        return np.tri(n, dtype=bool)
