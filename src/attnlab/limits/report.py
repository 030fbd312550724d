"""The certificate as a page of text, with the numbers it rests on."""

from __future__ import annotations

import numpy as np

from attnlab.limits.certificate import make_certificate
from attnlab.limits.problem import Problem
from attnlab.limits.replicas import PUSH, Decision, named_leaders


def certificate_text(problem: Problem, decision: Decision, reason: str, names: list[int]) -> str:
    """What was proved, from which state, with which margins."""
    one, frozen = decision.original, decision.original.frozen
    assert frozen is not None
    certificate = make_certificate(problem)
    roots, named = np.unique(frozen.root), named_leaders(decision)
    shown = [
        f"{names[root]}{'' if named[root] >= 0 else ' or one beside it'}" for root in roots[:20]
    ]
    rates = ", ".join(
        _number(rate) for rate in sorted(problem.rates, key=lambda rate: -rate.real)[:8]
    )
    lines = [
        reason,
        "",
        f"eigenvalues of V     {rates}{', ...' if len(problem.rates) > 8 else ''}",
        f"growing directions   k = {int(problem.is_unstable.sum())} of {len(problem.rates)}",
        (
            f"state certified      t = {frozen.t:.6g}, log max|x| = {one.log_size:.4g},"
            f" {len(one.events)} events since the hand-over"
        ),
        (f"leaders              {', '.join(shown)}{', ...' if len(roots) > 20 else ''}"),
        (
            f"gaps                 all {frozen.n * (frozen.n - 1)} stay above G e^(mu s) for s >="
            f" 0, G = {certificate.margin_at(frozen):.4g}, mu = {certificate.mu:.4g}"
        ),
        (
            f"error of the state   {np.nanmax(frozen.Y_error * 2.0**frozen.shift):.2g} absolute,"
            " included in every partial sum"
        ),
        (
            f"replicas             start pushed by +-{PUSH:g}, tolerance and hand-over changed:"
            f" same answer; perturbations are magnified {decision.condition:.2g} times"
        ),
        f"error of the points  {decision.error:.2g}",
        f"grade                {decision.grade}",
    ]
    return "\n".join(lines)


def _number(rate: complex) -> str:
    return f"{rate.real:.6g}" if rate.imag == 0 else f"{rate.real:.6g}{rate.imag:+.6g}i"
