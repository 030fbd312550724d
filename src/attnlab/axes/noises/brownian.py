"""Independent Brownian motion of every token: dX = drift dt + sqrt(2 / kappa) dW."""

from __future__ import annotations

import math

import numpy as np

from attnlab.axes.noises import noises
from attnlab.checks import positive


@noises.register("brownian")
class Brownian:
    """dX = drift dt + sqrt(2 / kappa) dW, with an independent Brownian motion W for every token."""

    def __init__(self, kappa: float):
        self.kappa = positive("kappa of the noise brownian", kappa)

    def increment(self, rng: np.random.Generator, x: np.ndarray, dt: float) -> np.ndarray:
        """sqrt(2 dt / kappa) times normal numbers."""
        return math.sqrt(2.0 * dt / self.kappa) * rng.standard_normal(x.shape)
