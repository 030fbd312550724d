"""run_sweep: the function behind `Sweep.run` and `attnlab sweep`. An engine computes missing cells;
rows go to the file.
"""

from __future__ import annotations

import itertools
import os
from array import array
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from attnlab.displayed import Displayed, short_repr
from attnlab.imports import UserFile, imported
from attnlab.progress import Progress, ProgressOption, track
from attnlab.registry import unknown_name
from attnlab.sweep.check import check_size, check_sweep
from attnlab.sweep.compute import Computer
from attnlab.sweep.definition import SEEDS, Sweep
from attnlab.sweep.engines import Engine
from attnlab.sweep.engines.here import Here
from attnlab.sweep.engines.processes import Processes
from attnlab.sweep.grid import Cell, Grid, split_name
from attnlab.sweep.rows import CRASHED, OK, REFUSED, Row, Rows, check_place
from attnlab.sweep.runner import Estimate, Tally, run_cells
from attnlab.types import Status

FEW = 4
"""For fewer cells no worker processes are started, unless their number is given."""

MOST_WORKERS = 1000

SHOWN = 3
"""The most rows of other cells that are named."""


@dataclass(frozen=True)
class Plan(Displayed):
    """The plan of a sweep: the places of the cells to compute, and how many have rows already.

    failures: digests of some of the cells that failed before.
    outdated: pending cells whose rows belong to another table of numbers; they are replaced.
    others: rows of cells that are not in the sweep (any more); `named` has some of them.
    """

    pending: array[int]
    kept: int = 0
    kept_failed: int = 0
    failures: tuple[str, ...] = ()
    outdated: int = 0
    others: int = 0
    named: tuple[Row, ...] = ()
    __repr__ = short_repr


def run_sweep(
    sweep: Sweep,
    *,
    client: Any = None,
    workers: int | None = None,
    retry: str | Sequence[str] = (),
    small: bool = False,
    prune: bool = False,
    yes: bool = False,
    imports: Sequence[str | Path] = (),
    progress: ProgressOption = False,
    announce: Callable[[Estimate], None] | None = None,
    look: Callable[[Plan], None] | None = None,
    only: Container[int] | None = None,
) -> Tally:
    """Compute the missing cells and return a Tally. The arguments are those of `Sweep.run`.

    announce gets an Estimate before most cells are computed, and look gets the Plan before any
    cell. only: the places of the cells to consider; all others are neither computed nor counted.
    progress: False, True (a bar), a function f(fraction, doing), or an al.Progress, which can also
    cancel.
    """
    asked = sweep.reduced() if small else sweep
    retried = [retry] if isinstance(retry, str) else list(retry)
    check_options(retried, workers, client)
    check_size(asked, yes)
    check_place(asked.rows_path)
    files = [*imported, *map(UserFile.read, imports)]
    with track(progress, "looking at the cells") as progress:
        check_sweep(asked, progress.part(0.0, 0.0))
        rows = open_rows(asked)
        with rows.open():
            plan = make_plan(asked, rows, retried, progress.part(0.0, 0.0), only)
            if prune or (not small and only is None and sum(rows.count().values()) > plan.kept):
                others = find_strangers(sweep, rows)
                named = itertools.islice(
                    (row for row in rows.read() if row.digest in others), SHOWN
                )
                plan = replace(plan, others=len(others), named=tuple(named))
                if prune:
                    rows.delete(others)
            if look is not None:
                look(plan)
            before = (
                tuple(row for row in rows.read(failed=True) if row.digest in plan.failures)
                if plan.failures
                else ()
            )
            if not plan.pending:
                return Tally(0, 0, plan.kept, plan.kept_failed, before)
            with choose_engine(asked, plan, client, workers, files) as engine:
                tally = run_cells(
                    cells_at(asked, plan.pending),
                    len(plan.pending),
                    engine,
                    rows,
                    kept=plan.kept,
                    progress=progress,
                    announce=announce,
                )
            return replace(
                tally, kept_failed=plan.kept_failed, failures=(*tally.failures, *before)[:SHOWN]
            )


