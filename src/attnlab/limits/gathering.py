"""Follow tokens until their groups are certified, three times, and say it as a Limit.

This is the way of slides, cycles and rotating leaders: no final leader is needed. The flow of
merged tokens (merged.py) is followed from the start, from two starts pushed apart as well; each
must reach a state from which groups.py certifies the same groups, with points that agree.
"""

from __future__ import annotations

import copy
import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from attnlab.exponential import Exponential
from attnlab.limits.allowance import Allowance
from attnlab.limits.double import pattern
from attnlab.limits.groups import (
    RESOLVED,
    Found,
    certify,
    columns,
    errors,
    is_narrow,
    leading,
    real_points,
    shortened,
    state_of,
)
from attnlab.limits.merged import MergedFlow, Reach, Stuck, make_reach
from attnlab.limits.problem import EPSILON, Problem, Refused, one_head, staying_equal
from attnlab.limits.reach import is_plain
from attnlab.limits.replicas import PUSH, REPLICA_ERROR
from attnlab.limits.state import State, start_digest
from attnlab.types import Dynamics, Limit

RTOLS = (1e-10, 1e-12)
"""Of the flow while it is not stiff; replicas have ten times as much. The second where errors grow
too much with the first.
"""

MERGING = 4.0
"""log|u| from which on tokens are counted from a token of their own group."""

FIRST_LOOK = 12.0
"""log|u| from which on groups are looked for: before, none is resolved."""

NEAR = 0.1
"""Groups nearer to each other than this part of what is resolved may be taken as one."""

ENOUGH = 1e-9
"""Discs this small beside the points are not followed until they are smaller, where they hold for
ever.
"""

COMPARED = 1e-8
"""Replicas are followed until discs are this small: what tokens do inside a group would count as a
difference otherwise.
"""

LARGEST = 27.0
"""log|u| at which even discs that widen again are small enough; beyond, scores inside a group drown
in rounding.
"""

LARGEST_CAUSAL = 33.0
"""The same under the causal mask. Groups come together later there, and what tokens attend to inside
a group does not matter to their discs.
"""

BETWEEN = 1.5
"""By which log|u| grows from one look for several groups to the next under the causal mask, where a
look takes longer.
"""

LONGEST = 100.0
"""Tokens are followed for this many times 1 / lambda_1 without being certified."""

FOR_LEADERS = 0.08, 0.3
"""Of thin heads, the parts of work and of time that goes into the search for final leaders."""

SHARES = (0.5, 0.5, 1.0)
"""Of the work and the time that are left, for the original and each replica."""

AFTER_FIRST = 0.3
"""Once something is certified, this part of what is left may be spent to make it smaller, or to
hold for longer.
"""


HORIZON = (
    "V has an eigenvalue of larger modulus than the leading one, which may move offsets inside a"
    " group until they are seen."
)
CAUSAL_HORIZON = "Scores between groups are followed until then, and one may turn afterwards."
"""Why several groups are certified for a time only."""


@dataclass(eq=False)
class Gathering:
    """What following the flow found: `found`, or the obstacle `kind` at the time t."""

    kind: str
    t: float
    log_size: float
    steps: int
    found: Found | None
    z: dict[int, np.ndarray]  # number of a time asked for -> u (n, r) at that time
    looks: dict[
        int, np.ndarray
    ]  # number of a look, which all attempts take at the same times -> u (n, r)
    last: int = 0  # the look at which `found` was certified


