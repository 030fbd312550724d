"""A simple leading eigenvalue, in the plane: tokens approach two parallel lines."""

from __future__ import annotations

from attnlab.experiments.common.portraits.claims import spoils
from attnlab.experiments.common.portraits.hyperplanes import Hyperplanes
from attnlab.experiments.common.portraits.run import film, film_options

__all__ = ["film", "film_options", "spoils"]

shown = Hyperplanes(
    "hyperplanes_2d", n=20, d=2, noun="lines", what="exp(−tV) x approach two parallel lines"
)

specs, compute, claims, figures = shown.specs, shown.compute, shown.claims, shown.figures
