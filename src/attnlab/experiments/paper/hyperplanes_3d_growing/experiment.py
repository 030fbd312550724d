"""A simple leading eigenvalue in space, the others growing too: two planes at first, and two points in the end."""

from __future__ import annotations

from attnlab.experiments.common.portraits.hyperplanes import Hyperplanes
from attnlab.experiments.common.portraits.run import film, film_options

__all__ = ["film", "film_options"]

shown = Hyperplanes("hyperplanes_3d_growing", n=40, d=3, noun="planes",
                    what="exp(−tV) x approach two planes, and in them two points", words="  Hollow: the two limit points.")

specs, compute, figures = shown.specs, shown.compute, shown.figures
