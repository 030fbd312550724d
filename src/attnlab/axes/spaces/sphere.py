"""The unit sphere."""

from __future__ import annotations

import numpy as np

from attnlab.axes.spaces import spaces

TOLERANCE = 1e-8
"""The tolerance of the norm of a start on the sphere. Within it, the start is divided by its
norm.
"""


@spaces.register("sphere")
class Sphere:
    """Tokens are on the unit sphere. The velocity is projected on its tangent space. There is no
    z.
    """

    is_linear = False
    is_unit_sphere = True

    def check(self, x: np.ndarray) -> np.ndarray:
        """The tokens (..., n, d) over their norms, which must be 1."""
        with np.errstate(over="ignore"):  # 1e308 has norm inf, and is refused
            norms = np.linalg.norm(x, axis=-1, keepdims=True)
        worst = np.abs(norms - 1.0).max()
        if worst > TOLERANCE:
            raise ValueError(
                f"On the sphere every token must have norm 1, but one is off by {worst:.3g}. "
                "Divide first: x0 / np.linalg.norm(x0, axis=-1, keepdims=True)."
            )
        return x / norms

    def project(self, x: np.ndarray, velocity: np.ndarray) -> np.ndarray:
        """The velocity without its part along x."""
        return velocity - (velocity * x).sum(axis=-1, keepdims=True) * x

    def retract(self, x: np.ndarray) -> np.ndarray:
        """The tokens over their norms."""
        return x / np.linalg.norm(x, axis=-1, keepdims=True)
