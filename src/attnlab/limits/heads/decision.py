"""What three attempts say together: the tokens as given, and two replicas pushed by opposite
amounts and computed otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from attnlab.engine.plan import is_small
from attnlab.limits.allowance import Allowance
from attnlab.limits.heads.attempt import Ending, Freeze, HeadsAttempt, heads_attempt
from attnlab.limits.replicas import LARGE_RTOL, PUSH, REPLICA_ERROR, SAME_POINTS, three_attempts
from attnlab.limits.settings import Settings

LADDER = (Settings.rtol, 1e-14)
"""Tolerances of the original; those of the replicas are ten times larger."""

HELPED_BY_TOLERANCE = ("growth", "close limits")
"""What stands in the way when the errors of late changes of leader are larger than what must be
seen.
"""


@dataclass(eq=False)
class HeadsDecision:
    """The grade, and what it rests on."""

    grade: str
    kind: str  # "certified", or what stands in the way
    original: HeadsAttempt
    points: np.ndarray  # (m, d) of the different tokens; NaN where undecided
    error: float = np.inf
    condition: float = np.inf  # how much a perturbation of the start is magnified in the points
    head: int = -1
    row: int = -1
    column: int = -1
    replicas: tuple[HeadsAttempt, ...] = ()


def decide_heads(
    problem: Any, freeze: Freeze, x0: np.ndarray, allowance: Allowance, times: np.ndarray
) -> HeadsDecision:
    """Three attempts and what they say; once more with a finer tolerance where errors stand in the
    way of the certificate.
    """
    found: HeadsDecision | None = None
    for rtol in LADDER if is_small(problem.coordinates.dynamics, len(x0)) else (LARGE_RTOL,):
        own = Settings(rtol=rtol)
        replica = replace(own, rtol=10.0 * own.rtol, push=PUSH, offset=0.4)
        one = partial(heads_attempt, problem, freeze, x0)
        three = three_attempts(one, allowance, times, own, replica)
        finer = compare_heads(problem, three)
        found = finer if found is None or finer.grade != "undecided" else found
        if found.kind not in HELPED_BY_TOLERANCE or allowance.is_over:
            break
    assert found is not None
    return found


def compare_heads(problem: Any, three: list[HeadsAttempt]) -> HeadsDecision:
    """The HeadsDecision of an original and its two replicas."""
    original = three[0]
    open_points = np.full((len(problem.tokens), problem.basis.shape[1]), np.nan)
    failed = next((one for one in three if one.kind != "certified"), None)
    if failed is not None:
        return HeadsDecision(
            "undecided",
            failed.kind,
            original,
            open_points,
            head=failed.head,
            row=failed.row,
            column=failed.column,
        )
    frozen = [one.frozen for one in three if one.frozen is not None]
    points = [one.points for one in frozen]
    size = max(float(np.abs(points[0]).max(initial=0.0)), 1e-300)
    apart = max(float(np.abs(points[0] - other).max(initial=0.0)) for other in points[1:])
    own = float(frozen[0].points_error.max(initial=0.0))
    error, condition = max(own, REPLICA_ERROR * apart), apart / (PUSH * size)
    groups = [first_of(one.kind) for one in frozen]
    if any(not np.array_equal(one, groups[0]) for one in groups):
        row = next(
            int(np.flatnonzero(one != groups[0])[0]) for one in groups if (one != groups[0]).any()
        )
        return HeadsDecision("undecided", "replicas disagree", original, open_points, row=row)
    is_same = all(np.array_equal(one.leader, frozen[0].leader) for one in frozen)
    if not is_same and apart > SAME_POINTS * size:
        return HeadsDecision("undecided", "replicas disagree", original, open_points)
    pair = close_pair(frozen[0])
    if pair is not None:
        return HeadsDecision(
            "undecided", "close limits", original, open_points, row=pair[0], column=pair[1]
        )
    grade = "exact" if is_same else "group"
    return HeadsDecision(
        grade, "certified", original, points[0], error, condition, replicas=tuple(three[1:])
    )


def first_of(kind: np.ndarray) -> np.ndarray:
    """(m,): for each token the first one of its kind."""
    _, first, inverse = np.unique(kind, return_index=True, return_inverse=True)
    return first[inverse.ravel()]


def close_pair(frozen: Ending) -> tuple[int, int] | None:
    """Two tokens of different kinds whose limits cannot be told apart within their errors, if there
    are any.
    """
    firsts, points, error = np.unique(first_of(frozen.kind)), frozen.points, frozen.points_error
    for number, i in enumerate(firsts):
        others = firsts[number + 1 :]
        apart = np.abs(points[i] - points[others])
        is_distinct = (apart > error[i] + error[others]).any(axis=1)
        if not is_distinct.all():
            return int(i), int(others[np.argmin(is_distinct)])
    return None
