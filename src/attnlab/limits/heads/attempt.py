"""One attempt: integrate the softmax flow until the certificate passes, or nothing helps.

There is no hand-over. Tokens are hi + lo and the integrator passes changes of leader at any size
that double precision can time, so that late ones, before the class condition holds, need no events.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from attnlab.limits.allowance import Allowance
from attnlab.limits.attempt import LONGEST
from attnlab.limits.heads.certificate import find_doubt, margin_of
from attnlab.limits.heads.classes import Frozen, find_map, freeze
from attnlab.limits.heads.flow import HeadsFlow
from attnlab.limits.heads.problem import HeadsProblem
from attnlab.limits.settings import BOOLEAN_GAP, CHECKS, Settings
from attnlab.types import Status


@dataclass(eq=False)
class HeadsAttempt:
    """What one attempt found. kind: "certified", or one word for what stands in the way, at `head`,
    `row` and `column`.
    """

    kind: str = "work"
    t: float = 0.0
    head: int = -1
    row: int = -1
    column: int = -1
    frozen: Frozen | None = None
    leader: np.ndarray | None = None  # (H, m), the last maps known, over different tokens
    tolerance: float = 0.0
    mixed_size: np.ndarray | None = (
        None  # (d,): of the tokens when rows were last mixed, or leaders not in classes
    )
    start_size: np.ndarray | None = None
    log_size: float = 0.0
    steps: int = 0
    path: dict[int, np.ndarray] = field(
        default_factory=dict
    )  # number of a time asked for -> z, (m, d)


def heads_attempt(
    problem: HeadsProblem,
    x0: np.ndarray,
    settings: Settings,
    allowance: Allowance,
    times: np.ndarray,
) -> HeadsAttempt:
    """Follow the tokens x0 (n, d) to the end. times (T,) are those at which z is wanted."""
    out, flow = HeadsAttempt(), HeadsFlow(problem, x0, settings, allowance)
    out.tolerance, out.start_size = flow.tolerance, flow.start_size
    piece = 1.0 / (CHECKS * problem.rate)
    duration = piece * (1.0 - settings.offset)
    while True:
        wanted = _missing(times, flow.t, flow.t + duration, out)
        status, states = flow.advance(duration, times[wanted] - flow.t)
        for number, state in zip(wanted, states, strict=False):
            out.path[int(number)] = state * np.exp(-problem.rate * times[number])
        duration = piece
        out.t, out.log_size, out.steps = flow.t, flow.log_size, flow.steps
        leader, gap, rival = flow.leaders()
        out.leader, out.mixed_size = leader, flow.mixed_size
        head, row = np.unravel_index(np.argmin(gap), gap.shape)
        out.head, out.row, out.column = int(head), int(row), int(rival[head, row])
        if status is not Status.OK or allowance.is_over:
            has_stalled = not allowance.is_over and status not in (
                Status.MAX_STEPS,
                Status.INTERRUPTED,
            )
            out.kind = "stalled" if has_stalled else allowance.ended_by
            return out
        is_last = (
            flow.log_size > flow.largest_log_size
            or problem.rate * flow.t > LONGEST * flow.largest_log_size
        )
        map = find_map(problem, leader) if gap.min() > margin_of(problem, flow.log_size) else None
        if map is not None:
            frozen = freeze(
                problem, map, flow.parts(), flow.t, out.tolerance, flow.start_size, flow.mixed_size
            )
            doubt = find_doubt(problem, frozen, allowance)
            if doubt is None:
                out.kind, out.frozen = "certified", frozen
                for number in _missing(times, flow.t, np.inf, out):
                    out.path[int(number)] = frozen.at(problem.rate, float(times[number] - flow.t))
                return out
            out.head, out.row, out.column = doubt
        if is_last:
            out.kind = (
                "not boolean"
                if gap.min() <= BOOLEAN_GAP
                else "growth"
                if map is not None
                else "no classes"
            )
            return out


def _missing(times: np.ndarray, begin: float, end: float, out: HeadsAttempt) -> np.ndarray:
    """The numbers of the times from begin until before end at which z is still wanted."""
    is_missing = (times >= begin) & (times < end)
    is_missing[list(out.path)] = False
    return np.flatnonzero(is_missing)
