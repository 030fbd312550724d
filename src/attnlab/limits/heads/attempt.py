"""One attempt: integrate the softmax flow until the certificate passes, or nothing helps.

There is no hand-over. Tokens are hi + lo and the integrator passes changes of leader at any size
that double precision can time, so that late ones, before the class condition holds, need no events.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from attnlab.limits.allowance import Allowance
from attnlab.limits.attempt import LONGEST
from attnlab.limits.heads.flow import HeadsFlow
from attnlab.limits.heads.problem import vary
from attnlab.limits.settings import BOOLEAN_GAP, CHECKS, Settings
from attnlab.types import Status


class Ending(Protocol):
    """The flow in closed form, from a state in which attention is Boolean."""

    @property
    def t(self) -> float:
        """The time of the state."""

    @property
    def log_size(self) -> float:
        """log max |x|."""

    @property
    def parts(self) -> np.ndarray:
        """The tokens as hi and lo, (2, m, d)."""

    @property
    def leader(self) -> np.ndarray:
        """The leaders of each head, (H, m)."""

    @property
    def kind(self) -> np.ndarray:
        """(m,): equal where two tokens have the same limit."""

    @property
    def is_mixed(self) -> np.ndarray:
        """(m,): whether the heads of a token choose leaders with different limits."""

    @property
    def points(self) -> np.ndarray:
        """The limits of z, (m, k)."""

    @property
    def points_error(self) -> np.ndarray:
        """Their errors, (m, k)."""

    @property
    def errors(self) -> tuple[float, float]:
        """The largest error of a token, and of a difference of two that end together."""

    @property
    def margin(self) -> float:
        """G, above which all gaps stay."""

    def find_doubt(self, allowance: Allowance) -> tuple[int, int, int] | None:
        """The (head, row, column) whose gap is shown the least to stay open; None: certified."""

    def rescaled(self, s: float) -> np.ndarray:
        """z of all tokens a time s later, (m, d)."""


Freeze = Callable[[Any, HeadsFlow, np.ndarray, float], Ending | None]
"""From a problem, its flow, leaders (H, m) and the tolerance to an Ending; None where these leaders
have no closed form.
"""


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
    frozen: Ending | None = None
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
    problem: Any,
    freeze: Freeze,
    x0: np.ndarray,
    settings: Settings,
    allowance: Allowance,
    times: np.ndarray,
) -> HeadsAttempt:
    """Follow the tokens x0 (n, d) to the end. times (T,) are those at which z is wanted."""
    moved = vary(problem, math.copysign(1.0, settings.push)) if settings.push else problem
    out, flow = HeadsAttempt(), HeadsFlow(moved, x0, settings, allowance)
    out.tolerance, out.start_size = flow.tolerance, flow.start_size
    dt, piece = problem.dynamics.dt, 1.0 / (CHECKS * problem.fastest)
    if dt is not None:
        piece = dt * max(1, round(piece / dt))
    duration = piece * (1.0 - settings.offset if dt is None else 1.0)
    while True:
        wanted = _missing(times, flow.t, flow.t + duration, out)
        status, states = flow.advance(duration, times[wanted] - flow.t)
        for number, state in zip(wanted, states, strict=False):
            out.path[int(number)] = problem.unwound(state, float(times[number]))
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
            or problem.fastest * flow.t > LONGEST * flow.largest_log_size
        )
        frozen = None
        if gap.min() > problem.margin_at(flow.log_size):
            frozen = freeze(problem, flow, leader, out.tolerance)
        if frozen is not None:
            doubt = frozen.find_doubt(allowance)
            if doubt is None:
                out.kind, out.frozen = "certified", frozen
                for number in _missing(times, flow.t, np.inf, out):
                    out.path[int(number)] = frozen.rescaled(float(times[number] - flow.t))
                return out
            out.head, out.row, out.column = doubt
        if is_last:
            out.kind = (
                "not boolean"
                if gap.min() <= BOOLEAN_GAP
                else "growth"
                if frozen is not None
                else problem.why_open(leader)
            )
            return out


def _missing(times: np.ndarray, begin: float, end: float, out: HeadsAttempt) -> np.ndarray:
    """The numbers of the times from begin until before end at which z is still wanted."""
    is_missing = (times >= begin) & (times < end)
    is_missing[list(out.path)] = False
    return np.flatnonzero(is_missing)
