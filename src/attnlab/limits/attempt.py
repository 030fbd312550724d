"""One attempt: integrate, hand over to the frozen flow, follow its events, until the certificate
passes or nothing helps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from attnlab.engine.contacts import CONTACT, OVERFLOW, SPENT, STOPPED, TANGENT, kernels
from attnlab.limits.allowance import EVENT, Allowance, price_of_term
from attnlab.limits.certificate import Certificate
from attnlab.limits.double import DoubleFlow
from attnlab.limits.events import OVERLAP, Switch, Undecidable, switch
from attnlab.limits.frozen import Frozen, make_frozen
from attnlab.limits.layers import follow_layers
from attnlab.limits.problem import Problem, vary
from attnlab.limits.settings import BOOLEAN_GAP, CHECKS, LARGEST_GROWTH, Settings
from attnlab.limits.watched import Watched
from attnlab.types import Status

MOST_TERMS = 10**15
"""In one call of find_contact, so that any amount of work is a whole number of terms."""

LONGEST = 3.0
"""Tokens that have not grown after this many times as long as the growth they could reach are given
up.
"""

GLUE_FROM, GLUE = 27.0, 1e-12
"""From this log|x| on, a token that could move no limit by more than this part of it is one with
its root.
"""

MERGED = 10.0 * GLUE
"""The same for tokens that were taken out before: the largest limit, which this is a part of, moves
a little with time.
"""


@dataclass(eq=False)
class Attempt:
    """What one attempt found. kind: "certified", or one word for what stands in the way, at `row`
    and `column`.
    """

    problem: Problem
    kind: str = "work"
    t: float = 0.0
    row: int = -1
    column: int = -1
    frozen: Frozen | None = None
    leaders: np.ndarray | None = None  # the last map known, over different tokens
    events: list[Switch] = field(default_factory=list)
    is_glued: bool = False
    tolerance: float = 0.0  # relative error of each coordinate at the hand-over
    log_size: float = 0.0
    steps: int = 0
    path: dict[int, np.ndarray] = field(
        default_factory=dict
    )  # number of a time asked for -> z in coordinates c, (n, d)


def attempt(
    problem: Problem,
    x0: np.ndarray,
    certificate: Certificate,
    settings: Settings,
    allowance: Allowance,
    times: np.ndarray,
) -> Attempt:
    """Follow the tokens x0 (n, d) to the end. times (T,) are those at which z is wanted."""
    if settings.push != 0.0 and settings.digits is None:  # with more digits V is taken exactly
        problem = vary(problem, math.copysign(1.0, settings.push))
    out = Attempt(problem)
    try:
        flow = make_flow(problem, x0, settings, allowance)
        out.tolerance = flow.tolerance
        frozen = _integrate(problem, flow, certificate, settings, allowance, times, out)
        out.frozen = frozen
        if out.kind != "certified" and problem.dynamics.dt is not None:
            events, path = follow_layers(frozen, certificate, allowance, times)
            out.kind, out.events = "certified", events
            out.path.update(path)
        elif out.kind != "certified":
            _follow(frozen, certificate, settings, allowance, times, out)
    except Undecidable as obstacle:
        out.kind, out.row, out.column = obstacle.kind, obstacle.row, obstacle.column
    if out.frozen is not None:
        out.leaders = out.frozen.leader.copy()
        out.t, out.log_size = out.frozen.t, out.frozen.log_size
    if out.kind == "certified":
        assert out.frozen is not None
        for number in _missing(times, out.frozen.t, np.inf, out):
            out.path[int(number)] = out.frozen.rescaled(float(times[number] - out.frozen.t))[0]
    return out


def make_flow(problem: Problem, x0: np.ndarray, settings: Settings, allowance: Allowance) -> Any:
    """The softmax flow from x0, in the arithmetic that is asked for."""
    if settings.digits is None:
        return DoubleFlow(problem, x0, settings, allowance)
    from attnlab.limits.careful import CarefulFlow

    return CarefulFlow(problem, x0, settings, allowance)


def _integrate(
    problem: Problem,
    flow: Any,
    certificate: Certificate,
    settings: Settings,
    allowance: Allowance,
    times: np.ndarray,
    out: Attempt,
) -> Frozen:
    """The softmax flow until its rows are Boolean, far enough for the closed forms to take over.
    Mostly certified by then.
    """
    dt, piece = problem.dynamics.dt, 1.0 / (CHECKS * problem.fastest)
    if dt is not None:
        piece = dt * max(1, round(piece / dt))
    first, row, duration = 0, -1, piece * (1.0 - settings.offset if dt is None else 1.0)
    while True:
        begin = flow.t
        wanted = _missing(times, begin, begin + duration, out)
        status, states = flow.advance(duration, times[wanted] - begin)
        # z is beyond the largest double along directions that shrink fast, as in `rescaled`
        with np.errstate(over="ignore", invalid="ignore"):
            for number, state in zip(wanted, states, strict=False):
                out.path[int(number)] = state * np.exp(-problem.rates * times[number])
        out.t, out.log_size, out.steps, duration = flow.t, flow.log_size, flow.steps, piece
        is_last = (
            flow.log_size > flow.largest_log_size
            or problem.fastest * flow.t > LONGEST * flow.largest_log_size
        )
        if (
            status is Status.OK
            and not allowance.is_over
            and not is_last
            and row >= 0
            and flow.is_mixed(row)
        ):
            continue  # the row that was the least clear still is not: no need to look at all pairs
        leader, gap, rival = flow.leaders()
        out.leaders = leader
        row = int(np.argmin(gap))
        if status is not Status.OK or allowance.is_over:
            has_stalled = not allowance.is_over and status not in (
                Status.MAX_STEPS,
                Status.INTERRUPTED,
            )
            raise Undecidable(
                "stalled" if has_stalled else allowance.ended_by, row, int(rival[row])
            )
        is_boolean, is_far = gap[row] > BOOLEAN_GAP, flow.log_size >= settings.handover
        cycle = cycle_of(leader) if is_boolean else None
        if cycle is not None and is_far:
            raise Undecidable("cycle", *cycle)
        if is_boolean and cycle is None:
            frozen = make_frozen(problem, flow, leader)
            if frozen.is_idempotent and gap[row] > certificate.margin:
                doubted, _ = certificate.doubt(frozen, allowance, first)
                if doubted < 0:
                    out.kind = "certified"
                    return frozen
                first = doubted
            if is_far:
                return frozen
        if is_last:
            raise Undecidable("not boolean" if not is_boolean else "growth", row, int(rival[row]))


def _follow(
    frozen: Frozen,
    certificate: Certificate,
    settings: Settings,
    allowance: Allowance,
    times: np.ndarray,
    out: Attempt,
) -> None:
    """The event-driven flow, until the certificate passes; or Undecidable."""
    problem, ranks = frozen.problem, certificate.ranks
    find_contact, size_of_M = kernels(problem.is_complex).find_contact, np.abs(problem.M)
    horizon, window, first = 0.5 / problem.clock, 4.0 / problem.clock, 0
    watched = Watched(frozen, certificate, allowance)
    counted, price = np.zeros(2, np.int64), price_of_term(problem.is_complex)
    recent: list[Switch] = []
    while True:
        if frozen.is_idempotent and _has_merged(frozen):
            row, _ = certificate.doubt(frozen, allowance, first)
            if row < 0:
                out.kind = "certified"
                return
            first = row
        if allowance.is_over:
            raise Undecidable(allowance.ended_by, first, -1)
        if problem.fastest * frozen.t > LARGEST_GROWTH:
            raise Undecidable("horizon", first, -1)
        counted[:] = 0, int(min(allowance.left / price, MOST_TERMS))
        what, i, k, s = find_contact(
            problem.rates,
            problem.M,
            size_of_M,
            frozen.leader,
            frozen.root,
            frozen.base,
            frozen.Y,
            frozen.E,
            frozen.D,
            frozen.scaled_bonus,
            ranks.pair,
            ranks.single,
            ranks.pair_turns,
            ranks.single_turns,
            ranks.count,
            frozen.is_alive,
            watched.safe,
            watched.start,
            watched.column,
            window,
            horizon,
            allowance.flag,
            counted,
        )
        allowance.spend(EVENT + price * int(counted[0]))
        if what == OVERFLOW:
            raise Undecidable("growth", int(i), int(k))
        if what in (STOPPED, SPENT):
            raise Undecidable(allowance.ended_by, int(i), int(k))
        for number in _missing(times, frozen.t, frozen.t + s, out):
            out.path[int(number)] = frozen.rescaled(float(times[number] - frozen.t))[0]
        frozen.advance(s)
        watched.safe -= s
        if what == TANGENT:
            raise Undecidable("tie", int(i), int(k))
        if what == CONTACT:
            event = switch(frozen, int(i), int(k), recent)
            out.events.append(event)
            recent = [
                other
                for other in [*recent, event]
                if event.t - other.t < 2 * OVERLAP * max(event.width, other.width)
            ]
            watched.look_again(frozen.subtree(int(i)))
        if settings.may_glue and frozen.log_size > GLUE_FROM:
            moved = _glue(frozen)
            out.is_glued = out.is_glued or bool(moved.any())
            watched.look_again(moved)


def _missing(times: np.ndarray, begin: float, end: float, out: Attempt) -> np.ndarray:
    """The numbers of the times from begin until before end at which z is still wanted."""
    is_missing = (times >= begin) & (times < end)
    is_missing[list(out.path)] = False
    return np.flatnonzero(is_missing)


def _glue(frozen: Frozen) -> np.ndarray:
    """Take out tokens that cannot be told from their root any more. Tokens that attended to one of
    them attend to its root.

    (n,) bool: the tokens that were taken out, or listen to another one now.
    """
    # in each growing coordinate, what the limit would move by if the token took the lead: e^{-rate
    # t} |D|; beside the limit
    moves, size = frozen.glued_moves(), frozen.limit_size()
    followers = frozen.is_alive & (frozen.root != np.arange(frozen.n))
    near = followers & (moves <= GLUE * size).all(axis=1)
    moved = near | near[frozen.leader]
    frozen.is_alive = frozen.is_alive & ~near
    frozen.leader = np.where(moved, frozen.root, frozen.leader)
    return moved


def _has_merged(frozen: Frozen) -> bool:
    """Whether the tokens that were taken out are one with their root. Not so for a time after its
    leader has changed.
    """
    return bool((frozen.glued_moves() <= MERGED * frozen.limit_size())[~frozen.is_alive].all())


def cycle_of(leader: np.ndarray) -> tuple[int, int] | None:
    """Two tokens, one listening to the other, of a cycle in the map of leaders; None where every
    chain ends.
    """
    at = leader
    for _ in range(int(math.log2(len(leader))) + 1):
        at = at[at]
    turning = at[leader[at] != at]
    return (int(turning[0]), int(leader[turning[0]])) if turning.size else None
