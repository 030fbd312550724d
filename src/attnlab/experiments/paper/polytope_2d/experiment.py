"""V = I in the plane: tokens tend to the vertices of a polygon."""

from __future__ import annotations

from attnlab.experiments.common.portraits.claims import spoils
from attnlab.experiments.common.portraits.polytopes import Polytopes
from attnlab.experiments.common.portraits.run import film, film_options

__all__ = ["film", "film_options", "spoils"]

shown = Polytopes("polytope_2d", n=20, d=2, noun="polygon", starts={"full": 100, "small": 12})

specs, compute, claims, figures = shown.specs, shown.compute, shown.claims, shown.figures
