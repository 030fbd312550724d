"""Summaries of runs, and the tables that the verbs print."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from attnlab.analysis.blow_up import explain_blow_up
from attnlab.axes.members import USUAL
from attnlab.cli.say import has_terminal as has_terminal
from attnlab.cli.say import say_paragraph
from attnlab.controls import escape_controls
from attnlab.types import FeedForward, Status, Trajectory


def summary(run: Trajectory) -> dict[str, Any]:
    """Return what was run and how it ended, as plain words and numbers."""
    return {
        "weights": run.dynamics.weights.source,
        "equation": _equation(run),
        "members": int(np.prod(run.batch)),
        "n": run.n,
        "d": run.d,
        "time_reached": float(
            np.min(run.stats.get("reached", run.times[-1:]), initial=run.solve.t_end)
        ),
        "time_asked": float(run.solve.t_end),
        "steps": _total(run.stats.get("steps")),
        "evaluations": _total(run.stats.get("evaluations")),
        "error": (
            float(np.nanmax(run.error))
            if run.error is not None and np.isfinite(run.error).any()
            else None
        ),
        "status": _status(run),
        "digest": run.spec.digest() if run.spec is not None else None,
    }


def sentence(run: Trajectory) -> str:
    """Describe how the run ended. For a batch, count the members per status and add the first known
    reason.
    """
    if not run.batch:
        return explain_blow_up(run) or run.status.value
    statuses = np.ravel(np.asarray(run.status, dtype=object))
    failed = Counter(status for status in statuses if status is not Status.OK)
    parts = [
        f"{count} of {statuses.size} members: {status.value}" for status, count in failed.items()
    ]
    reasons = ((member, explain_blow_up(run, member)) for member in range(statuses.size))
    parts += [f"Member {member}: {reason}" for member, reason in reasons if reason][:1]
    return " ".join(parts)


def is_interrupted(run: Trajectory) -> bool:
    """Whether Ctrl-C ended the run."""
    return any(
        status is Status.INTERRUPTED for status in np.ravel(np.asarray(run.status, dtype=object))
    )


WIDTH = 160
"""Characters per line if there is no terminal."""


def print_table(
    title: str, legend: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]
) -> None:
    """Print a title, a legend and a table, as wide as the terminal (WIDTH without one).

    legend: says what a row is, and names every column with its unit and uncertainty. A shared test
    checks this.
    """
    from rich.console import Console
    from rich.table import Column, Table
    from rich.text import Text

    def cell(words: str) -> Text:  # rich would read a str as markup: "[bold]" would vanish
        return Text(escape_controls(words))

    first, *others = (cell(name) for name in columns)
    table = Table(Column(first, no_wrap=True), *(Column(name) for name in others))
    for row in rows:
        table.add_row(*(cell(format_number(entry)) for entry in row))
    console = Console(width=None if has_terminal() else WIDTH)
    console.print(cell(title), style="bold", soft_wrap=True)
    say_paragraph(legend)
    console.print(table)


RUN_LEGEND = (
    "One row per fact about the run: what it is, and its value. Times are in the unit of t. The"
    " error, if measured, is relative to the largest token."
)


def print_summary(title: str, numbers: Mapping[str, Any]) -> None:
    """Print the summary of one run."""
    rows = [(name.replace("_", " "), value) for name, value in numbers.items() if value is not None]
    print_table(title, RUN_LEGEND, ("what", "value"), rows)


def format_number(value: Any) -> str:
    """Format a table cell: a short number, a string unchanged, or a dash for None."""
    if value is None:
        return "-"
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _equation(run: Trajectory) -> str:
    dynamics = run.dynamics
    words = [str(dynamics.geometry), str(dynamics.kernel)]
    words += [str(dynamics.mask)] * (not dynamics.mask.sees_all)
    words += [
        f"{name} {getattr(dynamics, name)}"
        for name, usual in USUAL.items()
        if name != "feedforward" and getattr(dynamics, name) != usual
    ]
    if dynamics.beta != 1.0:
        words.append(f"beta = {dynamics.beta:g}")
    if isinstance(dynamics.feedforward, FeedForward):
        words.append(f"feed-forward {dynamics.feedforward.sigma}")
    elif not dynamics.feedforward.is_none:
        words.append(f"drift {dynamics.feedforward}")
    words.append(f"layers of dt = {dynamics.dt:g}" if dynamics.is_layers else "continuous time")
    return ", ".join(words)


def _status(run: Trajectory) -> str:
    if not run.batch:
        return run.status.name
    statuses = np.ravel(np.asarray(run.status, dtype=object))
    return ", ".join(f"{count} {status.name}" for status, count in Counter(statuses).items())


def _total(count: Any) -> int | None:
    return None if count is None else int(np.sum(count))