def open_rows(sweep: Sweep) -> Rows:
    """Return the file of results of a sweep."""
    source = "" if sweep.path is None else sweep.path.name
    return Rows(sweep.rows_path, axes=sweep.grid.keys, numbers=tuple(sweep.numbers), source=source)


def choose_engine(
    sweep: Sweep, plan: Plan, client: Any, workers: int | None, files: Sequence[UserFile]
) -> Engine:
    """Return the engine: a cluster, local processes, or this process for few cells or workers=0."""
    head = {
        **sweep.head(),
        "first": sweep.grid.cell(plan.pending[0]),
        "imports": [[one.name, one.text, one.digest] for one in files],
    }
    if client is not None:
        from attnlab.sweep.engines.cluster import Cluster

        return Cluster(client, head)
    if workers == 0 or (workers is None and len(plan.pending) <= FEW):
        return Here(Computer({**head, "imports": []}))  # this process has run its files already

    wanted = min(workers or core_count(), len(plan.pending))
    return Processes(head, wanted, threads=max(1, core_count() // wanted))


def core_count() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def check_options(retry: Sequence[str], workers: Any, client: Any) -> None:
    """Refuse an unknown status, and an invalid number of workers."""
    statuses = (
        "failed",
        *(status.name.lower() for status in Status if status is not Status.OK),
        REFUSED,
        CRASHED,
    )
    for word in retry:
        if word not in statuses:
            raise unknown_name("status to retry", word, statuses)
    if workers is not None and (
        isinstance(workers, bool)
        or not isinstance(workers, int)
        or not 0 <= workers <= MOST_WORKERS
    ):
        raise ValueError(
            f"workers must be a whole number from 0 (this process alone) to {MOST_WORKERS}, got"
            f" {workers!r}."
        )
    if workers is not None and client is not None:
        raise ValueError(
            "workers is for processes on this machine, but a cluster has its own workers. Leave one"
            " of them out."
        )


def make_plan(
    sweep: Sweep,
    rows: Rows,
    retry: Sequence[str],
    progress: Progress,
    only: Container[int] | None = None,
) -> Plan:
    """Compare the cells, or those at some places only, with the rows."""
    known = rows.statuses(sweep.measured)
    older = rows.statuses().keys() - known.keys()
    pending, failures, kept, outdated = array("q"), [], 0, 0
    for number, place in enumerate(sweep.grid.places(axes_by_batch(sweep.grid))):
        if number % 10_000 == 0:
            progress(0.0, "looking for cells with results")
        if only is not None and place not in only:
            continue
        digest = sweep.digest_of(sweep.grid.cell(place))
        status = known.get(digest)
        if status is None or status in retry or (status != OK and "failed" in retry):
            pending.append(place)
            outdated += digest in older
        else:
            kept += 1
            if status != OK:
                failures.append(digest)
    return Plan(pending, kept, len(failures), tuple(failures[:SHOWN]), outdated)


def find_strangers(sweep: Sweep, rows: Rows) -> set[str]:
    """Return the digests of rows whose cells are neither in the sweep nor in its small version."""
    left = set(rows.statuses())
    for one in (sweep, sweep.reduced()) if sweep.grid.small else (sweep,):
        for cell in one.grid if left else ():
            left.discard(one.digest_of(cell))
    return left


def cells_at(sweep: Sweep, places: Iterable[int]) -> Iterator[tuple[str, Cell]]:
    """Yield (digest, cell) at these places."""
    for place in places:
        cell = sweep.grid.cell(place)
        yield sweep.digest_of(cell), cell


def axes_by_batch(grid: Grid) -> list[int]:
    """Return the numbers of the axes, from slow to fast, so that the cells of one batch follow each
    other.

    First those that change the equation, then those that change the start, then the seed.
    """

    def speed(name: str) -> int:
        keys = split_name(name)
        return 2 if keys == (SEEDS,) else 1 if all(key.startswith("start.") for key in keys) else 0

    return sorted(range(len(grid.names)), key=lambda number: speed(grid.names[number]))
