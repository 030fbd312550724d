"""V = I in space: tokens tend to the vertices of a polytope."""

from __future__ import annotations

from attnlab.experiments.common.portraits.claims import spoils
from attnlab.experiments.common.portraits.polytopes import Polytopes
from attnlab.experiments.common.portraits.run import film, film_options

__all__ = ["film", "film_options", "spoils"]

shown = Polytopes("polytope_3d", n=40, d=3, noun="polytope", starts={"full": 100, "small": 10})

specs, compute, claims, figures = shown.specs, shown.compute, shown.claims, shown.figures
