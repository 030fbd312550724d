"""A table says which tokens token i sees."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.axes.masks import masks


@masks.register("given")
class Given:
    """Token i sees token j where the n x n table has 1 or true."""

    def __init__(self, table: Any):
        array = np.array(table)
        if array.ndim != 2 or array.shape[0] != array.shape[1] or not np.isin(array, (0, 1)).all():
            raise ValueError(
                "table of the mask given must be a square table of 0 and 1, got shape"
                f" {array.shape}."
            )
        self.table = array.astype(int)
        blind = np.flatnonzero(~self.table.any(axis=1))
        if len(blind):
            raise ValueError(
                f"table of the mask given must let every token see one at least, but row {blind[0]}"
                " is empty."
            )

    def seen(self, n: int) -> np.ndarray:
        """The table."""
        if len(self.table) != n:
            size = len(self.table)
            raise ValueError(
                f"table of the mask given must be {n} x {n} for {n} tokens, got {size} x {size}."
            )
        return self.table.astype(bool)
