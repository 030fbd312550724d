"""The parts of the tokens in F approach the boundary of a polytope, or 0, when V is a multiple of
the identity on F.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from attnlab.analysis.hull import LARGEST_RANK, convex_hull
from attnlab.analysis.spectra import leading_splitting
from attnlab.theory import theorems
from attnlab.theory.claims import at_infinity
from attnlab.theory.evidence import (
    Evidence,
    error_of_leading_parts,
    leading_parts,
    range_of,
    resolution_of,
)
from attnlab.theory.hypotheses import paranormal, setting, spd_scores
from attnlab.theory.settled import settled
from attnlab.theory.specimens import random_rest, shuffle_end, specimen
from attnlab.types import Dynamics, Limit
from attnlab.verdicts import Hypothesis, Measured, Theorem

MIXING = np.array([[1.0, 0.0, 0.0], [0.0, 0.5, 0.85], [0.0, 0.85, 2.0]])
"""A with A^2 = M far from respecting F + G = R^2 + R: on F, M is diag(1, 0.97), and (pi_F A)^2
diag(1, 0.25).
"""


@dataclass(frozen=True, eq=False)
class InF:
    """The limits of the parts in F: points (n, m) along the orthonormal basis F (d, m), each known
    to `error`.
    """

    F: np.ndarray
    projector: np.ndarray
    points: np.ndarray
    error: float
    rate: float
    is_coordinate: np.ndarray


def limits_in_F(limit: Limit) -> InF:
    """pi_F of a certified limit, F the eigenspace of the leading eigenvalue; limit.basis spans all
    growing directions.
    """
    rate, parts = leading_splitting(limit.dynamics.weights)
    along = parts.F.T @ parts.projector @ limit.basis  # (m, k)
    size = np.abs(along).sum(axis=0)
    error = limit.error * float(np.linalg.norm(along, axis=0).sum())
    return InF(
        parts.F,
        parts.projector,
        limit.points @ along.T,
        error,
        rate,
        size > 1e-9 * size.max(initial=0.0),
    )


def depth(points: np.ndarray) -> tuple[np.ndarray, int, np.ndarray]:
    """(depth (n,), rank, vertices): how deep each of points (n, m) lies inside their hull; 0 for a
    hull that has no inside.
    """
    hull = convex_hull(points)
    if hull.rank < points.shape[1]:
        return np.zeros(len(points)), hull.rank, hull.vertices
    inside = (points - hull.centre) @ hull.frame
    return (
        np.maximum(-(inside @ hull.normals.T - hull.offsets).max(axis=1), 0.0),
        hull.rank,
        hull.vertices,
    )


def from_boundary(points: np.ndarray) -> tuple[float, dict[str, Any]]:
    """The largest distance of a point (n, m) to the boundary of the hull of all, or to 0 where that
    is nearer; and numbers.
    """
    deep, rank, vertices = depth(points)
    size = np.linalg.norm(points, axis=1)
    # limits of one vertex are equal to rounding, and qhull names one of them
    near = np.linalg.norm(points[:, None] - points[vertices], axis=-1).min(axis=1) <= 1e-9 * max(
        size.max(), 1e-300
    )
    return float(np.minimum(deep, size).max()), {
        "dimension_of_F": points.shape[1],
        "dimension_of_polytope": rank,
        "vertices": len(vertices),
        "tokens_not_at_vertices": int((~near).sum()),
        "tokens_at_0": int((size <= 1e-9 * max(size.max(), 1e-300)).sum()),
    }


def deepest(points: np.ndarray) -> float:
    """How deep one of n points (n, m) of this range could lie inside their hull: up to m + 1 points
    are all vertices.
    """
    return 0.5 * range_of(points) if len(points) > points.shape[1] + 1 else 0.0


def residual(points: np.ndarray, gram: np.ndarray) -> float:
    """max_i |w_i^T gram w_i - max_j w_i^T gram w_j| of points w (n, m), relative to the largest w^T
    gram w.
    """
    products = points @ gram @ points.T  # (n, n)
    own = np.diag(products)
    return float(np.abs(own - products.max(axis=1)).max() / max(np.abs(own).max(), 1e-300))


def grams(dynamics: Dynamics, found: InF) -> tuple[np.ndarray, np.ndarray]:
    """(of S, of S_F), both (m, m): F^T A pi_F^T pi_F A F as in the source, and the block F^T M F
    that the flow itself has.
    """
    M = dynamics.beta * dynamics.weights.M[0]
    values, vectors = np.linalg.eigh(0.5 * (M + M.T))
    A = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    mapped = found.projector @ A @ found.F  # (d, m)
    return mapped.T @ mapped, found.F.T @ M @ found.F


def too_large(dimension: int) -> Measured | None:
    """Why no hull can be listed in F of this dimension, where none can."""
    if dimension <= LARGEST_RANK:
        return None
    needs = (
        f"F has dimension {dimension}, and hulls are listed up to {LARGEST_RANK}: no run of these"
        " weights would decide"
    )
    return Measured(np.nan, 0.0, np.nan, np.nan, "No hull.", needs=needs)


def hypotheses(dynamics: Dynamics, x0: np.ndarray | None) -> Iterator[Hypothesis]:
    """A good triple with multiplicity (Definition 5.1); nothing is asked of the tokens."""
    yield from setting(dynamics)
    yield from spd_scores(dynamics)
    yield from paranormal(dynamics)


def predict(dynamics: Dynamics, x0: np.ndarray | None) -> tuple[str, Mapping[str, Any]]:
    """F, G and the rate; where x0 is known, the polytope that contains the limit."""
    rate, parts = leading_splitting(dynamics.weights)
    m = parts.F.shape[1]
    words = (
        f"The part of z_i in F, dimension {m}, tends to the boundary of a polytope or to 0, like"
        f" e^(-{rate:.4g} t); nothing is said of the part in G, dimension {parts.G.shape[1]}"
    )
    data: dict[str, Any] = {"rate": rate, "F": parts.F, "G": parts.G}
    if x0 is not None:
        data["inside"] = x0 @ parts.projector.T @ parts.F  # (n, m)
        words += ". The polytope lies in the hull of the parts of the first tokens in F"
    return words + ".", data


def measure(evidence: Evidence) -> Measured:
    """How far the limits in F are from the boundary of their hull, or 0; both residuals of the set
    S beside it.
    """
    limit, dynamics = evidence.limit, evidence.run.dynamics
    if not limit.certified:
        return settled_in_F(evidence, _words)
    found = limits_in_F(limit)
    refused = too_large(found.points.shape[1])
    if refused is not None:
        return refused
    worst, details = from_boundary(found.points)
    source, block = grams(dynamics, found)
    details["residual_of_S"], details["residual_of_S_F"] = (
        residual(found.points, source),
        residual(found.points, block),
    )
    return at_infinity(
        # the distance to a boundary moves with the point and with the hull
        evidence,
        worst,
        error=2.0 * found.error + 1e-9 * evidence.scale,
        rate=found.rate,
        is_coordinate=found.is_coordinate,
        details=details,
        what=(
            f"{_words(worst, details)}; residual of S_F {details['residual_of_S_F']:.2g}, of S"
            f" {details['residual_of_S']:.2g}"
        ),
    )


def _words(worst: float, numbers: Mapping[str, Any]) -> str:
    trivial = numbers["dimension_of_polytope"] < numbers["dimension_of_F"]
    return (
        f"Every limit in F is within {worst:.2g} of the boundary of the polytope of"
        f" {numbers['vertices']} vertices, or of 0"
        + (", trivially: it has no inside in F" if trivial else "")
    )


def settled_in_F(
    evidence: Evidence,
    words: Callable[[float, Mapping[str, Any]], str],
    details: Mapping[str, Any] | None = None,
) -> Measured:
    """The same at the end of a run, where no limit is certified. On F, V = lambda: pi_F z =
    e^{-lambda t} pi_F x.
    """
    rate, parts = leading_splitting(evidence.run.dynamics.weights)
    refused = too_large(parts.F.shape[1])
    if refused is not None:
        return refused
    rows = parts.F.T @ parts.projector
    inside = leading_parts(evidence.run, rows, rate)[-1]  # (n, m)
    resolution = resolution_of(evidence, inside)
    worst, numbers = from_boundary(inside)
    return settled(
        evidence,
        lambda run: leading_parts(run, rows, rate),
        worst - resolution,
        resolution=resolution,
        rate=rate,
        error=2.0 * error_of_leading_parts(evidence, rows, rate),
        what=words(worst, numbers),
        why=evidence.limit.reason,
        largest=deepest(inside) - resolution,
        details={**(details or {}), **numbers},
    )


theorems.register("polytope_times_subspace")(
    Theorem(
        name="polytope_times_subspace",
        kind="theorem",
        statement=(
            "For Q^T K symmetric positive definite and V = lambda Id on F, lambda > 0, with a"
            " smaller spectral radius on G, there is a bounded polytope in F such that the part in"
            " F of every z_i(t) tends to its boundary in F or to 0, whatever the start."
        ),
        cite=(
            "Geshkovski, Letrouit, Polyanskiy, Rigollet, arXiv:2305.05465v6, section 5, theorem 5.2"
        ),
        errata=(
            "The proof bounds remainders with pi_F A e^{tV} z = e^{lambda t} pi_F A z, which needs"
            " A = (Q^T K)^{1/2} to respect F + G, so its set S, made with pi_F A, is not"
            " established. What the flow has in the end is the block M_FF: S_F = {w : w^T M w ="
            " max_j w^T M v_j}. Both residuals are in the details; generic data break S and keep"
            " S_F. The verdict rests on the conclusion alone."
        ),
        hypotheses=hypotheses,
        predict=predict,
        measure=measure,
        holds=lambda: specimen(np.diag([1.0, 1.0, -0.5]), n=15, t_end=9.0, M=MIXING @ MIXING),
        breaks=lambda: specimen(
            np.diag([1.0, 1.0, -0.5]), n=6, t_end=2.0, M=np.diag([1.0, -1.0, 1.0])
        ),
        short=lambda: specimen(np.diag([1.0, 1.0, -0.5]), n=15, t_end=1.0, M=MIXING @ MIXING),
        spoil=shuffle_end,
        nonsense=random_rest,
    )
)
