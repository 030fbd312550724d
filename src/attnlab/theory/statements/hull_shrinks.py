"""The convex hull of the rescaled tokens never grows when every V_h is a non-negative multiple of
the identity.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from attnlab.analysis.distances import diameter
from attnlab.analysis.hull import FLAT, convex_hull, directions, hull_violation, support
from attnlab.theory import theorems
from attnlab.theory.claims import all_times, each_time
from attnlab.theory.evidence import Evidence, range_of
from attnlab.theory.hypotheses import fact, has_averages, moved_by_values, positive, small
from attnlab.theory.specimens import random_tokens, specimen, with_states
from attnlab.types import Dynamics, Trajectory
from attnlab.verdicts import Hypothesis, Measured, Theorem

LARGEST_RANK = 4
"""Facets are listed where tokens span at most this many dimensions; above, support functions in
many directions are compared.
"""

DIRECTIONS = 256


def hypotheses(dynamics: Dynamics, x0: np.ndarray | None) -> Iterator[Hypothesis]:
    """V_h = c_h I with c_h >= 0, not all 0. Nothing is asked of Q, K, the mask, the tokens, or the
    size of a layer.

    z_i' = sum_h c_h sum_j P^h_ij (z_j - z_i) with rows of P^h that are non-negative and sum to 1.
    Layers: with c = sum_h c_h, z_i^+ = (z_i + dt sum_h c_h sum_j P^h_ij z_j) / (1 + dt c), a convex
    combination for EVERY dt > 0.
    """
    yield fact("attention whose rows sum to 1", has_averages(dynamics))
    yield moved_by_values(dynamics)
    yield fact("no feed-forward part", dynamics.feedforward.is_none)
    V = dynamics.weights.full_V  # (h, d, d)
    factors = np.trace(V, axis1=1, axis2=2) / V.shape[1]  # (h,)
    size = float(np.linalg.norm(V))
    off = (
        float(np.linalg.norm(V - factors[:, None, None] * np.eye(V.shape[1]))) / size
        if size > 0
        else 0.0
    )
    yield small(
        (
            "V is a multiple of the identity"
            if len(V) == 1
            else "every V_h is a multiple of the identity"
        ),
        off,
    )
    if len(V) > 1:
        least = float(factors.min())
        yield Hypothesis("no factor is negative", least, ">= 0", least >= 0.0)
    yield positive("the sum of the factors is positive", float(factors.sum()), 0.0)


def predict(dynamics: Dynamics, x0: np.ndarray | None) -> tuple[str, Mapping[str, Any]]:
    """The statement, and the box that the tokens never leave where x0 is known."""
    words = (
        "The convex hull of the rescaled tokens z never grows: every later hull lies inside every"
        " earlier one"
    )
    if x0 is None:
        return words + ".", {}
    return f"{words}, and all inside the hull of the first tokens.", {
        "lower": x0.min(axis=0),
        "upper": x0.max(axis=0),
    }


def outward(z: np.ndarray) -> tuple[float, int, str]:
    """(how far a token leaves the hull of the saved time before it, or the first hull; at which
    saved time; how it was seen).
    """
    excess, how = excess_by_time(z)
    return float(excess.max()), 1 + int(excess.argmax()), how


def excess_by_time(z: np.ndarray) -> tuple[np.ndarray, str]:
    """(how far a token leaves an earlier hull, (T - 1,); how it was seen); see outward."""
    T, n, d = z.shape
    if min(d, n - 1) <= LARGEST_RANK:
        first = convex_hull(z[0])
        excess = [
            max(_leaves(z[k - 1], z[k]), float(hull_violation(first, z[k]).max()))
            for k in range(1, T)
        ]
        return np.array(excess), "facets of the hulls"
    # a random direction hardly sees one token of many move; the direction from the centre to that
    # token does
    chosen = [directions(DIRECTIONS, d), np.eye(d)[:DIRECTIONS], -np.eye(d)[:DIRECTIONS]]
    for tokens in (z[0], z[-1]):
        radial = (tokens - tokens.mean(axis=0))[:DIRECTIONS]
        lengths = np.linalg.norm(radial, axis=1, keepdims=True)
        chosen.append((radial / np.where(lengths > 0, lengths, 1.0))[lengths[:, 0] > 0])
    along = np.concatenate(chosen)
    reach = np.array([support(tokens, along) for tokens in z])  # (T, m)
    excess = (reach[1:] - np.minimum.accumulate(reach, axis=0)[:-1]).max(axis=1)
    return excess, f"support functions in {len(along)} directions"


def _leaves(before: np.ndarray, after: np.ndarray) -> float:
    """The largest distance by which a token of `after` violates a facet of the hull of `before`,
    both (n, d).
    """
    from scipy.spatial import QhullError

    try:
        return float(hull_violation(before, after).max())
    except QhullError:  # merged tokens may be flatter than Qhull accepts, yet not flat
        along = directions(DIRECTIONS, before.shape[1])
        return float((support(after, along) - support(before, along)).max())


def measure(evidence: Evidence) -> Measured:
    """How far a token leaves an earlier hull, relative to the range of the tokens and 0 then."""
    z = evidence.z
    what = (
        "How far a token z leaves the hull of an earlier time, relative to the range of the tokens"
        " and 0 then"
    )
    if len(z) < 2:
        return all_times(evidence, 0.0, resolution=1e-3, error=0.0, what=what)
    size, wide = float(np.abs(z).max()), float(diameter(z[0]))
    excess, how = excess_by_time(z)
    # a token and the hull may each be off by the error of the run, in every coordinate; flat hulls
    # by what counts as flat
    error = (
        2.0 * np.sqrt(z.shape[2]) * (evidence.error + 1e-15) * size
        + FLAT * np.sqrt(z.shape[1]) * wide
    )
    ranges = np.array([range_of(tokens) for tokens in z[1:]])
    worst_at = float(evidence.run.times[1 + int(excess.argmax())])
    return each_time(
        evidence,
        excess,
        np.full(len(excess), float(error)),
        ranges,
        what=f"{what} ({how})",
        details={
            "worst_at": worst_at,
            "diameter_at_start": wide,
            "diameter_at_end": float(diameter(z[-1])),
        },
    )


def _grown_end(run: Trajectory) -> Trajectory:
    """The last tokens moved away from the origin by a tenth."""
    states = run.states.copy()
    states[-1] *= 1.1 * float(np.abs(run.rescaled[0]).max() / np.abs(run.rescaled[-1]).max())
    return with_states(run, states)


theorems.register("hull_shrinks")(
    Theorem(
        name="hull_shrinks",
        kind="theorem",
        statement=(
            "For V = c I, c > 0, t -> conv{z_1(t), ..., z_n(t)} is non-increasing for inclusion,"
            " whatever Q, K, mask and tokens are; also with several heads V_h = c_h I, c_h >= 0,"
            " and for residual layers with any dt > 0, z = (1 + c dt)^{-k} x."
        ),
        cite=(
            "Geshkovski, Letrouit, Polyanskiy, Rigollet, arXiv:2305.05465v6, section 8, proposition"
            " on the convex hull"
        ),
        hypotheses=hypotheses,
        predict=predict,
        measure=measure,
        holds=lambda: specimen(
            np.eye(3), n=20, t_end=6.0, M=[[1.0, 2.0, 0.0], [-1.0, 0.5, 0.0], [0.0, 1.0, -1.0]]
        ),
        breaks=lambda: specimen(np.diag([1.0, 0.5]), t_end=4.0),
        short=lambda: specimen(np.eye(2), t_end=4.0, stepper="euler", dt=0.5, frame="x"),
        spoil=_grown_end,
        nonsense=random_tokens,
        errata=(
            "The source assumes Q^T K symmetric and positive definite; the proof needs neither that"
            " nor t >= 0. Explicit Euler steps of z have the property exactly for c dt <= 1;"
            " residual layers, which step x, for every dt."
        ),
    )
)