def gather(
    reach: Reach, rtol: float, allowance: Allowance, times: np.ndarray, is_replica: bool = False
) -> Gathering:
    """Follow the flow until groups are certified; the original goes on for a while to make errors
    smaller.
    """
    flow = MergedFlow(reach, rtol, allowance)
    lead = leading(reach)
    fastest, piece = float(reach.rates[lead].real), 1.0 / reach.clock
    out = Gathering("growth", 0.0, 0.0, 0, None, {}, {})
    rest, look, wanted = allowance, 0, [int(at) for at in np.flatnonzero(times >= 0.0)]
    largest, due = (LARGEST_CAUSAL if reach.is_causal else LARGEST), FIRST_LOOK
    try:
        while flow.t * fastest < LONGEST and flow.log_size <= largest:
            look += 1
            asked = [at for at in wanted if times[at] <= look * piece]
            wanted = wanted[len(asked) :]
            out.z.update(_states_between(flow, {at: float(times[at]) for at in asked}))
            if look * piece > flow.t:
                flow.advance(look * piece - flow.t)
            if flow.log_size > MERGING:
                flow.regroup()
            if flow.log_size < FIRST_LOOK:
                continue
            for_several = not reach.is_causal or flow.log_size > min(due, largest)
            if for_several:
                due = flow.log_size + BETWEEN
            found = _look(flow, for_several)
            out.looks[look] = state_of(flow, flow.group).u
            if found is not None:
                if out.found is None:
                    rest = flow.allowance = _part(allowance, AFTER_FIRST)
                out.found, out.last = found, look
                if (
                    _is_within(found, COMPARED)
                    if is_replica
                    else found.horizon is None and _is_within(found, ENOUGH)
                ):
                    break
        if out.found is None and flow.log_size > largest:
            together = state_of(flow, np.zeros(reach.n, np.int64))
            out.kind = (
                "groups"
                if len(flow.first) > 1
                else "turning"
                if is_narrow(together)
                else "not resolved"
            )
    except Stuck as stuck:
        out.kind = str(stuck)
    if rest is not allowance:
        allowance.spend(rest.used)
    out.t, out.log_size, out.steps = flow.t, flow.log_size, flow.steps
    if out.found is not None:
        out.kind = "certified"
    return out


def _states_between(flow: MergedFlow, times: dict[int, float]) -> dict[int, np.ndarray]:
    """The states at the times asked for, by a copy of the flow, so that the flow itself takes the
    same steps whatever is asked for; those that the copy does not reach are left out.
    """
    aside, found = copy.copy(flow), {}
    try:
        for at, t in times.items():
            if t > aside.t:
                aside.advance(t - aside.t)
            found[at] = state_of(aside, aside.group).u
    except Stuck:
        flow.allowance.progress.raise_if_cancelled()
    return found


def _look(flow: MergedFlow, for_several: bool) -> Found | None:
    """What is certified now: all tokens as one group first, which needs no gap; then groups that
    listen to themselves, under the causal mask also those that have one limit as one.
    """
    together = certify(state_of(flow, np.zeros(flow.reach.n, np.int64)))
    if together is not None or not for_several:
        return together
    tried = [flow.group]
    if flow.reach.is_causal:
        tried = [_with_near_ones(flow), flow.group]
    for number, group in enumerate(tried):
        if group.max() > 0 and not any(np.array_equal(group, one) for one in tried[:number]):
            found = certify(state_of(flow, group))
            if found is not None:
                return found
    return None


def _with_near_ones(flow: MergedFlow) -> np.ndarray:
    """The groups of a flow, those that cannot be told apart along the leading coordinate as one."""
    state = state_of(flow, flow.group)
    lead = state.u[:, leading(flow.reach)]
    near = np.abs(lead[:, None] - lead) < NEAR * RESOLVED * np.abs(lead).max()
    near |= flow.group[:, None] == flow.group
    number = np.arange(len(lead))
    for _ in range(len(lead)):  # who is near one that is near
        number = np.where(near, number, len(lead)).min(axis=1)
    return np.unique(number, return_inverse=True)[1].astype(np.int64)


def _is_within(found: Found, part: float) -> bool:
    """Whether discs are at most this large now, beside the points along the leading coordinate."""
    lead = np.array([leading(found.state.reach)])
    size = np.abs(real_points(found.state.reach, found.state.u, lead, found.state.t)).max()
    return bool(errors(found.state, lead, 0.0).max() <= part * size)


