"""s_ij = -|Q x_i - K x_j|^2 / 2."""

from __future__ import annotations

import numpy as np

from attnlab.axes.scores import scores


@scores.register("distance")
class Distance:
    """s_ij = -|Q x_i - K x_j|^2 / 2: tokens attend to near tokens."""

    def compare(self, queries: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """Half the squared distances, with a minus sign."""
        apart = queries[..., :, None, :] - keys[..., None, :, :]
        return -0.5 * (apart * apart).sum(axis=-1)
