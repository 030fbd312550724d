"""From a Limit to the same Limit proved, or to one whose reason says why it is not."""

from __future__ import annotations

import dataclasses
import math
import time
from typing import Any

import numpy as np

from attnlab.displayed import count_words
from attnlab.engine.threads import one_blas_thread
from attnlab.limits.proof.balls import Balls
from attnlab.limits.proof.doubles import Doubles
from attnlab.limits.proof.ending import find_points, tell_apart
from attnlab.limits.proof.equation import Equation, NotProved, take_equation
from attnlab.limits.proof.record import Proof
from attnlab.limits.proof.spectrum import Spectrum, find_spectrum
from attnlab.limits.proof.steps import TooCoarse, enclose
from attnlab.limits.state import start_digest
from attnlab.progress import Progress
from attnlab.types import Grade, Limit

NOT_PROVED = "It is not proved: {why}."
DIGITS = 16
"""Decimal digits that a double adds to a number."""

MOST_PARTS = 5
"""Doubles in a number of a proof."""

ARITHMETIC = ("doubles, rounding bounded", "balls")


def prove(limit: Limit, begin: float, deadline: float, progress: Progress) -> Limit:
    """The Limit proved; else the same Limit with the obstacle in its reason. begin: the time of the
    first tokens.
    """
    began = time.perf_counter()
    try:
        if begin != 0.0:
            raise NotProved("proofs start at t = 0, and this run starts later")
        if limit.dynamics.geometry.is_unit_sphere:
            return _proved_on_sphere(limit)
        equation = take_equation(limit.dynamics, np.asarray(limit.x0))
        with np.errstate(all="ignore"), one_blas_thread():
            spectrum = find_spectrum(equation.V)
            if not spectrum.grows.any():
                raise NotProved("no direction grows, so z has no limits to enclose")
            found, digits = _enclose(limit, equation, spectrum, deadline, progress)
            return _proved(limit, equation, spectrum, found, digits, time.perf_counter() - began)
    except NotProved as obstacle:
        said = NOT_PROVED.format(why=obstacle)
        return dataclasses.replace(
            limit,
            reason=f"{limit.reason} {said}",
            certificate=_with_first_line(limit.certificate, said),
        )


def _enclose(
    limit: Limit, equation: Equation, spectrum: Spectrum, deadline: float, progress: Progress
) -> tuple[dict[str, Any], int]:
    """(the steps, the decimal digits that they have), with more digits until the bound holds."""
    parts = _guess_parts(limit, equation)
    while True:
        arithmetic = Doubles(equation) if parts == 1 else Balls(equation, parts)
        try:
            return enclose(equation, spectrum, arithmetic, deadline, progress), DIGITS * parts
        except TooCoarse as obstacle:
            if parts == MOST_PARTS:
                raise NotProved(f"with {DIGITS * parts} digits, {obstacle}") from None
            parts += 1


def _guess_parts(limit: Limit, equation: Equation) -> int:
    """How many doubles a number probably needs: scores are squares of tokens, and they must be
    known to less than 1 at the last change of leader.
    """
    last = max((event.t for event in limit.events), default=0.0)
    size = math.log10(max(float(np.abs(equation.x0).max()), 1.0))
    needed = 2.0 * (size + equation.V_norm * float(last) / math.log(10.0)) + 5.0
    return int(np.clip(math.ceil(needed / DIGITS), 1, MOST_PARTS)) if last else 1


