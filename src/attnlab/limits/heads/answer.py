"""The Limit of several heads, and how it is said."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from attnlab.displayed import count_words
from attnlab.limits.allowance import Allowance
from attnlab.limits.certificate import LEAST_MARGIN
from attnlab.limits.heads.attempt import Freeze
from attnlab.limits.heads.certificate import end_in_classes
from attnlab.limits.heads.classes import classes_of
from attnlab.limits.heads.decision import HeadsDecision, decide_heads, first_of
from attnlab.limits.heads.problem import make_heads_problem
from attnlab.limits.heads.state import heads_state
from attnlab.limits.reasons import SHARED, sentence
from attnlab.limits.replicas import PUSH
from attnlab.limits.state import start_digest
from attnlab.limits.undecided import undecided
from attnlab.types import Dynamics, Limit


def heads_limit(
    dynamics: Dynamics,
    x0: np.ndarray,
    begin: float,
    times: np.ndarray,
    allowance: Allowance,
    common: dict[str, Any],
    M_error: np.ndarray | None = None,
) -> Limit:
    """The Limit of one start x0 (n, d), which are the tokens at the time `begin`; Refused where it
    is not covered. M_error: of beta Q^T K, (h, d, d).
    """
    problem = make_heads_problem(dynamics, x0, M_error)
    return limit_in_closed_form(
        problem, end_in_classes, "heads", x0, begin, times, allowance, common
    )


def limit_in_closed_form(
    problem: Any,
    freeze: Freeze,
    way: str,
    x0: np.ndarray,
    begin: float,
    times: np.ndarray,
    allowance: Allowance,
    common: dict[str, Any],
) -> Limit:
    """The Limit of a problem whose flow has a closed form once attention is Boolean. way: the name
    of its check.
    """
    began = time.perf_counter()
    decision = decide_heads(problem, freeze, x0, allowance, times - begin)
    one, number = decision.original, np.unique(problem.same_as, return_inverse=True)[1]
    (n, d), tokens = x0.shape, problem.tokens
    z = np.full((len(times), n, d), np.nan)
    for index, state in one.path.items():
        z[index] = problem.unwound(state, begin)[number]
    z = np.where(np.isfinite(z), z, np.nan)
    stats = {
        "seconds": time.perf_counter() - began,
        "kind": decision.kind,
        "condition": float(decision.condition),
        "steps": one.steps,
        "log_size": one.log_size,
        "work": allowance.used,
    }
    own = {
        "x0": problem.unwound(x0, begin) if begin else x0,
        "t": one.t + begin,
        "times": times,
        "z": z,
        "path": z @ problem.basis,
    }
    shared = {**common, **own, "stats": stats}
    if decision.grade == "undecided":
        return undecided(shared, n, problem.basis, _obstacle(problem, decision, begin, allowance))
    assert one.frozen is not None
    frozen = one.frozen
    first = tokens[first_of(frozen.kind)][number]
    labels = np.unique(first, return_inverse=True)[1]
    named = frozen.leader.copy()
    for other in decision.replicas:
        assert other.frozen is not None
        named[other.frozen.leader != frozen.leader] = -1
    by_head = np.where(named >= 0, tokens[named], -1)[:, number]  # (H, n)
    leaders = np.where((by_head == by_head[0]).all(axis=0), by_head[0], -1)
    given = np.where(problem.same_head[:, None] >= 0, by_head[problem.same_head], -1)
    reason = _proved(problem, decision, int(labels.max()) + 1, n, begin)
    return Limit(
        labels=labels,
        leaders=leaders,
        head_leaders=given if len(problem.M) > 1 else None,
        basis=problem.basis,
        points=(problem.unwound(decision.points @ problem.basis.T, begin) @ problem.basis)[number],
        error=decision.error * problem.shrunk(begin),
        grade=decision.grade,
        reason=reason,
        certificate=_certificate_text(problem, decision, reason, begin),
        state=heads_state(
            problem,
            (one, *decision.replicas),
            begin,
            start_digest(problem.dynamics, shared["x0"]),
            way,
        ),
        **shared,
    )


def _obstacle(problem: Any, decision: HeadsDecision, begin: float, allowance: Allowance) -> str:
    """Why it is undecided, with head, row and pair."""
    names, one = [int(token) for token in problem.tokens], decision.original
    where = ""
    if decision.row >= 0 and decision.kind in ("close limits", "replicas disagree"):
        where = f" Open: the limit of token {names[decision.row]}."
    elif decision.row >= 0 and decision.column >= 0 and one.leader is not None:
        given = int(np.argmax(problem.same_head == decision.head))
        leader, rival = names[one.leader[decision.head, decision.row]], names[decision.column]
        where = (
            f" Open: whether token {names[decision.row]} follows token {leader} or token {rival} in"
            f" head {given}."
        )
    return (
        f"Undecided ({decision.kind}) at t = {one.t + begin:.4g}:"
        f" {sentence(decision.kind, allowance, SHARED)}.{where}"
    )


def _proved(problem: Any, decision: HeadsDecision, count: int, n: int, begin: float) -> str:
    one = decision.original
    assert one.frozen is not None
    found, count_of = one.frozen, np.bincount(problem.same_as, minlength=n)[problem.tokens]
    mixed, classes = int(count_of[found.is_mixed].sum()), len(classes_of(found.leader))
    between = ""
    if mixed:
        between = (
            f", {mixed} of them with heads that choose different classes and a limit between these"
        )
    kinds = f"{classes} {'class' if classes == 1 else 'classes'} of leaders"
    where = f"in {len(problem.M)} heads with different scores "
    if len(problem.M) == 1:
        where, kinds = "", count_words(classes, "leader")
    text = (
        f"Certified at t = {one.t + begin:.4g}: {where}{count_words(n, 'token')} follow"
        f" {kinds} and have {count_words(count, 'limit')}{between}. In no head does a gap between a"
        " row's leader and another token ever close again. Two perturbed replicas, computed"
        " otherwise, agree"
    )
    return f"{text}{'' if decision.grade == 'exact' else ' on labels and points, up to who leads inside a class'}."


def _certificate_text(problem: Any, decision: HeadsDecision, reason: str, begin: float) -> str:
    """What was proved, from which state, with which margins."""
    one, frozen, names = decision.original, decision.original.frozen, problem.tokens
    assert frozen is not None
    H, m = frozen.leader.shape
    classes, (values, growing) = classes_of(frozen.leader), problem.describe_values()
    shown = [" ".join(str(names[token]) for token in row) for row in classes[:8]]
    pairs = H * m * (m - 1) // (2 if problem.is_causal else 1)
    token, inside = frozen.errors
    lines = [
        reason,
        "",
        f"V_h                  {values}",
        f"growing directions   {growing}",
        (
            f"state certified      t = {one.t + begin:.6g}, log max|x| = {one.log_size:.4g}, from"
            " the softmax flow itself"
        ),
        (
            "classes              leaders head by head:"
            f" {'; '.join(shown)}{'; ...' if len(classes) > 8 else ''}"
        ),
        (
            f"gaps                 all {pairs} stay above G e^(mu s) for s >= 0, mu ="
            f" {problem.mu:.4g}, G = {frozen.margin:.4g} (at least {LEAST_MARGIN:g} + log n + log"
            " max|x|)"
        ),
        (
            f"error of the state   {token:.2g} absolute, {inside:.2g}"
            " inside a class; in every partial sum"
        ),
        (
            f"replicas             start pushed by +-{PUSH:g}, tolerance and times of looking"
            f" changed: same answer; perturbations are magnified {decision.condition:.2g} times"
        ),
        f"error of the points  {decision.error:.2g}",
        f"grade                {decision.grade}",
    ]
    return "\n".join(lines)