def _part(allowance: Allowance, part: float, seconds: float | None = None) -> Allowance:
    """A part of the work and of the seconds that are left, with a flag of its own: the end of a
    part is not the end.
    """
    share = allowance.share(part)
    now = time.monotonic()
    share.end = now + (part if seconds is None else seconds) * max(allowance.end - now, 0.0)
    share.flag = allowance.flag.copy()
    return share


def first_part(problem: Problem, allowance: Allowance) -> Allowance:
    """What may be used to look for final leaders, before groups are looked for."""
    if not is_plain(problem.dynamics):
        return allowance.share(1.0)
    if problem.dynamics.weights.is_factored:
        return _part(allowance, *FOR_LEADERS)
    return _part(allowance, 0.5) if problem.is_turning else allowance.share(1.0)


def as_groups(
    dynamics: Dynamics,
    x0: np.ndarray,
    begin: float,
    times: np.ndarray,
    allowance: Allowance,
    common: dict[str, Any],
) -> tuple[Limit | None, str]:
    """(the Limit of these tokens as groups, None where nothing is certified; then the obstacle, ""
    for other equations).
    """
    if not is_plain(dynamics) or allowance.is_over:
        return None, ""
    try:
        one = one_head(dynamics)
        if begin != 0.0 and common["x0"] is x0:  # no eigen-coordinates have unwound it
            unwound = Exponential(one.weights.total).apply_scaled(-begin, x0, np.zeros(()))
            common = {**common, "x0": np.asarray(unwound)}
        return group_limit(one, x0, begin, times, allowance, common)
    except Refused:
        return None, ""


def group_limit(
    dynamics: Dynamics,
    x0: np.ndarray,
    begin: float,
    times: np.ndarray,
    allowance: Allowance,
    common: dict[str, Any],
) -> tuple[Limit | None, str]:
    """(the Limit of these tokens as groups, None where nothing is certified; then the obstacle).
    May raise Refused.

    x0 are the tokens at the time `begin`; common["x0"] what they are unwound to the time 0.
    """
    began = time.perf_counter()
    same_as = staying_equal(dynamics, x0)
    reach = make_reach(dynamics, x0, same_as)
    if reach.n < 2 or not reach.rates.real.max() > 1e-9 * max(reach.clock, 1e-300):
        return None, "growth"
    push = PUSH * np.abs(x0).max(axis=0) * pattern(x0, same_as)
    if not x0.any():
        return None, "growth"
    kind = "growth"
    for rtol in RTOLS:
        three, kind = _three(dynamics, reach, x0, push, same_as, rtol, times - begin, allowance)
        if not three:
            return None, kind
        said, kind = _said(
            dynamics,
            reach,
            three,
            same_as,
            begin,
            times,
            common,
            time.perf_counter() - began,
            allowance,
        )
        if said is not None:
            return said, kind
    return None, kind


def _three(
    dynamics: Dynamics,
    reach: Reach,
    x0: np.ndarray,
    push: np.ndarray,
    same_as: np.ndarray,
    rtol: float,
    times: np.ndarray,
    allowance: Allowance,
) -> tuple[list[Gathering], str]:
    """The original and two replicas, or none and the obstacle."""
    three: list[Gathering] = []
    for number, sign in enumerate((0.0, 1.0, -1.0)):
        own = reach if sign == 0.0 else make_reach(dynamics, x0 + sign * push, same_as)
        part = _part(allowance, SHARES[number])
        one = gather(
            own,
            rtol if sign == 0.0 else 10.0 * rtol,
            part,
            times if sign == 0.0 else times[:0],
            sign != 0.0,
        )
        allowance.spend(part.used)
        allowance.progress.raise_if_cancelled()
        if one.found is None:
            return [], one.kind
        three.append(one)
    return three, "certified"


