"""From a question to a Limit: what is trivial, what is refused, what is computed, and how it is
said.
"""

from __future__ import annotations

import dataclasses
import importlib
import time
from typing import Any

import numpy as np

from attnlab.engine.contacts import kernels
from attnlab.engine.doubts import cell_kernels
from attnlab.limits.allowance import Allowance
from attnlab.limits.certificate import make_certificate
from attnlab.limits.closed.answer import closed_limit
from attnlab.limits.closed.problem import (
    is_one_head_with_blocks,
    make_block_problem,
    make_own_problem,
)
from attnlab.limits.gathering import as_groups, first_part
from attnlab.limits.heads.answer import heads_limit
from attnlab.limits.heads.problem import has_different_scores, is_plain
from attnlab.limits.places import is_at_rest, limit_without_growth, resting_limit
from attnlab.limits.problem import Problem, Refused, make_problem
from attnlab.limits.quotient import MOST_TOKENS, Quotient, symmetric_limit
from attnlab.limits.reach import lifted, reach_frame, reduced
from attnlab.limits.reasons import (
    SYMMETRIC_OPEN,
    not_groups,
    obstacle,
    proved,
    proved_symmetric,
    sentence,
)
from attnlab.limits.replicas import Decision, decide, decide_carefully, named_leaders, partition
from attnlab.limits.report import certificate_text
from attnlab.limits.settings import MANY
from attnlab.limits.span import find_span
from attnlab.limits.sphere import sphere_limit
from attnlab.limits.state import frozen_state, start_digest, symmetric_state
from attnlab.limits.symmetry import Symmetry, find_symmetry
from attnlab.limits.trivial import trivial_limit
from attnlab.limits.undecided import undecided
from attnlab.types import Dynamics, Event, Limit, Spec

MOST_CAREFUL, MOST_CAREFUL_COORDINATES = 12, 6
"""Up to this many different tokens and coordinates more digits are tried where double precision
cannot decide.
"""

HELPED_BY_DIGITS = {
    "replicas disagree": (40, 80),
    "close limits": (40,),
    "not boolean": (80,),
    "growth": (80,),
    "stalled": (40,),
    "horizon": (40,),
}
"""What stands in the way, and the digits that may help."""


