"""A simple leading eigenvalue in space, the others growing too: two planes at first, and two points
in the end.
"""

from __future__ import annotations

import numpy as np

from attnlab.experiments.common.portraits.claims import spoils
from attnlab.experiments.common.portraits.hyperplanes import Hyperplanes
from attnlab.experiments.common.portraits.run import (
    at_time,
    drawn_from,
    film,
    film_options,
    values_of,
)
from attnlab.experiments.record import Claim, Data

__all__ = ["film", "film_options", "spoils"]

shown = Hyperplanes(
    "hyperplanes_3d_growing",
    n=40,
    d=3,
    noun="planes",
    what="exp(−tV) x approach two planes, and in them two points",
    words="  Hollow: the two limit points.",
)

specs, compute, figures = shown.specs, shown.compute, shown.figures


def claims(data: Data) -> list[Claim]:
    """Theorem 4.2, and that the planes are not the end."""
    run, limit = drawn_from(data)
    found = shown.claims(data)
    points = len(values_of(limit.limits)) if limit.basis.shape[1] == run.d else float("nan")
    in_time = np.linalg.norm(at_time(run, 5.0) - limit.limits, axis=1)
    found[1] = Claim(
        text=(
            "Here all eigenvalues of V grow, so the whole of z converges, and tokens end at two"
            " points, one in either plane: number of limit points."
        ),
        measured=float(points),
        published="planes are shown",
        low=2,
        high=2,
        because=(
            "conjecture 4.3 with k = d = 3 allows three, and a third would be a token with φ₁* = 0 "
            "for ever, presumably exceptional"
        ),
        differs=(
            f"The published picture ends at T = 5, when a token is still {in_time.max():.2g} from"
            f" its limit ({np.median(in_time):.2g} in the median): inside the planes tokens move"
            " like e^(−0.099 t), so the planes are a stage, and not the end."
        ),
    )
    return found
