"""Where nothing grows: the places follow from weights and first tokens alone, by one of the proofs
in limits/places.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from attnlab.limits.verification import ways
from attnlab.limits.verification.equation import EPSILON, OneHead, one_head
from attnlab.limits.verification.follows import check_no_events
from attnlab.limits.verification.record import Failed, require
from attnlab.limits.verification.steps import Step
from attnlab.types import Dynamics, Limit

NOT_CHECKED = ("z at the times asked for.",)


class Rest(NamedTuple):
    """Where the tokens must come to rest, (n, d), which of them are at one place, (n,), the error,
    and why.
    """

    places: np.ndarray
    groups: np.ndarray
    error: float
    why: str


@ways.register("places")
def verify(limit: Limit) -> Iterator[Step]:
    """The steps of the check of places."""
    yield Step("proof", lambda: _rest(limit).why, None, NOT_CHECKED)
    yield Step("what the limit says", lambda: _check_limit(limit, _rest(limit)))
    yield Step("changes of leader", lambda: check_no_events(limit))


def _rest(limit: Limit) -> Rest:
    dynamics, x0 = limit.dynamics, limit.x0
    n = len(x0)
    own = np.unique(x0 + 0.0, axis=0, return_inverse=True)[1].ravel()
    if dynamics.feedforward.is_none and not dynamics.weights.full_V.any():
        return Rest(x0, own, 0.0, "V = 0, so no token moves.")
    head = one_head(dynamics)
    V, scores = head.V, head.scores
    origin, together = np.zeros_like(x0), np.zeros(n, int)
    if _decays(V, dynamics.dt):
        if (x0 == x0[0]).all():
            return Rest(
                origin, together, 0.0, "all tokens are equal, and every eigenvalue of V decays."
            )
        if not scores.any() and dynamics.mask.sees_all:
            rounding = 4.0 * EPSILON * n * float(np.abs(x0).max())
            return Rest(
                x0 - x0.mean(axis=0),
                own,
                rounding,
                "all scores are 0, and every eigenvalue of V decays: the mean tends to 0.",
            )
    if _falls(dynamics, head):
        return Rest(
            origin,
            together,
            0.0,
            "Q^T K is symmetric positive definite and M V + V^T M negative definite: all tend"
            " to 0.",
        )
    raise Failed("None of the proofs of places covers these weights and first tokens.")


def _decays(V: np.ndarray, dt: float | None) -> bool:
    """Whether every eigenvalue decays, beyond rounding; for layers, 1 + dt lambda."""
    values, vectors = np.linalg.eig(V)
    blur = (
        8.0 * EPSILON * float(np.linalg.norm(V, 2)) * float(np.linalg.cond(vectors))
        if _is_full(V)
        else 0.0
    )
    if dt is not None:
        return bool((np.abs(1.0 + dt * values) < 1.0 - dt * blur).all())
    return bool((values.real < -blur).all())


def _is_full(V: np.ndarray) -> bool:
    return bool((V - np.diag(np.diagonal(V))).any())


def _falls(dynamics: Dynamics, head: OneHead) -> bool:
    """M = beta Q^T K symmetric positive definite and M V + V^T M negative definite, by Cholesky
    factors of shifted matrices.
    """
    V, Q, K, scores = head
    if dynamics.dt is not None or not (np.array_equal(Q, K) or np.array_equal(scores, scores.T)):
        return False
    size = abs(dynamics.beta) * np.abs(Q).T @ np.abs(K)
    return _is_positive(scores, size) and _is_positive(-(scores @ V), size @ np.abs(V))


def _is_positive(A: np.ndarray, size: np.ndarray) -> bool:
    """Whether the symmetric part of A is positive definite by more than the rounding of products
    that add up to `size`.
    """
    rounding = 15.0 * EPSILON * len(A) * float(np.linalg.norm(size, 2))
    try:
        np.linalg.cholesky((A + A.T) / 2.0 - rounding * np.eye(len(A)))
    except np.linalg.LinAlgError:
        return False
    return True


def _check_limit(limit: Limit, rest: Rest) -> str:
    n, d = limit.x0.shape
    require(
        limit.basis.shape == (d, 0) and limit.points.shape == (n, 0),
        "Nothing grows, so F = {0}, and there are no points in it.",
    )
    require(
        limit.places is not None and limit.places.shape == (n, d),
        "There must be one place per token.",
    )
    _, first, inverse = np.unique(rest.groups, return_index=True, return_inverse=True)
    labels = np.unique(first[inverse], return_inverse=True)[1]
    require(
        np.array_equal(limit.labels, labels),
        "The labels do not say which tokens rest at one place.",
    )
    require((limit.leaders == -1), "Where nothing grows leaders are open, and the limit names one.")
    require(limit.grade == "group", "Certified places have the grade group.")
    off = float(np.abs(limit.places - rest.places).max())
    require(
        0.5 * rest.error <= limit.error <= 2.0 * rest.error,
        f"The error is given as {limit.error:.2g}, and rounding makes {rest.error:.2g}.",
    )
    require(
        off <= limit.error,
        f"A place is {off:.2g} away from where it must be; the error is {limit.error:.2g}.",
    )
    return (
        f"{int(labels.max()) + 1} place{'s' if labels.max() else ''} of {n} tokens, within"
        f" {limit.error:.2g}."
    )
