"""V = I in space: tokens tend to the vertices of a polytope."""

from __future__ import annotations

from attnlab.experiments.common.portraits.claims import spoil_portraits
from attnlab.experiments.common.portraits.polytopes import Polytopes, claims
from attnlab.experiments.common.portraits.run import FILM, film

__all__ = ["claims", "film"]

shown = Polytopes("polytope_3d", n=40, d=3, noun="polytope", starts={"full": 100, "small": 10})

specs, compute, figures = shown.specs, shown.compute, shown.figures
spoils, film_options = spoil_portraits(), FILM
