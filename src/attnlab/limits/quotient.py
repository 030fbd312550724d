"""Limits of exactly symmetric data: the certificate where rows may be tied between mirror images of
one leader.

A row i whose leader A is tied with its images under the stabiliser of i listens to their mean: the
projection v_i of A on what that stabiliser leaves fixed. v_i grows like e^{tV} v_i, x_i - v_i is
constant, and i ends at the limit of v_i, which need not be a vertex. A token fixed by nothing but 0
stays 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from attnlab.limits.abel import Part, partial_sums
from attnlab.limits.allowance import Allowance
from attnlab.limits.arithmetic import doubles
from attnlab.limits.careful import CarefulFlow
from attnlab.limits.certificate import LEAST_MARGIN, ROUNDING, Certificate
from attnlab.limits.problem import Problem
from attnlab.limits.settings import CHECKS, Settings
from attnlab.limits.symmetry import Symmetry
from attnlab.types import Status

MOST_TOKENS = 64
"""With a symmetry; the careful arithmetic is slow."""

PRECISIONS = (16, 40, 80)
DOING = "looking for the limit that keeps the symmetry"


@dataclass(eq=False)
class Quotient:
    """What the symmetric computation found about the different tokens."""

    kind: str
    t: float
    row: int = -1
    column: int = -1
    leaders: np.ndarray | None = None  # (n,): -1 where several are tied, or nobody
    points: np.ndarray | None = None  # (n, k)
    labels: np.ndarray | None = None  # (n,)
    error: float = math.inf
    digits: int = 16
    rtol: float = 0.0
    tokens: np.ndarray | None = (
        None  # (parts, n, d): the tokens at t as sums of doubles, with all their digits
    )
    replicas: tuple[Quotient, ...] = ()


def symmetric_limit(
    problem: Problem,
    x0: np.ndarray,
    symmetry: Symmetry,
    certificate: Certificate,
    allowance: Allowance,
    digits: int | None,
) -> Quotient:
    """The limit with the symmetry kept, confirmed by a replica that is pushed symmetrically and
    computed otherwise.
    """
    found = Quotient(allowance.ended_by, 0.0)
    for precision in PRECISIONS if digits is None else (digits,):
        rtol = 1e-12 if precision <= 16 else 10.0 ** -(precision - 8.0)
        own = Settings(rtol=rtol, digits=precision)
        found = _certified(problem, x0, symmetry, certificate, allowance, own)
        # pushed to either side, symmetrically: a tie that is no symmetry of this kind would be
        # decided by rounding
        for push in (10.0 * rtol, -10.0 * rtol):
            if found.kind == "certified":
                replica = replace(own, rtol=10.0 * rtol, push=push, offset=0.4)
                found = _compared(
                    found, _certified(problem, x0, symmetry, certificate, allowance, replica)
                )
        if found.kind == "replicas disagree":
            break  # more digits would only give rounding another chance
        if found.kind == "certified" or allowance.is_over:
            break
    return found


def _compared(found: Quotient, replica: Quotient) -> Quotient:
    if replica.kind != "certified":
        return replace(found, kind=replica.kind, row=replica.row, column=replica.column)
    assert found.points is not None and replica.points is not None
    apart = float(np.abs(found.points - replica.points).max(initial=0.0))
    ours, theirs = (
        np.stack([np.asarray(one.leaders), np.asarray(one.labels)]) for one in (found, replica)
    )
    is_same = np.array_equal(ours, theirs)
    if not is_same:
        return replace(found, kind="replicas disagree")
    return replace(found, error=max(found.error, 10.0 * apart), replicas=(*found.replicas, replica))


def _certified(
    problem: Problem,
    x0: np.ndarray,
    symmetry: Symmetry,
    certificate: Certificate,
    allowance: Allowance,
    settings: Settings,
) -> Quotient:
    flow = CarefulFlow(problem, x0, settings, allowance, symmetry)
    dt, piece = problem.dynamics.dt, 1.0 / (CHECKS * problem.fastest)
    if dt is not None:
        piece = dt * max(1, round(piece / dt))
    duration = piece * (1.0 - settings.offset if dt is None else 1.0)
    progress = allowance.progress.next_part(0.3)
    while True:
        progress(min(max(0.0, flow.log_size / flow.largest_log_size), 1.0), DOING)
        status, _ = flow.advance(duration, np.zeros(0))
        duration = piece
        leader, gap, rival = flow.leaders()
        middle, stays_zero = _middles(flow, symmetry, leader)
        gap = np.where(stays_zero, math.inf, gap)
        row = int(np.argmin(gap))
        if status is not Status.OK or allowance.is_over:
            return Quotient(
                "stalled" if status is Status.STALLED else allowance.ended_by,
                flow.t,
                row,
                int(rival[row]),
            )
        if gap[row] > certificate.margin and _lead_themselves(leader, middle, flow, stays_zero):
            if _stays_open(problem, flow, symmetry, certificate, leader, middle, stays_zero):
                return _answer(problem, flow, symmetry, leader, middle)
        if (
            flow.log_size > flow.largest_log_size
            or problem.fastest * flow.t > 3.0 * flow.largest_log_size
        ):
            return Quotient(
                "not boolean" if gap[row] <= certificate.margin else "growth",
                flow.t,
                row,
                int(rival[row]),
            )


def certify_again(
    problem: Problem, flow: CarefulFlow, symmetry: Symmetry, certificate: Certificate
) -> Quotient:
    """The Quotient of a flow that stands where a certificate passed; its kind is "certified" if it
    passes again.
    """
    leader, gap, rival = flow.leaders()
    middle, stays_zero = _middles(flow, symmetry, leader)
    gap = np.where(stays_zero, math.inf, gap)
    row = int(np.argmin(gap))
    is_open = gap[row] > certificate.margin and _lead_themselves(leader, middle, flow, stays_zero)
    if is_open and _stays_open(problem, flow, symmetry, certificate, leader, middle, stays_zero):
        return _answer(problem, flow, symmetry, leader, middle)
    return Quotient("growth", flow.t, row, int(rival[row]))


def _middles(
    flow: CarefulFlow, symmetry: Symmetry, leader: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(v_i (n, d), the mean of the leaders that row i is tied between; (n,) bool: whether that is
    0, exactly).
    """
    with flow.numbers.precision():
        middle = np.stack([symmetry.projected(flow.x[leader[i]], i) for i in range(len(leader))])
    return middle, np.array([not any(value != 0 for value in row) for row in middle])


