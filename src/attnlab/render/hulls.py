"""Polygons: the convex hull of drawn points, whatever their number and position, and planes cut to
the box of the axes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial import QhullError

from attnlab.analysis.hull import convex_hull


@dataclass(frozen=True, eq=False)
class Outline:
    """ring (m, 2): corners in order, in the plane only. edges (m, 2, d), faces: polygons (k, 3), in
    space only.
    """

    ring: np.ndarray
    edges: np.ndarray
    faces: list[np.ndarray]


def outline(points: np.ndarray) -> Outline:
    """The Outline of the hull of points (n, 2) or (n, 3); flat, thin and single-point hulls have
    what there is of them.
    """
    d = points.shape[1]
    nothing = Outline(np.empty((0, 2)), np.empty((0, 2, d)), [])
    low = points.min(axis=0)
    size = np.ptp(points, axis=0).max()
    if not size > 0:
        return nothing
    try:
        hull = convex_hull(
            (points - low) / size
        )  # to unit size: Qhull's tolerances are for numbers near 1
    except QhullError:
        return nothing  # a picture without its hull is better than none
    corners = points[hull.vertices]
    edges = points[np.asarray(hull.edges, dtype=int).reshape(-1, 2)]
    if d == 2:
        return Outline(corners[_around(corners)], edges, [])
    if hull.rank == 2:
        return Outline(nothing.ring, edges, [corners[_around(corners)]])
    return Outline(nothing.ring, edges, [points[facet] for facet in hull.facets])


def plane_in_box(normal: np.ndarray, level: float, limits: np.ndarray) -> np.ndarray:
    """The polygon (m, 3) in which the plane <normal, z> = level cuts the box of limits (3, 2); m =
    0 where it misses.
    """
    span = limits[:, 1] - limits[:, 0]
    normal, level = normal * span, level - normal @ limits[:, 0]  # in the unit cube
    found = []
    for axis in range(3):
        across = [k for k in range(3) if k != axis]
        for corner in np.ndindex(2, 2):  # the four edges of the cube along this axis
            if normal[axis] == 0.0:
                continue
            point = np.zeros(3)
            point[across] = corner
            point[axis] = (level - normal @ point) / normal[axis]
            if 0.0 <= point[axis] <= 1.0:
                found.append(point)
    if len(found) < 3:
        return np.empty((0, 3))
    corners = np.array(found)
    return limits[:, 0] + span * corners[_around(corners)]


def _around(corners: np.ndarray) -> np.ndarray:
    """The order of the corners of a convex polygon (m, d) around its middle, within its plane."""
    centred = corners - corners.mean(axis=0)
    centred = centred / np.abs(centred).max()
    plane = (
        centred
        if corners.shape[1] == 2
        else centred @ np.linalg.svd(centred, full_matrices=False)[2][:2].T
    )
    return np.argsort(np.arctan2(plane[:, 1], plane[:, 0]))
