"""A run in a few numbers, and tables of them."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from attnlab.controls import escape_controls
from attnlab.types import Status, Trajectory


def summary(run: Trajectory) -> dict[str, Any]:
    """What was run and how it went, as plain words and numbers."""
    return {
        "weights": run.dynamics.weights.source,
        "equation": _equation(run),
        "replicas": int(np.prod(run.batch)),
        "n": run.n,
        "d": run.d,
        "time_reached": float(np.min(run.stats.get("reached", run.times[-1:]), initial=run.solve.t_end)),
        "time_asked": float(run.solve.t_end),
        "steps": _total(run.stats.get("steps")),
        "evaluations": _total(run.stats.get("evaluations")),
        "error": float(np.nanmax(run.error)) if run.error is not None and np.isfinite(run.error).any() else None,
        "status": _status(run),
        "digest": run.spec.digest() if run.spec is not None else None,
    }


def sentence(run: Trajectory) -> str:
    """How the run ended, in words."""
    if not run.batch:
        return run.status.value
    failed = Counter(status for status in run.status.ravel() if status is not Status.OK)
    return " ".join(f"{count} of {run.status.size} replicas: {status.value}" for status, count in failed.items())


def has_terminal() -> bool:
    """Whether someone is watching: progress bars are for them, not for files."""
    return sys.stdout.isatty()


def is_interrupted(run: Trajectory) -> bool:
    """Whether Ctrl-C ended it."""
    return any(status is Status.INTERRUPTED for status in np.ravel(np.asarray(run.status, dtype=object)))


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print a table to standard output, as wide as the terminal, or as wide as it needs to be where there is none."""
    from rich.console import Console
    from rich.table import Column, Table
    from rich.text import Text

    def cell(words: str) -> Text:                      # a str would be read as markup: "[bold]" would vanish
        return Text(escape_controls(words))

    first, *others = (cell(name) for name in columns)
    table = Table(Column(first, no_wrap=True), *(Column(name) for name in others), title=cell(title), title_justify="left")
    for row in rows:
        table.add_row(*(cell(format_number(entry)) for entry in row))
    Console(width=None if has_terminal() else 160).print(table)


def print_summary(title: str, numbers: Mapping[str, Any]) -> None:
    """Print the summary of one run."""
    rows = [(name.replace("_", " "), value) for name, value in numbers.items() if value is not None]
    print_table(title, ("what", "value"), rows)


def format_number(value: Any) -> str:
    """A number as short as it stays clear, a word as it is, nothing as a dash."""
    if value is None:
        return "-"
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _equation(run: Trajectory) -> str:
    dynamics = run.dynamics
    words = [dynamics.geometry, dynamics.kernel]
    if dynamics.mask != "full":
        words.append(dynamics.mask)
    if dynamics.beta != 1.0:
        words.append(f"beta = {dynamics.beta:g}")
    if dynamics.feedforward is not None:
        words.append(f"feed-forward {dynamics.feedforward.sigma}")
    words.append(f"layers of dt = {dynamics.dt:g}" if dynamics.is_layers else "continuous time")
    return ", ".join(words)


def _status(run: Trajectory) -> str:
    if not run.batch:
        return run.status.name
    return ", ".join(f"{count} {status.name}" for status, count in Counter(run.status.ravel()).items())


def _total(count: Any) -> int | None:
    return None if count is None else int(np.sum(count))
