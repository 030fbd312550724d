"""Sweeps: many runs from one file, which can be interrupted at any time and continue where they
stopped.

    sweep = al.Sweep.load("phase.toml")
    sweep.run()                                 # on all cores; a second call computes nothing
    table = al.sweep.load("phase.toml")         # a pandas DataFrame, one row per cell

    grid.py        named axes, and the cells between them            definition.py  Sweep: a base Spec, a grid, numbers to keep
    numbers.py     the numbers of each run                           rows.py        the SQLite file of results
    compute.py     the work of a worker on a task                    runner.py      cells to tasks to rows
    engines/       the places of computation: here, processes, a cluster
    table.py       the results as pandas or xarray, and as files      drawing.py     their figure
    curves.py      curves of the theory, drawn over them             refine.py      the cells where the answer changes

Only the Specs contain randomness: a cell is named by the digest of its Spec and equals
`al.run_spec` of it, for all workers, orders and batches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attnlab.registry import import_name

if TYPE_CHECKING:
    from attnlab.sweep.definition import Sweep as Sweep
    from attnlab.sweep.drawing import plot as plot
    from attnlab.sweep.grid import Grid as Grid
    from attnlab.sweep.rows import Row as Row
    from attnlab.sweep.rows import Rows as Rows
    from attnlab.sweep.table import export as export
    from attnlab.sweep.table import load as load

_HOME = {
    "Sweep": "attnlab.sweep.definition",
    "Grid": "attnlab.sweep.grid",
    "plot": "attnlab.sweep.drawing",
    **dict.fromkeys(("Row", "Rows"), "attnlab.sweep.rows"),
    **dict.fromkeys(("export", "load"), "attnlab.sweep.table"),
}
__all__ = ["Grid", "Row", "Rows", "Sweep", "export", "load", "plot"]


if not TYPE_CHECKING:  # type checkers use the imports above instead

    def __getattr__(name: str) -> object:
        return import_name(__name__, _HOME, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
