"""V = I in the plane: tokens tend to the vertices of a polygon."""

from __future__ import annotations

from attnlab.experiments.common.portraits.claims import spoil_portraits
from attnlab.experiments.common.portraits.polytopes import Polytopes, claims
from attnlab.experiments.common.portraits.run import FILM, film

__all__ = ["claims", "film"]

shown = Polytopes("polytope_2d", n=20, d=2, noun="polygon", starts={"full": 100, "small": 12})

specs, compute, figures = shown.specs, shown.compute, shown.figures
spoils, film_options = spoil_portraits(), FILM
