"""Displays of predictions and verdicts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import Any

from attnlab.notebook import displays
from attnlab.notebook.html import Mark, facts, fold, note, table
from attnlab.verdicts import (
    BatchVerdicts,
    Hypothesis,
    Outcome,
    Prediction,
    Predictions,
    Theorem,
    Verdict,
    Verdicts,
    sort_verdicts,
)

LOOKS = {
    Outcome.SUPPORTED: "good",
    Outcome.CONTRADICTED: "bad",
    Outcome.OUT_OF_SCOPE: "open",
    Outcome.UNDECIDED: "open",
}
APPLIES = {
    True: Mark("applies", "good"),
    None: Mark("may apply", "open"),
    False: Mark("does not apply", "open"),
}
HOLDS = {True: Mark("yes", "good"), False: Mark("no", "bad"), None: Mark("open", "open")}


@displays.register("Predictions")
def show_predictions(predictions: Predictions) -> tuple[str, ...]:
    """Show one row per statement, applicable ones first; then the open questions."""
    rows = [
        (one.theorem, one.kind, APPLIES[one.applies], _says(one)) for one in predictions.ordered()
    ]
    near, far = (
        [row for row in rows if row[2] is not APPLIES[False]],
        [row for row in rows if row[2] is APPLIES[False]],
    )
    parts = [note(predictions.summary)] if predictions.summary else []
    if near:
        legend = (
            "One row per statement: what kind it is, whether it applies here, and what it says."
        )
        parts.append(table(legend, ("statement", "kind", "here", "what it says"), near))
    if far:
        legend = (
            "One row per statement: what kind it is, and which of its hypotheses does not hold"
            " here."
        )
        parts.append(
            fold(
                f"{len(far)} that do not apply",
                table(legend, ("statement", "kind", "here", "what fails"), far),
            )
        )
    return "Predictions", *parts, *(note(f"Open here: {one}") for one in predictions.openings)


def _says(one: Prediction) -> str:
    if one.unmet:
        return f"it needs: {one.unmet[0].asked}"
    first = next((other for other in one.hypotheses if other.holds is None), None)
    return one.limit if first is None else f"{one.limit} Open: {first.says}: {first.note}"


@displays.register("Prediction")
def show_prediction(one: Prediction) -> tuple[str, ...]:
    """Show what it says, and its hypotheses."""
    numbers = {"kind": one.kind, "here": APPLIES[one.applies], "says": one.limit or None}
    return f"Prediction: {one.theorem}", facts(numbers), hypotheses_table(one.hypotheses)


@displays.register("Hypothesis")
def show_hypothesis(one: Hypothesis) -> tuple[str, ...]:
    """Show one hypothesis."""
    return "Hypothesis", hypotheses_table([one])


def hypotheses_table(hypotheses: Iterable[Hypothesis]) -> str:
    """Show one row per hypothesis."""
    rows = [
        (
            HOLDS[one.holds],
            one.says,
            None if math.isnan(one.value) else float(one.value),
            one.needs or None,
            one.note or None,
        )
        for one in hypotheses
    ]
    legend = (
        "One row per hypothesis: whether it holds, the number behind it, and what that must be."
    )
    return table(legend, ("holds", "hypothesis", "number", "must be", "note"), rows) if rows else ""


@displays.register("Verdicts")
def show_verdicts(verdicts: Verdicts) -> tuple[str, ...]:
    """Show one row per statement, decided ones first."""
    ordered = sort_verdicts(verdicts)
    near = [one for one in ordered if one.outcome is not Outcome.OUT_OF_SCOPE]
    far = [one for one in ordered if one.outcome is Outcome.OUT_OF_SCOPE]
    parts = [_verdict_table(near)] if near else []
    parts += [fold(f"{len(far)} out of scope", _verdict_table(far))] if far else []
    return f"Verdicts: {verdicts.summary}", *parts


def _verdict_table(verdicts: Iterable[Verdict]) -> str:
    rows = [
        (
            one.theorem,
            one.kind,
            Mark(one.outcome.name, LOOKS[one.outcome]),
            *_numbers(one),
            one.unmet or None,
        )
        for one in verdicts
    ]
    legend = (
        "One row per statement: measured, with its error, must be at most the bound. "
        "reason: what fails, or what would decide it."
    )
    return table(legend, ("statement", "kind", "verdict", "measured", "bound", "reason"), rows)


def _numbers(one: Verdict) -> tuple[Any, Any]:
    if math.isnan(one.measured):
        return None, None
    return f"{one.measured:.3g} ± {one.error:.2g}", f"{one.bound:.3g}"


@displays.register("Verdict")
def show_verdict(one: Verdict) -> tuple[str, ...]:
    """Show the outcome, its numbers, its evidence and its hypotheses."""
    measured, bound = _numbers(one)
    numbers = {
        "verdict": Mark(one.outcome.name, LOOKS[one.outcome]),
        "kind": one.kind,
        "measured": measured,
        "bound": bound,
        "reason": one.unmet or None,
        "evidence": one.evidence or None,
    }
    return (
        f"Verdict: {one.theorem}",
        facts(numbers),
        note(one.outcome.value),
        fold("hypotheses", hypotheses_table(one.hypotheses)) if one.hypotheses else "",
    )


@displays.register("BatchVerdicts")
def show_batch(members: BatchVerdicts) -> tuple[str, ...]:
    """Show one row per statement: how many members have each outcome."""
    rows = []
    for of_statement in zip(*members, strict=False):
        found = Counter(one.outcome for one in of_statement)
        rows.append((of_statement[0].theorem, *(found[outcome] or None for outcome in Outcome)))
    legend = "One row per statement: how many members of the batch have each outcome."
    return f"Verdicts of {members.summary}", table(
        legend, ("statement", *(outcome.name for outcome in Outcome)), rows
    )


@displays.register("Theorem")
def show_theorem(theorem: Theorem) -> tuple[str, ...]:
    """Show the statement and its source."""
    more = {"cite": theorem.cite, "errata": theorem.errata or None}
    return f"{theorem.kind}: {theorem.name}", note(theorem.statement), facts(more)