def make_limit(
    dynamics: Dynamics,
    x0: np.ndarray,
    begin: float,
    times: np.ndarray,
    digits: int | None,
    allowance: Allowance,
    spec: Spec | None,
) -> Limit:
    """The Limit of one start; `begin` is the time at which the tokens are x0."""
    began = time.perf_counter()
    n, d = x0.shape
    common: dict[str, Any] = {"dynamics": dynamics, "x0": x0, "spec": spec}
    if is_at_rest(dynamics):
        return resting_limit(x0, times, common)
    frame = reach_frame(dynamics, x0)
    if frame is not None:
        few, start = reduced(dynamics, x0, frame)
        return lifted(
            make_limit(few, start, begin, times, digits, allowance, None), common, frame, begin
        )
    try:
        if dynamics.geometry.is_unit_sphere:
            return sphere_limit(dynamics, x0, begin, allowance, times, common)
        if has_different_scores(dynamics.weights):
            span = find_span(dynamics, x0)
            if span is None:
                return _of_heads(dynamics, x0, begin, times, allowance, common)
            own = {"dynamics": span.dynamics, "x0": span.start, "spec": None}
            inside = _of_heads(
                span.dynamics, span.start, begin, times, allowance, own, span.M_error
            )
            return span.lifted(inside, common, begin, allowance)
        if is_one_head_with_blocks(dynamics):
            blocks = make_block_problem(dynamics, x0)
            return closed_limit(blocks, x0, begin, times, allowance, common)
        problem = make_problem(dynamics, x0)
    except Refused as refusal:
        groups, why = as_groups(dynamics, x0, begin, times, allowance, common)
        return groups or undecided(
            common,
            n,
            np.zeros((d, 0)),
            f"Undecided (not covered): {refusal}{not_groups(why, allowance)}",
        )
    assert problem.coordinates.inverse is not None
    allowance.progress.raise_if_cancelled()
    if allowance.is_late:  # the eigenvectors alone take seconds for d near 1000
        reason = (
            f"Undecided ({allowance.ended_by}) at t = {begin:.4g}:"
            f" {sentence(allowance.ended_by, allowance)}."
        )
        return undecided(common, n, problem.basis, reason)
    start = x0 @ problem.coordinates.inverse.T
    if begin != 0.0:
        assert problem.coordinates.basis is not None
        unwound = problem.realified(problem.complexified(start) * np.exp(-problem.rates * begin))
        common["x0"] = unwound @ problem.coordinates.basis.T
    if not problem.is_unstable.any():
        return limit_without_growth(problem, x0, times, common)
    found = trivial_limit(problem, start, problem.noise(x0), common, times, begin)
    if found is not None:
        return found
    _compile(problem, allowance)
    certificate = make_certificate(problem)
    small = len(problem.tokens) <= MOST_CAREFUL and d <= MOST_CAREFUL_COORDINATES
    symmetry = find_symmetry(problem, x0) if len(problem.tokens) <= MOST_TOKENS else None
    why = ""
    if digits is None or not small:
        if (
            problem.is_turning and dynamics.weights.is_factored
        ):  # no final leader: do not look for one
            groups, why = as_groups(dynamics, x0, begin, times, allowance, common)
            if groups is not None:
                return groups
        # the rest is for keeping the symmetry, which may decide, or for groups
        part = first_part(problem, allowance) if symmetry is None else allowance.share(0.5)
        decision = decide(problem, x0, certificate, part, times - begin)
        allowance.spend(part.used)
        if (
            decision.grade == "undecided"
            and symmetry is None
            and not (problem.is_turning and dynamics.weights.is_factored)
        ):
            groups, why = as_groups(dynamics, x0, begin, times, allowance, common)
            if groups is not None:
                return groups
    else:
        decision = decide_carefully(problem, x0, certificate, allowance, times - begin, digits)
    quotient = None
    is_open = symmetry is not None and not _keeps(symmetry, decision)
    if is_open and symmetry is not None:
        quotient = symmetric_limit(problem, x0, symmetry, certificate, allowance, digits)
        allowance.progress.raise_if_cancelled()
    if (
        decision.kind in HELPED_BY_DIGITS
        and digits is None
        and small
        and (quotient is None or quotient.kind != "certified")
    ):
        for more in HELPED_BY_DIGITS[decision.kind]:
            careful = decide_carefully(problem, x0, certificate, allowance, times - begin, more)
            if careful.kind in ("work", "budget"):
                decision = dataclasses.replace(
                    decision, kind=careful.kind, after=decision.kind, digits=more
                )
                break
            if careful.grade != "undecided" and (symmetry is None or _keeps(symmetry, careful)):
                decision, digits, quotient = careful, more, None
                break
    common["stats"] = {
        "seconds": time.perf_counter() - began,
        "kind": decision.kind,
        "condition": float(decision.condition),
        "steps": decision.original.steps,
        "log_size": decision.original.log_size,
        "work": allowance.used,
    }
    common["digits"] = digits if digits is not None and small else 16
    if quotient is not None and symmetry is not None:
        return _said_symmetric(
            problem, quotient, symmetry, decision, common, begin, times, allowance, x0
        )
    return _said(problem, decision, common, begin, times, allowance, why)


def _of_heads(
    dynamics: Dynamics,
    x0: np.ndarray,
    begin: float,
    times: np.ndarray,
    allowance: Allowance,
    common: dict[str, Any],
    M_error: np.ndarray | None = None,
) -> Limit:
    """The Limit of several heads with different scores, or Refused. M_error: of beta Q^T K."""
    if is_plain(dynamics):
        return heads_limit(dynamics, x0, begin, times, allowance, common, M_error)
    problem = make_own_problem(dynamics, x0, M_error)
    return closed_limit(problem, x0, begin, times, allowance, common)


def _compile(problem: Problem, allowance: Allowance) -> None:
    """Compile what is needed, or read it from the cache, while the clock stands still: it says
    nothing about this system.
    """
    began = time.monotonic()
    kernels(problem.is_complex)
    importlib.import_module("attnlab.engine.extended")
    if len(problem.tokens) >= MANY:
        importlib.import_module("attnlab.engine.near")
        cell_kernels(problem.is_complex)
    allowance.end += time.monotonic() - began


def _keeps(symmetry: Symmetry, decision: Decision) -> bool:
    """Whether a decision is exact and has the symmetry of the data: then nothing was broken on the
    way, and it stands.
    """
    return decision.grade == "exact" and symmetry.is_equivariant(
        np.asarray(decision.original.leaders)
    )


