"""Rescaled tokens tend to the vertices, and a few further points, of a polytope when V = I and Q^T
K is positive definite.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from attnlab.analysis.hull import convex_hull, hull_violation
from attnlab.analysis.spectra import identity_margins
from attnlab.theory import theorems
from attnlab.theory.claims import at_infinity
from attnlab.theory.evidence import Evidence
from attnlab.theory.hypotheses import positive_multiple_of_identity, setting, spd_scores
from attnlab.theory.specimens import random_rest, shuffle_end, specimen
from attnlab.types import Dynamics
from attnlab.verdicts import Hypothesis, Measured, Theorem

LISTED = 16
"""The set S is listed for d <= 3 and polytopes of at most this many vertices."""

LARGEST_RANK = 4
"""Vertices are listed where the limits span at most this many dimensions. The residual needs no
vertices.
"""


def hypotheses(dynamics: Dynamics, x0: np.ndarray | None) -> Iterator[Hypothesis]:
    """V = c I, c > 0 (V = I with the clock ct), beta Q^T K symmetric and positive definite; nothing
    is asked of the tokens.
    """
    yield from setting(dynamics)
    yield from positive_multiple_of_identity(dynamics)
    yield from spd_scores(dynamics)


def predict(dynamics: Dynamics, x0: np.ndarray | None) -> tuple[str, Mapping[str, Any]]:
    """The statement with its rate, and what bounds the polytope where x0 is known."""
    c = identity_margins(dynamics.weights)["factor"]
    words = (
        "Every z_i tends to 0 or to the boundary of one convex polytope K: to a point u of K with"
        " u^T M u = max u^T M v over its vertices v, M = beta Q^T K; approached like"
        f" e^(-{c:.4g} t)"
    )
    data: dict[str, Any] = {"rate": c}
    if x0 is not None:
        data |= {
            "lower": x0.min(axis=0),
            "upper": x0.max(axis=0),
            "most_limits": len(np.unique(x0, axis=0)),
        }
        words += "; K lies inside the hull of the first tokens"
    return words + ".", data


def residuals(points: np.ndarray, M: np.ndarray, size: float) -> np.ndarray:
    """How far each of points u (m, d) is from the plane that bounds their hull in the direction M
    u: (m,), 0 on S.

    r(u) = max_v u^T M v - u^T M u, over the vertices v or, the same, over all points; divided by |M
    u| it is a length. Points within `size` of 0 are 0, which is in S.
    """
    normals = points @ M.T  # (m, d)
    beyond = (normals @ points.T).max(axis=1) - np.sum(normals * points, axis=1)
    lengths = np.linalg.norm(normals, axis=1)
    is_origin = np.linalg.norm(points, axis=1) <= size
    return np.where(is_origin, 0.0, beyond / np.where(lengths > 0, lengths, 1.0))


def special_points(vertices: np.ndarray, M: np.ndarray, tolerance: float = 1e-9) -> np.ndarray:
    """S = {u in K : u^T M u = max_j u^T M v_j}, K the hull of vertices v (m, d): (s, d), the
    vertices that are in it first.

    u lies inside a simplex of vertices on which <M u, .> is constant, so u is the M-orthogonal
    projection of 0 on its affine hull: all simplices are tried, and a projection is kept when it is
    in its simplex and no vertex is beyond it.
    """
    m, d = vertices.shape
    scale = float(np.einsum("ij,jk,ik->i", vertices, M, vertices).max())
    length = float(np.abs(vertices).max())
    if length == 0.0:
        return vertices[:1].copy()
    found: list[np.ndarray] = []
    for count in range(1, min(m, d + 1) + 1):
        for chosen in itertools.combinations(range(m), count):
            corners = vertices[list(chosen)]
            sides = corners[1:] - corners[0]  # (count - 1, d)
            gram = sides @ M @ sides.T
            if count > 1 and np.linalg.eigvalsh(gram)[0] <= 1e-12 * scale:
                # a flat simplex: a smaller one, or another of the same face, has its points
                continue
            inner = np.linalg.solve(gram, -sides @ M @ corners[0]) if count > 1 else np.zeros(0)
            u = corners[0] + inner @ sides
            is_inside = inner.min(initial=0.0) >= -tolerance and inner.sum() <= 1.0 + tolerance
            is_new = all(np.abs(u - other).max() > 1e-6 * length for other in found)
            if is_inside and is_new and (vertices @ M @ u).max() <= u @ M @ u + tolerance * scale:
                found.append(u)
    return np.array(found)


def measure(evidence: Evidence) -> Measured:
    """How far the certified limits are from S, as the largest distance to the plane that must bound
    K at each of them.
    """
    limit, dynamics = evidence.limit, evidence.run.dynamics
    rate = identity_margins(dynamics.weights)["factor"]
    if not limit.certified:
        return at_infinity(evidence, 0.0, error=0.0, what="", rate=rate)
    M = dynamics.beta * dynamics.weights.M[0]
    _, first = np.unique(limit.labels, return_index=True)
    points = limit.limits[first]  # (m, d)
    off = (
        limit.error * float(np.linalg.norm(limit.basis, 2)) * np.sqrt(points.shape[1])
    )  # of one point, as a length
    values = residuals(points, M, off)
    at = int(values.argmax())
    # u and v are both off; u in M u turns the normal: by |M| off / |M u|, over a lever of the size
    # of K
    lever = (
        np.linalg.norm(points - points[at], axis=1).max()
        * np.linalg.norm(M, 2)
        / max(np.linalg.norm(M @ points[at]), 1e-300)
    )
    error = off * (2.0 + (lever if values[at] > 0 else 0.0))
    is_low = min(points.shape[1], len(points) - 1) <= LARGEST_RANK
    details = _describe(points, limit.leaders, limit.labels, M, off) if is_low else {}
    vertices = f", {details['vertices']} of them vertices" if details else ""
    return at_infinity(
        evidence,
        float(values[at]),
        error=float(error),
        rate=rate,
        details=details,
        what=(
            f"{len(points)} limits{vertices}, each within {values[at]:.2g} of the plane that bounds"
            " K there"
        ),
    )


def _describe(
    points: np.ndarray, leaders: np.ndarray, labels: np.ndarray, M: np.ndarray, off: float
) -> dict[str, Any]:
    """The polytope of the limits: its vertices, whose leaders are at them, and S where it can be
    listed.
    """
    hull = convex_hull(points)
    at_vertex = np.isin(labels, hull.vertices)
    led = np.unique(labels[at_vertex & (leaders == np.arange(len(leaders)))])
    # inside the polytope as a set of its own dimension; of a single point there is no inside
    depth = -hull_violation(hull, points) if hull.rank == points.shape[1] else np.zeros(len(points))
    inner = np.flatnonzero((depth > off) & (np.linalg.norm(points, axis=1) > off))
    said: dict[str, Any] = {
        "vertices": len(hull.vertices),
        "dimension": hull.rank,
        "polytope": points[hull.vertices],
        "vertices_without_a_leader": len(hull.vertices) - len(led),
        "inside_and_not_0": len(inner),
    }
    if points.shape[1] <= 3 and len(hull.vertices) <= LISTED:
        S = special_points(points[hull.vertices], M)
        nearest = np.linalg.norm(points[:, None] - S[None], axis=2)  # (m, s)
        said |= {
            "S": S,
            "S_occupied": len(np.unique(nearest.argmin(axis=1))),
            "distance_to_S": float(nearest.min(axis=1).max()),
        }
    return said


theorems.register("polytope")(
    Theorem(
        name="polytope",
        kind="theorem",
        statement=(
            "For V = c I, c > 0, and Q^T K = M symmetric positive definite the hull of z(t) tends"
            " to a convex polytope K with vertices v_j, and every z_i(t) to a point of the finite"
            " set S = {u in K : u^T M u = max_j u^T M v_j}, which contains the vertices and is"
            " contained in the boundary of K and 0."
        ),
        cite=(
            "Geshkovski, Letrouit, Polyanskiy, Rigollet, arXiv:2305.05465v6, section 3, theorem 3.1"
            " (full form in section 8)"
        ),
        hypotheses=hypotheses,
        predict=predict,
        measure=measure,
        holds=lambda: specimen(np.eye(2), n=16, t_end=8.0, M=[[1.0, 0.3], [0.3, 0.7]]),
        breaks=lambda: specimen(np.eye(2), t_end=3.0, M=[[1.0, 1.0], [-1.0, 1.0]]),
        short=lambda: specimen(np.eye(2), n=16, t_end=0.5, M=[[1.0, 0.3], [0.3, 0.7]]),
        spoil=shuffle_end,
        nonsense=random_rest,
    )
)