def _proved(
    limit: Limit,
    equation: Equation,
    spectrum: Spectrum,
    found: dict[str, Any],
    digits: int,
    seconds: float,
) -> Limit:
    digest, grows = start_digest(limit.dynamics, limit.x0), spectrum.grows
    eigen: dict[str, Any] = {
        "rates": spectrum.rates,
        "rates_off": spectrum.rates_off,
        "vectors": spectrum.right,
    }
    proof = Proof(digest, equation.number, **eigen, **found)
    end = np.concatenate([proof.end[None], proof.end_rest])
    points, off = find_points(spectrum, end, proof.end_radius, proof.leaders, proof.leak, proof.h)
    if not tell_apart(points, off, proof.leaders):
        raise NotProved("two limits are closer than the enclosure is wide")
    first = np.array([int(np.argmax(equation.number == one)) for one in range(len(equation.x0))])
    leaders = first[proof.leaders][equation.number]
    _, where, inverse = np.unique(leaders, return_index=True, return_inverse=True)
    labels = np.argsort(np.argsort(where))[inverse.ravel()]
    basis = spectrum.right[:, grows]
    in_space = (
        off @ np.abs(spectrum.right).T + (np.abs(points) + off) @ spectrum.right_off.T
    ).max()
    error = max(float(off[:, grows].max()), float(in_space)) * (1.0 + 1e-9) * spectrum.slack
    points = points[:, grows][equation.number]
    _compare(limit, labels, leaders, points @ basis.T, error)
    t = math.fsum(proof.h)
    count = int(labels.max()) + 1
    radius = float(proof.end_radius.max())
    reason = (
        f"Proved: {count_words(len(labels), 'token')} have {count_words(count, 'limit')}. The"
        f" tokens are enclosed to within {radius:.2g} at t = {t:.4g}, and from there on no row"
        " changes its leader."
    )
    lines = [
        reason,
        "",
        (
            f"steps                {len(proof.h)} polynomials of order"
            f" {proof.coefficients.shape[1] - 1}, {int(proof.pieces.sum())} pieces"
        ),
        f"arithmetic           {ARITHMETIC[digits > DIGITS]}, {digits} digits",
        (
            f"defect               at most {float(proof.defect.max()):.2g}, in units of x over t;"
            " rounding is part of it"
        ),
        f"radius at the end    {radius:.2g}, of tokens up to {float(np.abs(proof.end).max()):.4g}",
        (
            f"gaps                 all stay above G e^(mu s) for s >= 0, G = {proof.margin:.4g}, mu"
            f" = {proof.mu:.3g}"
        ),
        f"softmax leaks        at most {proof.leak:.2g} for ever, included in every partial sum",
        f"error of the points  {error:.2g}, proved",
        "grade                proved",
    ]
    return dataclasses.replace(
        limit,
        labels=labels,
        leaders=leaders,
        basis=basis,
        points=points,
        error=error,
        grade=Grade.PROVED,
        reason=reason,
        certificate="\n".join(lines),
        t=t,
        digits=digits,
        state=proof.state(),
        places=None,
        stats={
            **limit.stats,
            "proof_seconds": seconds,
            "proof_steps": len(proof.h),
            "proof_digits": digits,
        },
    )


def _proved_on_sphere(limit: Limit) -> Limit:
    """A limit by the half-space lemma is enclosed already where nothing was integrated."""
    if limit.state is None or limit.state.way != "half space":
        raise NotProved(
            "on the sphere proofs are for a V with a simple dominant eigenvalue and tokens on one"
            " side"
        )
    if float(limit.state.values["t"]) != 0.0:
        raise NotProved(
            "the first tokens do not lie on one side, and the flow on the sphere is not enclosed"
        )
    if limit.dynamics.weights.is_factored:
        raise NotProved("proofs are for V given as one matrix")
    reason = limit.reason.replace("Certified: ", "Proved: ", 1)
    lines = [
        reason,
        "",
        f"error of the point   {limit.error:.2g}, proved",
        "grade                proved",
    ]
    return dataclasses.replace(
        limit, grade=Grade.PROVED, reason=reason, certificate="\n".join(lines)
    )


def _compare(
    limit: Limit, labels: np.ndarray, leaders: np.ndarray, points: np.ndarray, error: float
) -> None:
    """Refuse a proof that contradicts a certificate: one of them is wrong, and nobody knows
    which.
    """
    if not limit.certified or limit.places is not None:
        return
    is_named = limit.leaders >= 0
    same = np.array_equal(labels, limit.labels) and (
        limit.grade != Grade.EXACT or np.array_equal(leaders[is_named], limit.leaders[is_named])
    )
    known = limit.points @ limit.basis.T
    off = (
        float(np.abs(points - known).max(initial=0.0)) if known.shape == points.shape else math.inf
    )
    if not same or off > 10.0 * (error + limit.error) + 1e-9 * float(
        np.abs(points).max(initial=0.0)
    ):
        raise NotProved(
            "the enclosure leads to another limit than the certificate, so one of them is wrong;"
            " please report it"
        )


def _with_first_line(certificate: str, said: str) -> str:
    """A certificate whose first paragraph ends with one more sentence."""
    first, *rest = certificate.split("\n", 1)
    return "\n".join([f"{first} {said}", *rest])
