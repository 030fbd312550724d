"""Three attempts that must agree: the tokens as given, and two replicas, perturbed by opposite
amounts, computed otherwise.

A passing certificate is a statement about the computed state. Where the data sit on the edge
between two limits (exact symmetry, a bounded token) rounding has already chosen a side, and the
certificate passes on the wrong branch. Replicas that are pushed to either side, integrated with
another tolerance and handed over at another time, then end in different limits.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import numpy as np

from attnlab.engine.plan import is_small
from attnlab.engine.threads import one_blas_thread, thread_count, wait_for
from attnlab.limits.allowance import DOING, Allowance
from attnlab.limits.attempt import Attempt, attempt
from attnlab.limits.certificate import Certificate
from attnlab.limits.problem import Problem
from attnlab.limits.settings import Settings

One = TypeVar("One")

PUSH = 1e-11
"""How far replicas are pushed, relative to the largest token in each coordinate."""

REPLICA_ERROR = 10.0
"""The error of the points is at least this many times the difference between the replicas and the
original.
"""

SAME_POINTS = 1e-7
"""Points of replicas with other leaders may differ by this, relative to the largest, to count as
the same limit.
"""

LARGE_RTOL = 1e-11
"""Of large systems, whose steps cost milliseconds: a third fewer of them."""

SHARES = (0.5, 0.25, 0.25)
"""Of the work that is left, for the original and for each replica, whose tolerance is ten times
larger.
"""

LADDER = (
    (10.0, 8.5, False),
    (13.0, 11.5, False),
    (16.0, 14.5, False),
    (10.0, 8.5, True),
    (13.0, 11.5, True),
)
"""log|x| at the hand-over, of the replicas', whether tokens merged below rounding are glued: tried
in this order.
"""


@dataclass(eq=False)
class Decision:
    """What the three attempts say together."""

    grade: str
    kind: str  # "certified", or what stands in the way
    original: Attempt
    points: np.ndarray  # (n, k) of the different tokens; NaN where undecided
    error: float = np.inf
    condition: float = np.inf  # how much a perturbation of the start is magnified in the points
    row: int = -1
    column: int = -1
    # what stood in the way in double precision, where more digits were tried and not finished
    after: str = ""
    digits: int = 16
    replicas: tuple[Attempt, ...] = ()  # of a certified decision


def decide(
    problem: Problem,
    x0: np.ndarray,
    certificate: Certificate,
    allowance: Allowance,
    times: np.ndarray,
) -> Decision:
    """In double precision: climb the ladder until three attempts agree; the best decision on the
    way.
    """
    one = partial(attempt, problem, x0, certificate)
    best: Decision | None = None
    rtol = Settings.rtol if is_small(problem.coordinates.dynamics, len(x0)) else LARGE_RTOL
    for handover, replica_handover, may_glue in LADDER:
        if may_glue and problem.is_turning:
            break  # merged tokens of a pair need not stay merged for ever: see groups.py
        own = Settings(rtol=rtol, handover=handover, may_glue=may_glue)
        replica = replace(
            own, rtol=10.0 * own.rtol, handover=replica_handover, push=PUSH, offset=0.4
        )
        three = three_attempts(one, allowance, times, own, replica)
        found = compare(three, PUSH)
        if best is None or _rank(found) < _rank(best):
            best = found
        is_sharp = found.error <= 1e-9 * max(np.abs(found.points).max(initial=0.0), 1e-300)
        if found.grade == "exact" and (is_sharp or not found.original.events):
            break
        if (
            allowance.is_over
            or any(one.kind == "work" for one in three)
            or all(one.frozen is None for one in three)
        ):
            break  # the flow never became Boolean: another hand-over changes nothing
    assert best is not None
    return best


def decide_carefully(
    problem: Problem,
    x0: np.ndarray,
    certificate: Certificate,
    allowance: Allowance,
    times: np.ndarray,
    digits: int,
) -> Decision:
    """With that many digits until the hand-over, replicas pushed by as little: tells apart what
    double precision cannot.
    """
    one = partial(attempt, problem, x0, certificate)
    own = Settings(rtol=10.0 ** -(digits - 8.0), digits=digits)
    push = 10.0 ** -(digits - 9.0)
    replica = replace(own, rtol=10.0 * own.rtol, handover=8.5, push=push, offset=0.4)
    return compare(three_attempts(one, allowance, times, own, replica), push)


def _rank(decision: Decision) -> tuple[int, float]:
    return ("exact", "group", "undecided").index(decision.grade), decision.error


def three_attempts(
    one: Callable[[Settings, Allowance, np.ndarray], One],
    allowance: Allowance,
    times: np.ndarray,
    own: Settings,
    replica: Settings,
) -> list[One]:
    """What `one` attempt finds, and for two replicas pushed by opposite amounts; side by side."""
    jobs = [(own, times), (replica, times[:0]), (replace(replica, push=-replica.push), times[:0])]
    shares = [allowance.share(part) for part in SHARES]
    # also where velocities are shared out among the cores by themselves: up to n = 1400 they are
    # one task, and much is not shared
    jobs_at_once = min(3, thread_count())
    with (
        one_blas_thread(),
        ThreadPoolExecutor(jobs_at_once, thread_name_prefix="attnlab-limit") as executor,
    ):
        futures: list[Future[One]] = [
            executor.submit(one, settings, share, wanted)
            for (settings, wanted), share in zip(jobs, shares, strict=True)
        ]

        def fraction() -> float:
            if time.monotonic() > allowance.end:
                allowance.flag[0] = 1
            used = [
                min(share.used / share.work, 1.0) if share.work > 0.0 else 1.0 for share in shares
            ]
            return sum(
                max(part, future.done()) for part, future in zip(used, futures, strict=True)
            ) / len(futures)

        # most are decided by the first three attempts; what comes after has a part of the rest
        is_whole = wait_for(
            futures, allowance.flag, fraction, allowance.progress.next_part(0.8), DOING
        )
        allowance.progress.raise_if_cancelled()  # also where the attempts themselves saw it first
        if not is_whole:
            raise KeyboardInterrupt
    allowance.spend(sum(share.used for share in shares))
    return [future.result() for future in futures]


def compare(three: list[Attempt], push: float) -> Decision:
    """The Decision of an original and its two replicas."""
    original = three[0]
    n, k = len(np.unique(original.problem.same_as)), int(original.problem.is_unstable.sum())
    failed = next((one for one in three if one.kind != "certified"), None)
    if failed is not None:
        return Decision(
            "undecided",
            failed.kind,
            original,
            np.full((n, k), np.nan),
            row=failed.row,
            column=failed.column,
        )
    points, errors = zip(*(limit_points(one) for one in three), strict=True)
    apart = max(float(np.abs(points[0] - other).max(initial=0.0)) for other in points[1:])
    error = max(float(errors[0].max(initial=0.0)), REPLICA_ERROR * apart)
    condition = apart / (push * max(np.abs(points[0]).max(initial=0.0), 1e-300))
    grade = "undecided"
    maps = [np.asarray(one.leaders) for one in three]
    if all(np.array_equal(other, maps[0]) for other in maps) and not any(
        one.is_glued for one in three
    ):
        grade = "exact"
    elif all(
        np.array_equal(partition(one), partition(original)) for one in three[1:]
    ) and apart <= SAME_POINTS * max(np.abs(points[0]).max(initial=0.0), 1e-300):
        grade = "group"
    if grade == "undecided":
        differ = [np.flatnonzero(partition(one) != partition(original)) for one in three[1:]]
        row = next((int(rows[0]) for rows in differ if rows.size), -1)
        return Decision(
            "undecided", "replicas disagree", original, np.full((n, k), np.nan), row=row
        )
    pair = _unresolved(original)
    if pair is not None:
        return Decision(
            "undecided",
            "close limits",
            original,
            np.full((n, k), np.nan),
            row=pair[0],
            column=pair[1],
        )
    return Decision(
        grade, "certified", original, points[0], error, condition, replicas=tuple(three[1:])
    )


def limit_points(one: Attempt) -> tuple[np.ndarray, np.ndarray]:
    """(points, errors) (n, k) of a certified attempt: the limits of the roots, in real coordinates
    along the basis of F.
    """
    assert one.frozen is not None
    frozen, problem = one.frozen, one.problem
    rates, scale = problem.rates, 2.0**frozen.shift
    base = frozen.base[frozen.root]
    back_to_0 = np.zeros(
        len(rates), rates.dtype
    )  # shrinking coordinates would overflow, and do not count
    back_to_0[problem.is_unstable] = np.exp(-rates[problem.is_unstable] * frozen.t)
    c = scale * (frozen.Y[base] + frozen.E[frozen.root]) * back_to_0
    error = scale * (frozen.Y_error[base] + frozen.E_error[frozen.root]) * np.abs(back_to_0)
    if problem.from_real is not None:
        back = np.linalg.inv(problem.from_real)
        c, error = (c @ back.T).real, error @ np.abs(back).T
    c, error = c[:, problem.is_unstable], error[:, problem.is_unstable]
    if not frozen.is_alive.all():
        # another token that takes the lead in a group moves its limit, at most by the offset of the
        # glued token that is furthest out
        error = error + 2.0 * frozen.glued_moves()[~frozen.is_alive].max(initial=0.0)
    return c, error


def named_leaders(decision: Decision) -> np.ndarray:
    """The leader of each different token, (m,). -1 in a group whose leader is open: replicas name
    others, or a token was glued, and it may be the one that leads.
    """
    one = decision.original
    assert one.frozen is not None
    root, is_open = one.frozen.root, np.zeros(len(one.frozen.root), dtype=bool)
    for other in (one, *decision.replicas):
        assert other.frozen is not None
        is_open |= ~other.frozen.is_alive | (other.frozen.root != root)
    return np.where(np.isin(root, root[is_open]), -1, root)


def partition(one: Attempt) -> np.ndarray:
    """(n,): for each token the first one with the same limit."""
    assert one.frozen is not None
    _, first, inverse = np.unique(one.frozen.root, return_index=True, return_inverse=True)
    return first[inverse]


def _unresolved(one: Attempt) -> tuple[int, int] | None:
    """Two leaders whose limits cannot be told apart within their errors, if there are any."""
    frozen, is_unstable = one.frozen, one.problem.is_unstable
    assert frozen is not None
    roots = np.unique(frozen.root)
    for r in roots:
        others = roots[roots > r]
        base, bases = frozen.base[r], frozen.base[others]
        is_far = (base != bases)[:, None]
        apart = (
            frozen.E[r] - frozen.E[others] + np.where(is_far, frozen.Y[base] - frozen.Y[bases], 0.0)
        )
        error = (
            frozen.E_error[r]
            + frozen.E_error[others]
            + np.where(is_far, frozen.Y_error[base] + frozen.Y_error[bases], 0.0)
        )
        is_distinct = (np.abs(apart) > error)[:, is_unstable].any(axis=1)
        if not is_distinct.all():
            return int(r), int(others[np.argmin(is_distinct)])
    return None
