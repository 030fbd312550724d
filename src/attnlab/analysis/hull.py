"""Convex hulls of tokens, also of degenerate sets, and support functions for dimensions where no
hull can be enumerated.

Limit polytopes may be a point, a segment or a polygon in space, so a hull is computed inside the
affine span of its points; `rank` is the dimension of that span. Qhull lists facets as simplices;
only true edges are returned (a cube has 12, not 18).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from attnlab.analysis import followed, observables, over_leading_axes
from attnlab.analysis.under_way import ValueAt, time_by_time
from attnlab.displayed import Displayed, short_repr
from attnlab.starts import sphere
from attnlab.types import Trajectory

FLAT = 1e-9
"""Points within this fraction of the set's size of a plane lie in it."""

LARGEST_RANK = 8
"""The number of facets of n random points grows like n^{rank / 2}: beyond this, hulls do not fit in
memory.
"""


@dataclass(frozen=True, eq=False)
class Hull(Displayed):
    """The convex hull of points (n, d), as indices into them.

    vertices (v,), ascending    rank, the affine dimension    volume, 0 where rank < d
    simplices (f, rank), which make up the boundary inside the affine span; flat facets consist of
    several centre (d,), frame (d, rank), normals (f, rank), offsets (f,): the hull is {centre +
    frame a : normals a <= offsets}
    """

    points: np.ndarray
    vertices: np.ndarray
    rank: int
    volume: float
    simplices: np.ndarray
    centre: np.ndarray
    frame: np.ndarray
    normals: np.ndarray
    offsets: np.ndarray
    __repr__ = short_repr

    @property
    def facets(self) -> np.ndarray:
        """The simplices (f, d) of the boundary; none where rank < d, since such a hull has no
        inside.
        """
        d = self.points.shape[1]
        return self.simplices if self.rank == d else np.empty((0, d), dtype=int)

    @cached_property
    def edges(self) -> np.ndarray:
        """The pairs (m, 2) of vertices joined by an edge: those whose common facets contain no
        third vertex.
        """
        if self.rank < 2:
            return self.vertices[None, :] if self.rank == 1 else np.empty((0, 2), dtype=int)
        corners = (self.points[self.vertices] - self.centre) @ self.frame  # (v, rank)
        slack = np.abs(corners @ self.normals.T - self.offsets)  # (v, f)
        on_facet = slack <= FLAT * np.abs(corners).max()
        # every edge is a side of some simplex; a diagonal of a flat facet is one too, but that
        # facet has more than two corners
        numbers = np.searchsorted(self.vertices, self.simplices)
        sides = np.unique(
            np.concatenate(
                [numbers[:, pair] for pair in itertools.combinations(range(self.rank), 2)]
            ),
            axis=0,
        )
        is_edge = [on_facet[:, on_facet[i] & on_facet[j]].all(axis=1).sum() == 2 for i, j in sides]
        return self.vertices[sides[is_edge]]


def convex_hull(points: Any) -> Hull:
    """The convex hull of points (n, d), whatever their affine dimension up to 8."""
    points = np.array(points, dtype=float)
    if points.ndim != 2 or points.size == 0 or not np.isfinite(points).all():
        raise ValueError(
            f"A hull needs an array (n, d) of finite points, n >= 1, got shape {points.shape}."
        )
    centre, frame = _affine_span(points)
    rank = frame.shape[1]
    if rank > LARGEST_RANK:
        raise ValueError(
            f"These points span {rank} dimensions, and hulls can be listed up to {LARGEST_RANK}. "
            "Compare support functions instead: support(points, directions(256, d))."
        )
    inside = (points - centre) @ frame  # (n, rank)
    if rank == 0:
        simplices, normals, offsets, volume = (
            np.empty((0, 0), dtype=int),
            np.empty((0, 0)),
            np.empty(0),
            0.0,
        )
        vertices = np.array([0])
    elif rank == 1:
        ends = np.array([inside[:, 0].argmin(), inside[:, 0].argmax()])
        normals, offsets = np.array([[-1.0], [1.0]]), inside[ends, 0] * [-1.0, 1.0]
        simplices, vertices, volume = ends[:, None], np.sort(ends), float(np.ptp(inside))
    else:
        simplices, normals, offsets, volume = _qhull(inside)
        vertices = np.unique(simplices)
    return Hull(
        points,
        vertices,
        rank,
        volume if rank == points.shape[1] else 0.0,
        simplices,
        centre,
        frame,
        normals,
        offsets,
    )