def _said(
    dynamics: Dynamics,
    reach: Reach,
    three: list[Gathering],
    same_as: np.ndarray,
    begin: float,
    times: np.ndarray,
    common: dict[str, Any],
    seconds: float,
    allowance: Allowance,
) -> tuple[Limit | None, str]:
    found = [one.found for one in three if one.found is not None]
    first: Found | None = found[0]
    assert first is not None
    if any(not _same_partition(first.state.group, other.state.group) for other in found[1:]):
        return None, "replicas disagree"
    if any(other.last not in three[0].looks for other in three[1:]):
        return None, "not resolved"
    state, lead = first.state, leading(reach)
    size = float(np.abs(real_points(reach, state.u, np.array([lead]), state.t)).max())
    rounding = 100.0 * EPSILON * reach.condition * size
    computed = {  # the error of the state along each coordinate
        int(a): (
            rounding
            + REPLICA_ERROR
            * max(
                float(
                    np.abs(
                        real_points(
                            reach,
                            three[0].looks[other.last] - other.looks[other.last],
                            np.array([a]),
                            other.last / reach.clock,
                        )
                    ).max()
                )
                for other in three[1:]
            )
        )
        for a in first.coordinates
    }
    first = shortened(first, RESOLVED * size - computed[lead])
    if first is None:
        return None, "not resolved"
    span = math.inf if first.horizon is None else first.horizon - state.t
    off = {a: float(errors(state, np.array([a]), span).max()) + own for a, own in computed.items()}
    kept = [a for a in off if off[a] <= RESOLVED * size * (1.0 + 1e-9)]
    if lead not in kept:
        return None, "not resolved"
    error = max(off[a] for a in kept)
    coordinates = np.array(kept)
    number = np.unique(same_as, return_inverse=True)[1]
    group = state.group[number]
    _, starts, labels = np.unique(group, return_index=True, return_inverse=True)
    labels = np.argsort(np.argsort(starts))[labels]
    # from the time `begin`: z counted from 0 is smaller by e^{-rate begin}
    points = real_points(reach, state.discs.centres, coordinates, state.t + begin)[number]
    worst = float(np.exp(-reach.rates[coordinates].real.min() * begin)) if begin else 1.0
    horizon = None if first.horizon is None else first.horizon + begin
    is_alone = np.bincount(group, minlength=int(group.max()) + 1)[group] == 1
    leaders = np.where(is_alone, np.arange(len(group)), -1)
    counts = int(labels.max()) + 1
    kind = (
        ("rotating group" if first.is_turning else "one group")
        if counts == 1
        else ("rotating groups" if first.is_turning else "groups")
    )
    reason = _reason(first, counts, len(group), coordinates, begin)
    z, path = _at_times(reach, three[0], first, coordinates, number, times, begin, horizon)
    stats = {
        "seconds": seconds,
        "kind": kind,
        "steps": three[0].steps,
        "log_size": three[0].log_size,
        "work": allowance.used,
        "growing": int((reach.rates.real > 0.0).sum()),
    }
    held = {
        "begin": float(begin),
        "start_digest": start_digest(common["dynamics"], common["x0"]),
        "same_as": same_as,
        "coordinates": coordinates,
        "t": np.array([one.state.t for one in found]),
        "tolerance": np.array([one.state.tolerance for one in found]),
        "u": np.stack([one.state.u for one in found]),
        "group": np.stack([one.state.group for one in found]),
        "vectors": reach.B @ reach.right,
        "rates": reach.rates,
        "condition": reach.condition,
    }
    return (
        Limit(
            labels=labels,
            leaders=leaders,
            basis=columns(reach, coordinates),
            points=points,
            error=error * worst,
            grade="group",
            reason=reason,
            certificate=_certificate(reason, first, error, allowance),
            t=state.t + begin,
            times=times,
            z=z,
            path=path,
            horizon=horizon,
            stats=stats,
            state=State("groups", held),
            **common,
        ),
        "certified",
    )


def _same_partition(one: np.ndarray, other: np.ndarray) -> bool:
    return bool(np.array_equal(one[:, None] == one[None, :], other[:, None] == other[None, :]))


