"""The flow is reversible: solved back from its end, the equation leads to its start."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from attnlab.theory import theorems
from attnlab.theory.evidence import FOREIGN, Evidence
from attnlab.theory.hypotheses import setting
from attnlab.theory.sensitivity import (
    Span,
    decisive,
    follow_paths,
    is_attention_known,
    one_time,
    sensitivity,
    spans,
)
from attnlab.theory.specimens import leap, random_tokens, specimen
from attnlab.types import Dynamics
from attnlab.verdicts import Hypothesis, Measured, Theorem

RESOLUTION = 1e-3
"""The resolution, relative to the largest token."""


def hypotheses(dynamics: Dynamics, x0: np.ndarray | None) -> Iterator[Hypothesis]:
    """Softmax attention in R^d in continuous time, with any heads and mask."""
    yield from setting(dynamics, any_mask=True, any_heads=True)


def predict(dynamics: Dynamics, x0: np.ndarray | None) -> tuple[str, Mapping[str, Any]]:
    """The statement for these tokens."""
    words = "There is exactly one solution through these tokens, for all times before and after"
    data: dict[str, Any] = {}
    if (
        dynamics.mask.sees_all
    ):  # tokens that see the same move alike: no two ever meet, nor part if equal
        words += "; no two tokens ever meet"
        if x0 is not None:
            data["different"] = len(np.unique(x0, axis=0))
            words += f", {data['different']} different places stay {data['different']}"
    return words + ".", data


def measure(evidence: Evidence) -> Measured:
    """How far the flow back from the end of a piece of the run arrives from its beginning, as a
    part of the largest token.
    """
    run = evidence.run
    if len(run.times) < 2:
        return one_time(0.0, RESOLUTION)
    pieces = _pieces(evidence)
    values, errors = (
        np.array([_measure_miss(evidence, span) for span in pieces], dtype=float).reshape(-1, 2).T
    )
    if evidence.departure <= FOREIGN * evidence.error + 1e-9:
        # forward, the data do follow their equation: where the way back does not find them it is
        # ill-posed (a row that has left a mixture), and no digits of this run tell more
        values = np.where(values > errors, np.nan, values)
    seen = (errors <= RESOLUTION) & np.isfinite(values)
    lengths = np.array([span.length for span in pieces])
    covered = float(lengths[seen].sum() / max(lengths.sum(), 1e-300))
    needs = (
        f"{1.0 - covered:.0%} of the time cannot be run back with the digits of this run;"
        f" {evidence.finer_words}"
    )
    if not np.isfinite(values - errors).any():
        return Measured(
            np.nan, 0.0, np.nan, RESOLUTION, "No piece of the run could be run back.", needs=needs
        )
    worst = decisive(values, errors, 0.0, seen)
    at = pieces[worst]
    text = (
        f"The run was solved back in {len(pieces)} pieces, each as long as its digits allow (the"
        f" longest {lengths.max():.3g}), {covered:.0%} of their time seen; the beginning is missed"
        f" by at most {values[worst]:.2g} of the largest token, from t = {run.times[at.last]:.4g}"
        f" back to {run.times[at.first]:.4g}"
    )
    return Measured(
        float(values[worst]),
        0.0,
        float(errors[worst]),
        RESOLUTION,
        text + ".",
        needs=needs,
        is_reached=covered >= 0.5,
        details={
            "pieces": len(pieces),
            "time_seen": covered,
            "longest_piece": float(lengths.max()),
        },
    )


def _pieces(evidence: Evidence) -> list[Span]:
    """The pieces of the run, joined as long as its error, enlarged on the way back, stays a tenth
    of what must be seen.
    """
    dynamics = evidence.run.dynamics
    allowed = math.log(0.1 * RESOLUTION / max(evidence.error, 1e-12))
    joined: list[Span] = []
    used = math.inf
    for span in spans(evidence, paths=1):
        R, R_end = span.sizes
        cost = span.length * max(
            sensitivity(dynamics, span.start), sensitivity(dynamics, span.end)
        ) + abs(math.log(R_end / R))
        if joined and used + cost <= allowed and joined[-1].last == span.first:
            before = joined.pop()
            length, saves = before.length + span.length, before.saves + span.saves - 1
            span = Span(before.first, span.last, before.start, span.end, length, saves)
            used += cost
        else:
            used = cost
        joined.append(span)
    return joined


def _measure_miss(evidence: Evidence, span: Span) -> tuple[float, float]:
    """(how far from the beginning the flow back from the end arrives, its error), as parts of the
    largest token there.
    """
    dynamics, (R, R_end) = evidence.run.dynamics, span.sizes
    if not is_attention_known(dynamics, span.end, evidence.error):
        return math.nan, math.nan
    # a second path, from an end that is off by the error: a change of leader on the way magnifies
    # it beyond any linear bound
    push = evidence.error * R_end * np.random.default_rng(0).uniform(-1.0, 1.0, span.end.shape)
    followed = follow_paths(
        dynamics, (span.end, span.end + push), span.length, span.saves, is_backward=True
    )
    if followed is None:
        return math.nan, math.nan
    grown, (path, other) = followed
    apart = 10.0 * float(np.linalg.norm(path[-1] - other[-1], axis=1).max()) / R
    # the data's own way, too: back from where a row has left a mixture, the path does not find it
    # again and looks harmless
    states, log_scale = evidence.run.scaled_x()
    seen = slice(span.first, span.last + 1)
    rates = [
        sensitivity(dynamics, x * math.exp(scale))
        for x, scale in zip(states[seen], log_scale[seen], strict=True)
    ]
    grown = max(grown, float(np.trapezoid(rates, evidence.run.times[seen])))
    missed = float(np.linalg.norm(path[-1] - span.start, axis=1).max()) / R
    enlarged = math.exp(min(grown, 600.0)) * R_end / R
    return missed, max(
        apart, math.sqrt(evidence.run.d) * (evidence.error * (1.0 + enlarged) + 1e-10 * enlarged)
    )


theorems.register("reversible")(
    Theorem(
        name="reversible",
        kind="estimate",
        statement=(
            "Every first sequence of tokens gives exactly one solution, for all t in R. Checked by"
            " solving back: from every saved state the equation with -V (same attention) leads to"
            " the states saved before it."
        ),
        cite=(
            "Geshkovski, Letrouit, Polyanskiy, Rigollet, arXiv:2305.05465v6, section 6, existence"
            " and uniqueness"
        ),
        hypotheses=hypotheses,
        predict=predict,
        measure=measure,
        holds=lambda: specimen([[1.0, 0.3], [0.1, 0.4]], t_end=4.0),
        breaks=lambda: specimen(np.eye(2), t_end=2.0, kernel="hardmax"),
        short=lambda: specimen(
            [[1.0, 0.3], [0.1, 0.4]], t_end=4.0, stepper="euler", dt=0.1, frame="x"
        ),
        spoil=leap,
        nonsense=random_tokens,
        errata=(
            '"Lipschitz on R" for solutions must be read "on compact intervals": with V = I tokens'
            " grow like e^t."
        ),
    )
)