def _affine_span(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(centre (d,), frame (d, rank)), orthonormal columns; the identity where the points span
    everything: nothing is rotated.
    """
    centre = points.mean(axis=0)
    _, sizes, axes = np.linalg.svd(points - centre, full_matrices=False)
    # differences of points carry the rounding of the points themselves
    rounding = 16 * np.finfo(float).eps * np.abs(points).max() * np.sqrt(len(points))
    rank = int(np.sum(sizes > max(FLAT * sizes[0], rounding)))
    return centre, np.eye(points.shape[1]) if rank == points.shape[1] else axes[:rank].T


def _qhull(inside: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """(simplices (f, rank), outward unit normals (f, rank), offsets (f,), volume) of points that
    span their space, rank >= 2.
    """
    from scipy.spatial import ConvexHull

    # Qhull's tolerances are for numbers near 1; a power of two changes no digit
    size = 2.0 ** np.floor(np.log2(np.abs(inside).max()))
    hull = ConvexHull(inside / size)
    simplices, equations = np.sort(hull.simplices, axis=1).astype(int), hull.equations
    with np.errstate(over="ignore", under="ignore"):  # a volume may leave the range: inf, or 0
        volume = float(hull.volume * size ** inside.shape[1])
    return simplices, equations[:, :-1], -size * equations[:, -1], volume


def hull_violation(hull_points: Any, points: Any) -> np.ndarray:
    """How far each of points (..., d) lies outside the hull of hull_points (n, d) -> (...): 0 or
    less inside.

    The largest violation of a facet inequality with unit normal, or the distance from the hull's
    affine span where larger.
    """
    hull = hull_points if isinstance(hull_points, Hull) else convex_hull(hull_points)
    offset = np.asarray(points, dtype=float) - hull.centre
    inside = offset @ hull.frame  # (..., rank)
    facets = (
        (inside @ hull.normals.T - hull.offsets).max(axis=-1)
        if hull.rank
        else np.zeros(offset.shape[:-1])
    )
    if hull.rank == hull.centre.size:
        return facets
    return np.maximum(facets, np.linalg.norm(offset - inside @ hull.frame.T, axis=-1))


def distance_to_hull(points: Any, point: Any) -> float:
    """How far a point (d,) is from the hull of points (n, d), in any dimension; 0 inside.

    The nearest point of the hull is sum_j l_j p_j with l >= 0 and sum_j l_j = 1. It follows from
    least squares without that sum: with y_j = p_j - point, minimal |sum_j m_j y_j|^2 + (sum_j m_j -
    1)^2 over m >= 0 has l = m / sum_j m_j, since the best length of m for a given l leaves r^2 / (1 +
    r^2), with r = |sum_j l_j y_j|.
    """
    from scipy.optimize import nnls

    away = np.asarray(points, dtype=float) - np.asarray(point, dtype=float)
    size = float(np.abs(away).max())
    if size == 0.0:
        return 0.0
    away = away / size
    m, _ = nnls(np.vstack([away.T, np.ones(len(away))]), np.append(np.zeros(away.shape[1]), 1.0))
    return float(np.linalg.norm(m @ away) / m.sum()) * size


def support(points: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """max_i <u, p_i> for points p (..., n, d) and each u of directions (m, d) -> (..., m): the hull
    seen from m sides.
    """
    return (np.asarray(points, dtype=float) @ np.asarray(directions, dtype=float).T).max(axis=-2)


def directions(count: int, d: int, rng: Any = 0) -> np.ndarray:
    """Unit vectors (count, d), uniform on the sphere; the same ones each time unless another rng is
    given.
    """
    return sphere(count, d, rng=rng)


@observables.register("hull_volume")
@time_by_time()
def observe_hull_volume(run: Trajectory) -> ValueAt:
    """The volume of the hull of the tokens z (x on the sphere), (*batch, T); d = 1, 2 or 3."""
    if run.d > 3:
        raise ValueError(
            f"The observable hull_volume is for d <= 3, this run has d = {run.d}. Observe the"
            " diameter instead."
        )
    tokens = followed(run)
    return lambda at: over_leading_axes(
        lambda points: convex_hull(points).volume, tokens[..., at, :, :]
    )


def plain_facet_count(points: np.ndarray) -> int:
    """Return the number of triangles that bound the hull of points (m, 3), by trying all triples.

    A triple counts if all other points are on one side of its plane.
    """
    count = 0
    for triple in itertools.combinations(range(len(points)), 3):
        a, b, c = points[list(triple)]
        heights = np.delete((points - a) @ np.cross(b - a, c - a), triple)
        count += bool((heights > 0).all() or (heights < 0).all())
    return count