def _said_symmetric(
    problem: Problem,
    found: Quotient,
    symmetry: Symmetry,
    decision: Decision,
    common: dict[str, Any],
    begin: float,
    times: np.ndarray,
    allowance: Allowance,
    start: np.ndarray,
) -> Limit:
    """The Limit of exactly symmetric data, which are `start` at the time `begin`."""
    tokens, number = np.unique(problem.same_as, return_inverse=True)
    names = [int(token) for token in tokens]
    shared = {**common, "t": found.t + begin, **_tokens_at(problem, {}, number, times, begin)}
    if found.kind != "certified":
        # what stands in the way of the symmetric computation, which is the one that could have
        # answered
        failed = dataclasses.replace(
            decision, grade="undecided", kind=found.kind, row=found.row, column=-1
        )
        reason = (
            f"{obstacle(failed, names, allowance)}"
            f" {SYMMETRIC_OPEN.format(count=len(symmetry.elements))}"
        )
        return undecided(shared, len(number), problem.basis, reason)
    assert found.leaders is not None and found.labels is not None and found.points is not None
    leaders = np.where(found.leaders >= 0, tokens[np.maximum(found.leaders, 0)], -1)[number]
    first = np.array([int(tokens[np.argmax(found.labels == label)]) for label in found.labels])[
        number
    ]
    labels = np.unique(first, return_inverse=True)[1]
    shared["digits"] = found.digits
    reason = proved_symmetric(found, symmetry, int(labels.max()) + 1)
    return Limit(
        labels=labels,
        leaders=leaders,
        basis=problem.basis,
        points=_unwound_from(problem, found.points, begin)[number],
        error=found.error,
        grade="exact",
        reason=reason,
        certificate=reason,
        state=symmetric_state(
            problem, found, start, begin, start_digest(shared["dynamics"], shared["x0"])
        ),
        **shared,
    )


def _said(
    problem: Problem,
    decision: Decision,
    common: dict[str, Any],
    begin: float,
    times: np.ndarray,
    allowance: Allowance,
    why_no_groups: str,
) -> Limit:
    """The Limit that a Decision amounts to. why_no_groups: the obstacle where groups were looked
    for, too.
    """
    tokens, number = np.unique(problem.same_as, return_inverse=True)
    names, one = [int(token) for token in tokens], decision.original
    events = tuple(
        Event(event.t + begin, names[event.row], names[event.before], names[event.after])
        for event in one.events
    )
    n = len(number)
    shared = {
        **common,
        "events": events,
        "t": one.t + begin,
        **_tokens_at(problem, one.path, number, times, begin),
    }
    if decision.grade == "undecided":
        reason = obstacle(decision, names, allowance) + not_groups(why_no_groups, allowance)
        return undecided(shared, n, problem.basis, reason)
    points = _unwound_from(problem, decision.points, begin)
    first = tokens[partition(one)][number]  # (n,): the first token with the same limit
    labels = np.unique(first, return_inverse=True)[1]
    assert one.frozen is not None and one.leaders is not None
    named = named_leaders(decision)
    leaders = np.where(named >= 0, tokens[named], -1)[number]
    reason = proved(decision, problem, int(labels.max()) + 1, n)
    return Limit(
        labels=labels,
        leaders=leaders,
        basis=problem.basis,
        points=points[number],
        error=decision.error,
        grade=decision.grade,
        reason=reason,
        certificate=certificate_text(problem, decision, reason, names),
        state=frozen_state(
            problem,
            (one, *decision.replicas),
            begin,
            start_digest(shared["dynamics"], shared["x0"]),
        ),
        **shared,
    )


def _unwound_from(problem: Problem, points: np.ndarray, begin: float) -> np.ndarray:
    """Points of z = e^{-tV} x for tokens that start at the time `begin` instead of 0."""
    if begin == 0.0:
        return points
    full = np.zeros((len(points), len(problem.rates)))
    full[:, problem.is_unstable] = points
    return problem.realified(problem.complexified(full) * np.exp(-problem.rates * begin))[
        :, problem.is_unstable
    ]


def _tokens_at(
    problem: Problem,
    known: dict[int, np.ndarray],
    number: np.ndarray,
    times: np.ndarray,
    begin: float,
) -> dict[str, np.ndarray]:
    """times, z (T, n, d) and its projection path (T, n, k) at the times asked for; NaN where the
    flow was not followed so far.
    """
    y = np.full((len(times), len(number), len(problem.rates)), np.nan)
    assert problem.coordinates.basis is not None
    with np.errstate(over="ignore", invalid="ignore"):
        for index, c in known.items():
            y[index] = problem.realified(c * np.exp(-problem.rates * begin))[number]
        z = y @ problem.coordinates.basis.T
    return {
        "times": times,
        "z": np.where(np.isfinite(z), z, np.nan),
        "path": y[:, :, problem.is_unstable],
    }