def _lead_themselves(
    leader: np.ndarray, middle: np.ndarray, flow: CarefulFlow, stays_zero: np.ndarray
) -> bool:
    """Whether every leader that is listened to follows itself, and no image of itself."""
    used = np.unique(leader[~stays_zero])
    return bool((leader[used] == used).all()) and all((middle[a] == flow.x[a]).all() for a in used)


def _stays_open(
    problem: Problem,
    flow: CarefulFlow,
    symmetry: Symmetry,
    certificate: Certificate,
    leader: np.ndarray,
    middle: np.ndarray,
    stays_zero: np.ndarray,
) -> bool:
    """Abel's test for one row of every orbit."""
    inverse = flow.inverse.T
    is_free = np.stack([_free_coordinates(flow, symmetry, i) for i in range(len(leader))])  # (n, d)
    with flow.numbers.precision():
        grown, offset = (
            doubles(middle @ inverse),
            doubles((flow.x - middle) @ inverse),
        )  # (n, d) in c
        size = np.abs(flow.values()).max(axis=0)
        leak = 2.0 * math.exp(-LEAST_MARGIN)
        # absolute errors; that of rounding the results to double is relative, and part of ROUNDING
        error = 10.0 * flow.rtol * size + leak
        offset_error = 10.0 * flow.rtol * (np.abs(offset).max(axis=0) + flow.start_size) + leak
        offset_error = offset_error + 4.0 * flow.numbers.epsilon * size
        count = math.log(len(problem.same_as) + 1.0)
        margin = certificate.margin + count + max(flow.log_size, 0.0)
        seen = np.ones(len(leader), bool)
        for i in np.unique(symmetry.representative):
            if stays_zero[i]:
                continue
            tied = symmetry.tied(int(i), int(leader[i]))
            columns = np.array([k for k in np.flatnonzero(seen) if k not in tied], dtype=int)
            if flow.columns_seen is not None:
                columns = columns[flow.columns_seen[int(np.searchsorted(flow.rows, i)), columns]]
            apart = (
                doubles((middle[i] - middle[columns]) @ inverse)
                if columns.size
                else np.zeros((0, len(size)))
            )
            is_other = (middle[i] != middle[columns]).any(
                axis=1, keepdims=True
            )  # else the difference is 0, exactly
            sums = partial_sums(
                problem.M,
                problem.M_error,
                certificate.ranks,
                Part(grown[i], error * is_free[i]),
                Part(offset[i], offset_error * is_free[i]),
                Part(apart, error * (is_other & (is_free[i] | is_free[columns]))),
                Part(-offset[columns], offset_error * is_free[columns]),
                problem.bonus[leader[i]] - problem.bonus[columns],
                margin,
                ROUNDING,
            )
            if not (sums >= 0.0).all():
                return False
    return True


def _free_coordinates(flow: CarefulFlow, symmetry: Symmetry, i: int) -> np.ndarray:
    """(d,) bool: the eigen-coordinates that the stabiliser of token i leaves free. The others are
    0, and have no error.
    """
    identity = np.eye(flow.x.shape[1])
    projector = np.stack([symmetry.projected(column, i) for column in identity], axis=1)
    inverse = doubles(flow.inverse)
    return np.abs(inverse @ projector @ np.linalg.inv(inverse)).max(axis=1) > 1e-12


def _answer(
    problem: Problem, flow: CarefulFlow, symmetry: Symmetry, leader: np.ndarray, middle: np.ndarray
) -> Quotient:
    n = len(leader)
    unwound = np.exp(-problem.rates * flow.t)
    labels = np.full(n, -1)
    with flow.numbers.precision():
        c = doubles(middle @ flow.inverse.T) * unwound
        smallest = 1e3 * flow.rtol * max(abs(value) for value in flow.x.ravel())
        for i in range(n):
            if labels[i] < 0:
                near = [
                    j
                    for j in range(n)
                    if labels[j] < 0 and max(abs(middle[i] - middle[j])) <= smallest
                ]
                if any((middle[i] != middle[j]).any() and leader[i] != leader[j] for j in near):
                    return Quotient("close limits", flow.t, row=i, digits=flow.numbers.digits)
                labels[near] = labels.max() + 1
    y = problem.realified(c)[:, problem.is_unstable]
    is_alone = np.array([len(symmetry.tied(i, int(leader[i]))) == 1 for i in range(n)])
    size = np.abs(flow.values()).max(axis=0) * np.exp(-problem.rates.real * flow.t)
    error = float((max(10.0 * flow.rtol, 1e-15) * size)[problem.is_unstable].max(initial=0.0))
    return Quotient(
        "certified",
        flow.t,
        leaders=np.where(is_alone, leader, -1),
        points=y,
        labels=labels,
        error=error,
        digits=flow.numbers.digits,
        rtol=flow.rtol,
        tokens=flow.numbers.parts(flow.x),
    )
