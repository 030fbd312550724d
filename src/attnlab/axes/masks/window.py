"""Token i sees the tokens within a distance in the text."""

from __future__ import annotations

import numpy as np

from attnlab.axes.masks import masks
from attnlab.checks import whole_number


@masks.register("window")
class Window:
    """Token i sees the tokens j with |i - j| <= width; with causal = true also j <= i."""

    def __init__(self, width: int, causal: bool = False):
        self.width = whole_number("width of the mask window", width, least=0)
        if not isinstance(causal, bool):
            raise ValueError(f"causal of the mask window must be true or false, got {causal!r}.")
        self.causal = causal

    def seen(self, n: int) -> np.ndarray:
        """True in a band around the diagonal."""
        place = np.arange(n)
        apart = place[:, None] - place
        return (np.abs(apart) <= self.width) & ((apart >= 0) | (not self.causal))
