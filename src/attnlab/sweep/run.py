"""run_sweep: what `Sweep.run` and `attnlab sweep` do. Cells that are not there yet go to an engine, their rows to the file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from attnlab.progress import ProgressOption
from attnlab.sweep.definition import SEEDS, Sweep
from attnlab.sweep.engines import Engine
from attnlab.sweep.engines.here import Here
from attnlab.sweep.grid import Cell, Grid, split_name
from attnlab.sweep.rows import Rows
from attnlab.sweep.runner import Estimate, Tally, run_cells


def run_sweep(
    sweep: Sweep, *, workers: int | None = None, retry: str | Sequence[str] = (), small: bool = False,
    progress: ProgressOption = False, announce: Callable[[Estimate], None] | None = None,
) -> Tally:
    """Compute what is not there yet and return a Tally; docs of the arguments are at `Sweep.run`."""
    sweep = sweep.reduced() if small else sweep
    rows = open_rows(sweep)
    with rows.open():
        done = rows.done(sweep.measured, [retry] if isinstance(retry, str) else retry)
        pending = pending_cells(sweep, done)
        with choose_engine(sweep, workers) as engine:
            kept = len(sweep.grid) - len(pending)
            return run_cells(cells_at(sweep, pending), len(pending), engine, rows, kept=kept, progress=progress, announce=announce)


def open_rows(sweep: Sweep) -> Rows:
    """The file of results of a sweep."""
    source = "" if sweep.path is None else sweep.path.name
    return Rows(sweep.rows_path, axes=sweep.grid.keys, numbers=tuple(sweep.numbers), source=source)


def choose_engine(sweep: Sweep, workers: int | None) -> Engine:
    """Where the cells are computed."""
    from attnlab.sweep.compute import Computer

    return Here(Computer(sweep.head()))


def pending_cells(sweep: Sweep, done: set[str]) -> np.ndarray:
    """The places of the cells without a row, those of one equation next to each other."""
    grid = sweep.grid
    return np.fromiter((place for place in grid.places(axes_by_batch(grid)) if sweep.digest_of(grid.cell(place)) not in done), int)


def cells_at(sweep: Sweep, places: Iterable[int]) -> Iterator[tuple[str, Cell]]:
    """(digest, cell) at these places."""
    for place in places:
        cell = sweep.grid.cell(int(place))
        yield sweep.digest_of(cell), cell


def axes_by_batch(grid: Grid) -> list[int]:
    """The numbers of the axes, from slow to fast: those that change the equation, those that change the start, the seed."""
    def speed(name: str) -> int:
        keys = split_name(name)
        return 2 if keys == (SEEDS,) else 1 if all(key.startswith("start.") for key in keys) else 0

    return sorted(range(len(grid.names)), key=lambda number: speed(grid.names[number]))
