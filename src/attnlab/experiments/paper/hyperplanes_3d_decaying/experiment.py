"""A simple leading eigenvalue in space, the others with negative real part: tokens approach two
parallel planes.
"""

from __future__ import annotations

from attnlab.experiments.common.portraits.claims import spoils
from attnlab.experiments.common.portraits.hyperplanes import Hyperplanes
from attnlab.experiments.common.portraits.run import film, film_options

__all__ = ["film", "film_options", "spoils"]

shown = Hyperplanes(
    "hyperplanes_3d_decaying",
    n=40,
    d=3,
    noun="planes",
    what="exp(−tV) x approach two parallel planes",
    remark=" Off most are tokens that change their leader late, along their plane.",
)

specs, compute, claims, figures = shown.specs, shown.compute, shown.claims, shown.figures
