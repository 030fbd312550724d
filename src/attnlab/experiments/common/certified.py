"""Certified limits of heads with V_h = I: how many there are, which are corners of their hull, who
holds the corners, and how many starts are left open.

With V_h = I tokens stay in the span of the first ones, so the limit is computed there. A case whose
limit is undecided has a count of 0; `decided` leaves it out, and `certified_in_words` says how many there are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.analysis.clusters import OBSERVED_SCALE, cluster_count
from attnlab.analysis.distances import diameter
from attnlab.analysis.hull import distance_to_hull
from attnlab.analysis.span import in_span
from attnlab.limits import limit
from attnlab.types import Limit, Weights

WORK = 5e6
"""Units of work for one limit. Twenty tokens under sixteen heads take 0.6 to 4.3 million."""

SECONDS = 900.0
"""The time limit for one limit, far beyond what WORK takes on an idle machine: work decides."""

SAME_POINT = 1e-6
"""A limit is a corner where it is farther outside the hull of the others than this part of the
largest coordinate. Limits are certified to about 1e-8 of it.
"""


def certified_limit(weights: Weights, x0: np.ndarray, work: float = WORK) -> tuple[Limit, Any]:
    """Return the limit of heads with V_h = I, its points (m, d), one for each label, or None.

    It is computed in the span of the first tokens x0 (n, d), and the points are those of R^d.
    """
    reduced, start, basis = in_span(weights, x0)
    end = limit(reduced, start, work=work, budget=SECONDS)
    if not end.certified:
        return end, None
    return end, end.limits[np.unique(end.labels, return_index=True)[1]] @ basis.T


def facts_of(end: Limit, points: np.ndarray | None, x0: np.ndarray) -> dict[str, Any]:
    """Return the numbers of a case: its grade, the number of limits and of corners, and who keeps
    these.

    count: limits; 0 where undecided. seen: clusters of the limits, joined by steps of at most 1 %
    of the first diameter. corners: limits that are corners of their hull. kept: the least
    share, over heads, of a corner's attention that stays there for ever.
    """
    if points is None:
        return {"grade": str(end.grade), "count": 0, "seen": 0, "corners": 0, "kept": np.nan}
    is_corner = corners(points)
    return {
        "grade": str(end.grade),
        "count": len(points),
        "seen": int(cluster_count(points, OBSERVED_SCALE * float(diameter(x0)))),
        "corners": int(is_corner.sum()),
        "kept": kept(end, is_corner),
    }


def corners(points: np.ndarray, least: float | None = None) -> np.ndarray:
    """Return which of the points (m, k) are corners of their hull, (m,) booleans.

    least: how far a corner is outside the hull of the others; by default SAME_POINT.
    """
    if len(points) == 1:
        return np.ones(1, bool)
    if least is None:
        least = SAME_POINT * float(np.abs(points).max())
    return np.array(
        [
            distance_to_hull(np.delete(points, i, axis=0), points[i]) > least
            for i in range(len(points))
        ]
    )


def kept(end: Limit, is_corner: np.ndarray) -> float:
    """Return the least share of attention, over heads and tokens of a corner, that stays in the
    corner at t = infinity.

    Attention is Boolean there: a share is 1 or 0. Leaders inside a group may be open; they are left
    out.
    """
    leaders = leaders_of(end)
    at_corner = (leaders >= 0) & is_corner[end.labels]
    stays = end.labels[leaders] == end.labels
    return float(stays[at_corner].min(initial=True))


def leaders_of(end: Limit) -> np.ndarray:
    """Return the token that each token follows in each head, (h, n), or (1, n) for one score; -1 is
    open.
    """
    return end.leaders[None] if end.head_leaders is None else end.head_leaders


def class_points(end: Limit, points: np.ndarray) -> np.ndarray:
    """Return the points (c, d) among the limits at which leaders end. All others are means of
    these.
    """
    leaders = leaders_of(end)
    return points[np.unique(end.labels[leaders[leaders >= 0]])]


def final_attention(end: Limit, P: np.ndarray) -> np.ndarray:
    """Return the mean attention over the heads (n, n) at t = infinity; rows with an open leader are
    those of P.
    """
    leaders = leaders_of(end)
    found = np.array(P)
    rows = np.flatnonzero((leaders >= 0).all(axis=0))
    found[rows] = np.eye(len(found))[leaders[:, rows]].mean(axis=0)
    return found


def distance_to_limits(shape: np.ndarray, end: Limit, points: np.ndarray, first: float) -> float:
    """Return how far the tokens (n, d) of a run are from their limits, over the first diameter."""
    return float(np.linalg.norm(shape - points[end.labels], axis=1).max() / first)


def decided(cases: Any) -> Any:
    """Return the rows of a table whose limit is certified."""
    (rows,) = cases["grade"].dims
    return cases.isel({rows: np.isin(cases["grade"].values, ("exact", "group", "proved"))})


def certified_in_words(cases: Any, what: str = "starts") -> str:
    """Return how many rows of a table are certified, how many undecided ones are left out, and how
    many are runs.
    """
    grades = cases["grade"].values
    known, asked = len(decided(cases)["grade"]), int(np.sum(grades != "run"))
    words = f"{known} of {asked} {what} certified"
    if groups := int(np.sum(grades == "group")):
        words += f" ({groups} of them with the grade group)"
    if known < asked:
        words += f", {asked - known} undecided left out"
    return words + (f", {len(grades) - asked} more are runs" if asked < len(grades) else "")
