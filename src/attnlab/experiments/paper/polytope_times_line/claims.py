"""The claims, and the spoils that break them."""

from __future__ import annotations

import numpy as np

from attnlab.experiments.common.portraits import claims as shared
from attnlab.experiments.common.portraits.claims import spoils
from attnlab.experiments.common.portraits.run import all_vertices, drawn_from, rescaled, values_of
from attnlab.experiments.record import Claim, Data

from .experiment import F, G

__all__ = ["claims", "spoils"]


def claims(data: Data) -> list[Claim]:
    """Theorem 5.2, the free coordinate, and what the published numerics are worth."""
    run, limit = drawn_from(data)
    points = limit.limits @ F.T
    corners = values_of(points)
    return [
        shared.supported(data, "polytope_times_subspace", "The theorem on (boundary of a polytope) × G holds", "theorem 5.2"),
        Claim(text="The parts of the tokens in F end at the vertices of a polygon: limits that are no vertices of their hull.",
              measured=float(0 if all_vertices(corners) else len(corners)), published="the boundary of a polygon, or 0", low=0,
              high=0, because="the theorem allows the boundary and 0; limits inside an edge or at 0 are presumably exceptional"),
        shared.in_special_set(points, np.eye(2), "Every part in F ends in the finite set S, made with the block M_FF"),
        shared.hull_never_grows(rescaled(run) @ F.T, "the parts in F"),
        shared.followers_approach(run, limit, F, -1.0, "In F tokens approach their leader like e^(−t)", "no rate given"),
        shared.followers_approach(run, limit, G, 0.5, "Along G tokens leave their leader like e^(t/2)",
                                  "nothing is claimed along G"),
        shared.share_at_vertices(data, "All limits in F are vertices of the limit polygon"),
        shared.reaches_limit(data),
        shared.agrees(data),
        shared.first_order(data, " The largest errors are along G, where z itself grows."),
    ]
