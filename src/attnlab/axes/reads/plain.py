"""Attention reads the token itself."""

from __future__ import annotations

import numpy as np

from attnlab.axes.reads import reads


@reads.register("plain")
class Plain:
    """Attention reads the token itself."""

    is_identity = True

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """The tokens."""
        return x
