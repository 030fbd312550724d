"""A point at which tokens gather must win in every head, so many heads allow few such points. V_h =
v_h I, v_h > 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from attnlab.engine import simulate
from attnlab.limits.heads.problem import has_different_scores
from attnlab.theory import theorems
from attnlab.theory.claims import at_infinity
from attnlab.theory.evidence import Evidence
from attnlab.theory.hypotheses import fact, positive, setting, small
from attnlab.theory.specimens import random_rest, shuffle_end
from attnlab.types import Dynamics, Limit, Trajectory, Weights
from attnlab.verdicts import Hypothesis, Measured, Theorem


def factors(weights: Weights) -> np.ndarray:
    """v_h of V_h = v_h I, (h,): the mean of the diagonal."""
    return np.asarray(np.trace(weights.full_V, axis1=1, axis2=2) / weights.d)


def hypotheses(dynamics: Dynamics, x0: np.ndarray | None) -> Iterator[Hypothesis]:
    """V_h = v_h I with v_h > 0, at least two of the scores Q_h^T K_h differ. Nothing is asked of
    the tokens.
    """
    yield from setting(dynamics, any_heads=True)
    weights, v = dynamics.weights, factors(dynamics.weights)
    yield fact("heads with different scores", has_different_scores(weights))
    off = np.abs(weights.full_V - v[:, None, None] * np.eye(weights.d)).max() / max(
        float(np.abs(weights.full_V).max()), 1e-300
    )
    yield small("every V_h is a multiple of the identity", float(off))
    yield positive("every V_h = v_h I has v_h > 0", float(v.min()), 0.0)


def predict(dynamics: Dynamics, x0: np.ndarray | None) -> tuple[str, Mapping[str, Any]]:
    """The statement with its rate, and what the number of classes is bounded by where x0 is
    known.
    """
    v = float(factors(dynamics.weights).sum())
    words = (
        "Where attention becomes Boolean: points p_c, one for each class of leaders, with p_c^T"
        " M_h p_c >= p_c^T M_h u for all limits u and every head h, and means of them weighted by"
        f" v_h / v; approached like e^(-{v:.4g} t)"
    )
    data: dict[str, Any] = {"rate": v}
    if x0 is not None:
        data["most_classes"] = len(np.unique(x0, axis=0))
    return words + ".", data


def beyond(points: np.ndarray, others: np.ndarray, M: np.ndarray) -> np.ndarray:
    """How far `others` (k, d) lie beyond the plane through p that is perpendicular to M^T p, for
    each p of points (m, d): (m,).
    """
    normals = points @ M  # (m, d)
    lengths = np.linalg.norm(normals, axis=1)
    most = (normals @ others.T).max(axis=1) - np.sum(normals * points, axis=1)
    return np.asarray(most / np.where(lengths > 0.0, lengths, 1.0))


def measure(evidence: Evidence) -> Measured:
    """The largest distance of a limit beyond a plane that must bound all of them, and of a limit
    from its mean of class points.
    """
    limit, dynamics = evidence.limit, evidence.run.dynamics
    v = factors(dynamics.weights)
    rate = float(v.sum())
    if not limit.certified or limit.head_leaders is None:
        return at_infinity(evidence, 0.0, error=0.0, what="", rate=rate)
    M, limits = dynamics.beta * dynamics.weights.M, limit.limits
    leading = np.unique(limit.head_leaders[limit.head_leaders >= 0])
    classes = limits[leading[np.unique(limit.labels[leading], return_index=True)[1]]]  # (c, d)
    ends = limits[np.unique(limit.labels, return_index=True)[1]]  # (m, d)
    off = limit.error * np.sqrt(limits.shape[1])
    value = max(float(beyond(classes, ends, one).max()) for one in M)
    # u and p are both off; p in M^T p turns the normal, over a lever of the size of what it bounds
    lever = max(
        float(np.linalg.norm(one, 2) / np.linalg.norm(classes @ one, axis=1).min()) for one in M
    )
    error = off * (2.0 + lever * float(np.linalg.norm(ends[:, None] - classes, axis=2).max()))
    value = max(value, _from_means(limit, v / rate) - 2.0 * off)
    return at_infinity(
        evidence,
        value,
        error=error,
        rate=rate,
        details={"classes": len(classes), "means": len(ends) - len(classes)},
        what=(
            f"{len(ends)} limits: {len(classes)} points of classes, which win in all {len(M)} heads"
            f" to within {max(value, 0.0):.2g}, and {len(ends) - len(classes)} means of them"
        ),
    )


def _from_means(limit: Limit, shares: np.ndarray) -> float:
    """How far limits are from the means of the limits of their leaders, weighted by shares (h,)."""
    is_known = (
        (limit.head_leaders >= 0).all(axis=0)
        if limit.head_leaders is not None
        else np.zeros(0, bool)
    )
    if limit.head_leaders is None or not is_known.any():
        return 0.0
    means = np.einsum("h,hnd->nd", shares, limit.limits[limit.head_leaders[:, is_known]])
    return float(np.linalg.norm(means - limit.limits[is_known], axis=1).max())


def _specimen(t_end: float, sign: float = 1.0) -> Trajectory:
    M = np.array([[[1.0, 0.3], [0.3, 0.7]], [[0.6, -0.2], [-0.2, 1.1]]])
    V = np.array([1.0, 0.7 * sign])[:, None, None] * np.eye(2)
    start = np.random.default_rng(33).uniform(-2.0, 2.0, (14, 2))
    return simulate(
        Weights(Q=np.stack([np.eye(2)] * 2), K=M, V=V),
        start,
        t_end=t_end,
        measure_error=True,
        throw=False,
    )


theorems.register("win_in_every_head")(
    Theorem(
        name="win_in_every_head",
        kind="theorem",
        statement=(
            "For V_h = v_h I, v_h > 0, v = sum of v_h: if attention becomes Boolean in every head"
            " and stays so, then for generic data the z_i(t) tend to points p_c, one for each class"
            " of leaders, and to means sum_h (v_h / v) p_{c_h}. Each p_c wins in every head: p_c^T"
            " M_h p_c >= p_c^T M_h u for all limits u and all h, M_h = beta Q_h^T K_h. So each"
            " further head is one more condition on every class, and many heads leave room for few."
        ),
        cite=(
            "docs/limits.md, several heads, for the proof; for the flow, Geshkovski, Letrouit,"
            " Polyanskiy, Rigollet, arXiv:2305.05465v6, section 12"
        ),
        errata=(
            "It is not in the paper, which asks what several heads do. That attention becomes"
            " Boolean is not proved but certified, start by start. More heads have fewer classes on"
            " average only: from one start two heads may end with more than either head alone."
        ),
        hypotheses=hypotheses,
        predict=predict,
        measure=measure,
        holds=lambda: _specimen(6.0),
        breaks=lambda: _specimen(2.0, sign=-1.0),
        short=lambda: _specimen(0.3),
        spoil=shuffle_end,
        nonsense=random_rest,
    )
)
