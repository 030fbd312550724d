"""The output of attention moves the token unchanged."""

from __future__ import annotations

import numpy as np

from attnlab.axes.writes import writes


@writes.register("plain")
class Plain:
    """The output of attention moves the token unchanged."""

    is_identity = True

    def __call__(self, output: np.ndarray) -> np.ndarray:
        """The output."""
        return output
