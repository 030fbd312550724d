"""Turn cells into tasks and rows, for `Sweep.run` and the experiments.

    with Rows(path).open() as rows, Here(compute) as engine:
        tally = run_cells(cells, total, engine, rows, progress=True)

The runner chooses the number of cells per task from the seconds of earlier tasks, and writes the
rows of each finished task. It stops when `progress` is cancelled or Ctrl-C is pressed. All rows
until then are kept.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from attnlab.displayed import Displayed, count_words, short_repr
from attnlab.progress import Progress, ProgressOption, track
from attnlab.sweep.engines import Engine, Task, WorkerLost
from attnlab.sweep.grid import Cell
from attnlab.sweep.rows import CRASHED, Row

TASK_SECONDS = 0.3
"""The target seconds of a task: long compared with its overhead, short enough that an interruption
loses little.
"""

MOST_CELLS = 256
"""The most cells of one task, for the worker and the pipe."""

TIMED = 3
"""The number of cells from which the cost of all cells is estimated."""

MOST_TRIES = 2
"""After so many lost workers a cell gets the status "crashed"."""


MOST_FAILURES = 10
"""The most failed rows that are kept for display."""


@dataclass(frozen=True)
class Estimate(Displayed):
    """The remaining work: the cells, the mean seconds of a timed cell, and the workers."""

    cells: int
    seconds_per_cell: float
    workers: int
    __repr__ = short_repr

    @property
    def seconds(self) -> float:
        """The estimated seconds for all cells, without the gain of batches."""
        return self.cells * self.seconds_per_cell / self.workers


@dataclass(frozen=True)
class Tally(Displayed):
    """The result of a sweep: cells computed now, how many of them failed, cells computed before,
    and the seconds.

    failures: the rows of the first failed cells.
    """

    computed: int
    failed: int
    kept: int = 0
    kept_failed: int = 0
    failures: tuple[Row, ...] = field(default=(), repr=False)
    seconds: float = 0.0
    __repr__ = short_repr

    @property
    def is_ok(self) -> bool:
        """Whether every cell is complete."""
        return not self.failed and not self.kept_failed


class Writer(Protocol):
    """The destination of rows: the database of a sweep, or the store of an experiment."""

    def write(self, rows: Iterable[Row], /) -> None:
        """Keep rows, before this returns."""


def run_cells(
    cells: Iterable[tuple[str, Cell]],
    total: int,
    engine: Engine,
    rows: Writer,
    *,
    kept: int = 0,
    progress: ProgressOption = False,
    announce: Callable[[Estimate], None] | None = None,
) -> Tally:
    """Compute the cells, (digest, cell), with an engine whose context is open, and write one row
    per cell.

    total: the number of cells. kept: how many were computed before; they count as done in the
    progress. announce: a function that gets an Estimate, from three timed cells, before the others
    begin; their rows are kept. progress: False, True (a bar), a function f(fraction, doing), or an
    al.Progress, which can also cancel.
    """
    with track(progress, "starting") as progress:
        return _Run(iter(cells), total, engine, rows, kept, progress).do(announce)


class _Run:
    """One call of `run_cells`."""

    def __init__(
        self,
        cells: Iterator[tuple[str, Cell]],
        total: int,
        engine: Engine,
        rows: Writer,
        kept: int,
        progress: Progress,
    ):
        self.cells, self.total, self.engine, self.rows, self.kept, self.progress = (
            cells,
            total,
            engine,
            rows,
            kept,
            progress,
        )
        self.computed = self.failed = self.submitted = self.in_flight = 0
        self.failures: list[Row] = []
        self.seconds_per_cell: float | None = None
        self.began = time.monotonic()

    def do(self, announce: Callable[[Estimate], None] | None) -> Tally:
        if announce is not None and self.total > TIMED:
            self._estimate(announce)
        self._fill()
        for news in self.engine.results():
            if news is not None:
                self._take(*news)
                self._fill()
            self._report()
        return Tally(
            self.computed,
            self.failed,
            self.kept,
            failures=tuple(self.failures),
            seconds=time.monotonic() - self.began,
        )

    def _estimate(self, announce: Callable[[Estimate], None]) -> None:
        """Time the next three cells, one after another in one worker, and announce the cost of all
        cells.
        """
        self._submit(Task(tuple(itertools.islice(self.cells, TIMED)), is_timed=True))
        for news in self.engine.results():
            if news is not None:
                self._take(*news)
            self._report()
        if self.seconds_per_cell is not None:
            announce(
                Estimate(self.total - self.computed, self.seconds_per_cell, self.engine.workers)
            )

    def _fill(self) -> None:
        """Submit tasks until enough are in flight."""
        while self.in_flight < self.engine.width:
            taken = tuple(itertools.islice(self.cells, self._size()))
            if not taken:
                return
            self._submit(Task(taken))

    def _submit(self, task: Task) -> None:
        self.in_flight += 1
        self.submitted += len(task.cells) if not task.tries else 0
        self.engine.submit(task)

    def _size(self) -> int:
        """Return the number of cells of the next task. It decreases towards the end, so that all
        workers end together.
        """
        if self.seconds_per_cell is None:
            return 1
        wanted = int(TASK_SECONDS / max(self.seconds_per_cell, 1e-9))
        share = (self.total - self.submitted) // (2 * self.engine.workers)
        return max(1, min(wanted, share, MOST_CELLS))

    def _take(self, task: Task, outcome: list[Row] | WorkerLost) -> None:
        """Write the rows of a task. If its worker was lost, try each of its cells again, alone."""
        self.in_flight -= 1
        if isinstance(outcome, WorkerLost):
            tries = task.tries + 1
            if len(task.cells) > 1 or tries < MOST_TRIES:
                for cell in task.cells:
                    self._submit(Task((cell,), tries=tries if len(task.cells) == 1 else 1))
                return
            outcome = [
                Row(digest, CRASHED, cell, error=outcome.reason) for digest, cell in task.cells
            ]
        self.rows.write(outcome)
        self.computed += len(outcome)
        self.failed += sum(not row.is_ok for row in outcome)
        self.failures += [row for row in outcome if not row.is_ok][
            : MOST_FAILURES - len(self.failures)
        ]
        known = [row.seconds for row in outcome if row.seconds is not None]
        if known:
            now = sum(known) / len(known)
            self.seconds_per_cell = (
                now if self.seconds_per_cell is None else 0.7 * self.seconds_per_cell + 0.3 * now
            )

    def _report(self) -> None:
        seconds = time.monotonic() - self.began
        rate = self.computed / seconds if seconds > 0 else 0.0
        failed = f", {self.failed} failed" if self.failed else ""
        words = (
            f"{count_words(self.kept + self.computed, 'cell')} of {self.kept + self.total}{failed},"
            f" {rate:.3g} per second"
        )
        self.progress((self.kept + self.computed) / max(1, self.kept + self.total), words)
