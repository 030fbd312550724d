"""One part of an experiment, measured by the runner of sweeps. Each new row is kept at once and is
not measured again.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnlab.displayed import short_value
from attnlab.experiments.kept_rows import KeptRows, digest_of
from attnlab.progress import as_progress
from attnlab.sweep.engines import Engine, Task
from attnlab.sweep.engines.here import Here
from attnlab.sweep.engines.threads import Threads
from attnlab.sweep.grid import Cell
from attnlab.sweep.rows import Row
from attnlab.sweep.runner import run_cells

if TYPE_CHECKING:
    from attnlab.experiments.parts import Context, Part


class CaseFailed(RuntimeError):
    """A case that could not be measured. The message names it; the cause is the error of the
    measure.
    """


def measure_part(
    name: str, part: Part, cases: Sequence[Cell], kept: KeptRows, context: Context
) -> list[tuple[Cell, Any]]:
    """Measure the cases that are not kept, and return every case with what was measured of it."""
    run = _Run(name, part, cases, kept, context)
    engine: Engine = Here(run.measure) if part.at_once == 1 else Threads(run.measure, part.at_once)
    with engine:
        # rows have no seconds, so the runner makes each case a task of its own, which is kept when
        # it is done
        run_cells(run.todo.items(), len(run.todo), engine, run, progress=run.report)
    return [(case, kept.value(digest_of(name, case))) for case in cases]


class _Run:
    """The state of one part while it is measured."""

    def __init__(
        self, name: str, part: Part, cases: Sequence[Cell], kept: KeptRows, context: Context
    ):
        self.name, self.part, self.kept, self.context = name, part, kept, context
        self.todo = {
            digest: case for case in cases if (digest := digest_of(name, case)) not in kept
        }
        self.all = sum(map(self.work, cases)) or 1.0
        self.done = self.all - sum(map(self.work, self.todo.values()))
        self.doing = ""

    def work(self, case: Mapping[str, Any]) -> float:
        """The work of a case."""
        return float(self.part.work(**case)) if self.part.work is not None else 1.0

    def measure(self, task: Task) -> list[Row]:
        """What an engine does with a task."""
        rows = []
        for digest, case in task.cells:
            inner = as_progress(None)
            if self.part.at_once == 1:  # otherwise this thread may not report
                self.doing = self.part.doing.format(**case) or self.name
                inner = self.context.progress.part(
                    self.done / self.all, (self.done + self.work(case)) / self.all
                )
                inner(0.0, self.doing)
            try:
                rows.append(
                    self.kept.row(
                        digest, case, self.part.measure(self.context.of_case(inner), **case)
                    )
                )
            except KeyboardInterrupt:
                raise
            except Exception as problem:
                raise CaseFailed(self._sentence(case, problem)) from problem
        return rows

    def write(self, rows: Iterable[Row]) -> None:
        """Keep rows; the runner takes this object for its database."""
        rows = list(rows)
        self.kept.write(rows)
        self.done += sum(self.work(row.axes) for row in rows)
        if self.part.at_once > 1 and rows:
            self.doing = self.part.doing.format(**rows[-1].axes) or self.name

    def report(self, *_: Any) -> None:
        """Report the share of the work that is done. Cases differ, so their number would not do."""
        self.context.progress(self.done / self.all, self.doing)

    def _sentence(self, case: Cell, problem: Exception) -> str:
        named = ", ".join(f"{key} = {short_value(value)}" for key, value in case.items())
        place = traceback.extract_tb(problem.__traceback__)[-1]
        return (
            f"The {f'case {named}' if case else 'only case'} of the part {self.name!r} cannot be"
            f" measured: {type(problem).__name__}: {problem} ({Path(place.filename).name}, line"
            f" {place.lineno}). The experiment stops here, since it has no reason to leave the case"
            " out. What was measured before is kept."
        )