def _at_times(
    reach: Reach,
    one: Gathering,
    found: Found,
    coordinates: np.ndarray,
    number: np.ndarray,
    times: np.ndarray,
    begin: float,
    horizon: float | None,
) -> tuple[np.ndarray, np.ndarray]:
    """(z (T, n, d), path (T, n, k)); NaN where the flow was not followed so far."""
    n, d = len(number), len(reach.B)
    points = real_points(reach, found.state.discs.centres, coordinates, found.state.t + begin)[
        number
    ]
    z, path = np.full((len(times), n, d), np.nan), np.full((len(times), n, points.shape[1]), np.nan)
    for index, t in enumerate(times):
        if index in one.z:
            path[index] = real_points(reach, one.z[index], coordinates, t)[number]
        elif t >= found.state.t + begin and (horizon is None or t <= horizon):
            path[index] = points
    return z, path


def _reason(found: Found, count: int, n: int, coordinates: np.ndarray, begin: float) -> str:
    reach, rate = found.state.reach, found.state.reach.rates[leading(found.state.reach)]
    grows = int((reach.rates.real > 0.0).sum())
    k = sum(1 if reach.rates[a].imag == 0.0 else 2 for a in coordinates)
    groups = f"{n} tokens gather in {count} group{'s' if count > 1 else ''}"
    along = (
        f"Points are given along {k} of {grows} growing directions, those whose error is small."
        if k < grows
        else ""
    )
    apart = (
        ""
        if count == 1
        else (
            " No token ever attends to another group again."
            if found.horizon is None
            else (" Until then no token attends to another group.")
        )
    )
    who = "each group" if count > 1 else "the group"
    if found.is_turning:
        turn = 2.0 * math.pi / rate.imag
        until, beyond = (
            (
                f"at t = {found.state.t + begin:.4g}",
                " Under the causal mask the first token of a group attends to itself only, and the"
                " others stay as near to it for ever.",
            )
            if found.horizon is None
            else (
                f"up to t = {found.horizon + begin:.4g}",
                " Beyond this horizon nothing is claimed.",
            )
        )
        text = (
            f"Certified {until}: {groups}, and {who} rotates. The leading"
            f" eigenvalues of V are a pair, {rate.real:.4g} ± {rate.imag:.4g} i, so a group of two"
            " tokens or more has no final leader: the lead goes from token to token, once round the"
            f" group in {turn:.3g}.{apart}{beyond}"
        )
    elif found.horizon is not None:
        text = (
            f"Certified up to t = {found.horizon + begin:.4g}: {groups}.{apart}"
            f" {CAUSAL_HORIZON if reach.is_causal else HORIZON} Beyond this horizon nothing is"
            " claimed."
        )
    else:
        text = (
            f"Certified at t = {found.state.t + begin:.4g}: {groups}. Along a real growing"
            f" direction z of {who} stays in its interval, with any leader in it.{apart} Tokens of"
            " a group end within the error of each other. Which of them leads is open."
        )
    return " ".join(
        one for one in (text, along, "Two perturbed replicas, computed otherwise, agree.") if one
    )


def _certificate(reason: str, found: Found, error: float, allowance: Allowance) -> str:
    state, rate = found.state, found.state.reach.rates[leading(found.state.reach)]
    radii = errors(state, np.array([leading(state.reach)]), 0.0).max()
    return "\n".join(
        [
            reason,
            "",
            f"leading eigenvalue   {rate.real:.6g}"
            + (f" ± {rate.imag:.6g} i" if rate.imag else ""),
            (
                f"state certified      t = {state.t:.6g}, log of the largest coordinate"
                f" {state.log_size:.4g}"
            ),
            (
                "groups              "
                f" {', '.join(str(int(size)) for size in np.bincount(state.group))} different"
                " tokens"
            ),
            f"width of a group     {radii:.2g} along the leading direction",
            (
                "horizon             "
                f" {'none: it holds for ever' if found.horizon is None else f'{found.horizon:.6g}'}"
            ),
            f"error of the points  {error:.2g}",
            "grade                group",
        ]
    )
