"""Predictions and verdicts in words, tables and JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from attnlab.cli.say import as_options, say
from attnlab.cli.summary import print_table
from attnlab.store.plain import plain_value as plain
from attnlab.verdicts import (
    Outcome,
    Prediction,
    Predictions,
    Verdict,
    count_outcomes,
    sort_verdicts,
)

APPLIES = {True: "applies", None: "may apply", False: "does not apply"}


def record(thing: Prediction | Verdict) -> dict[str, Any]:
    """Return every field as plain JSON values; null where unknown."""
    return plain(thing)


def paragraph(before: Prediction) -> str:
    """Format a prediction with its hypotheses and data."""
    lines = [str(before), *(f"  {one}" for one in before.hypotheses)]
    return "\n".join(
        [*lines, *(f"  {name}: {_short(value)}" for name, value in before.data.items())]
    )


def print_predictions(predictions: Predictions, is_long: bool) -> None:
    """Print what each statement says, a line or a paragraph each, applicable ones first; then the
    open questions.
    """
    if not is_long:
        say(str(predictions))
        return
    opened = [f"Open here: {one}" for one in predictions.openings]
    parts = [predictions.summary, *map(paragraph, predictions.ordered()), *opened]
    say("\n\n".join(part for part in parts if part))


def print_verdicts(
    verdicts: Sequence[Verdict], is_long: bool, command: Callable[..., None]
) -> None:
    """Print every verdict as a line or a paragraph, then the number of verdicts per outcome."""
    ordered = sort_verdicts(verdicts)
    words = ("\n\n" if is_long else "\n").join(
        one.paragraph() if is_long else str(one) for one in ordered
    )
    say(as_options(words, command))
    if len(verdicts) > 1:
        say(f"\n{count_outcomes(verdicts)}.")


def print_prediction_table(title: str, members: Sequence[Sequence[Prediction]]) -> None:
    """Print how many members of a batch each statement applies to, and what fails first."""
    rows = []
    for of_statement in zip(*members, strict=True):
        found = Counter(one.applies for one in of_statement)
        unmet = next((one.unmet[0].says for one in of_statement if one.unmet), None)
        rows.append((of_statement[0].theorem, *(found[applies] for applies in APPLIES), unmet))
    legend = (
        "One row per statement of the theory. applies, may apply, does not apply: number of members"
        " of the batch. what fails first: the first hypothesis that does not hold."
    )
    print_table(title, legend, ("statement", *APPLIES.values(), "what fails first"), rows)


def print_verdict_table(
    title: str, members: Sequence[Sequence[Verdict]], command: Callable[..., None]
) -> None:
    """Print how many members of a batch have each outcome, and the reason of the first undecided
    one.
    """
    rows = []
    for of_statement in zip(*members, strict=True):
        found = Counter(one.outcome for one in of_statement)
        reason = next((as_options(one.unmet, command) for one in of_statement if one.unmet), None)
        rows.append((of_statement[0].theorem, *(found[outcome] for outcome in Outcome), reason))
    names = [outcome.name for outcome in Outcome]
    legend = (
        f"One row per statement of the theory. {', '.join(names)}: how many members of the batch"
        " have this outcome. first reason: why the first undecided member is undecided."
    )
    print_table(title, legend, ("statement", *names, "first reason"), rows)
    for number, verdicts in enumerate(members):
        for one in verdicts:
            if one.outcome is Outcome.CONTRADICTED:
                say(f"Member {number}: {one}")


def _short(value: Any) -> str:
    return (
        np.array2string(value, precision=6, threshold=20)
        if isinstance(value, np.ndarray)
        else str(value)
    )
