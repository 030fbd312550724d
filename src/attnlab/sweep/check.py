"""Check a sweep before anything runs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnlab.displayed import short_value
from attnlab.progress import Progress
from attnlab.registry import UnknownName
from attnlab.sweep.compute import Equation, equation_of, solve_of
from attnlab.sweep.definition import Sweep
from attnlab.sweep.grid import Cell
from attnlab.sweep.numbers import added_times, check_names, check_shape
from attnlab.types import Status, Trajectory

MOST_UNASKED = 1_000_000
"""More cells than this need --yes."""

MOST_VALUES = 100
"""The most values of one axis that are tried: the ends, and others at equal distances."""

MOST_ENTRIES = 100_000
"""Trying a cell is cheap up to this many entries of matrices and tokens."""


def check_sweep(sweep: Sweep, progress: Progress) -> None:
    """Refuse unknown names and keys, invalid values, and observables that are not numbers. The
    error names the cell.

    It resolves the first cell and, if that is cheap, one cell per value of each axis. Nothing is
    integrated.
    """
    if len(sweep.grid) == 0:
        raise ValueError("A sweep must have at least one cell, but exclude leaves none.")
    check_names(sweep.numbers)
    first = next(iter(sweep.grid))
    equation, x0 = _try(sweep, first)
    for name, number in sweep.numbers.items():
        if "observable" in number:
            check_shape(name, number["observable"], _make_trivial_run(equation, x0))
    if x0.size + 3 * equation.dynamics.weights.d**2 > MOST_ENTRIES:
        return
    cells = list(other_cells(sweep))
    for place, cell in enumerate(cells):
        progress(place / len(cells), "checking the values of the axes")
        _try(sweep, cell)


def check_size(sweep: Sweep, is_sure: bool) -> None:
    """Refuse a sweep with very many cells, unless the user is sure."""
    if len(sweep.grid) > MOST_UNASKED and not is_sure:
        raise ValueError(
            f"This sweep has {len(sweep.grid):,} cells. More than {MOST_UNASKED:,} need --yes (in"
            " Python yes=True)."
        )


def other_cells(sweep: Sweep) -> Iterator[Cell]:
    """Yield the first cell for each value of each axis, without the very first cell; for long axes
    only some values.
    """
    grid, kept = sweep.grid, np.fromiter(sweep.grid.places(), int)
    indices = np.unravel_index(kept, grid.shape)
    seen = {int(kept[0])}
    for axis, size in enumerate(grid.shape):
        # the first cell of each value: of equal keys a dict keeps the last one
        first_places = dict(zip(indices[axis][::-1].tolist(), kept[::-1].tolist(), strict=True))
        chosen = np.unique(
            np.linspace(0, size - 1, min(size, MOST_VALUES)).round().astype(int)
        ).tolist()
        for place in (first_places[value] for value in chosen if value in first_places):
            if place not in seen:
                seen.add(place)
                yield grid.cell(place)


def describe_cell(cell: Cell) -> str:
    """Describe a cell: dynamics.beta = 9, start.n = 2."""
    return ", ".join(f"{key} = {short_value(value)}" for key, value in cell.items())


def _try(sweep: Sweep, cell: Cell) -> tuple[Equation, np.ndarray]:
    """Return the equation and first tokens of a cell. Errors name the cell."""
    where = (
        f" (In the cell {describe_cell(cell)}. Correct it, or leave such cells out with exclude.)"
    )
    try:
        spec = sweep.spec_of(cell)
        equation, x0 = equation_of(spec, added_times(sweep.numbers))
        if x0.ndim != 2:
            raise ValueError(
                f"A cell must be one run, but its first tokens have the shape {x0.shape}. Use seeds"
                " for several."
            )
        return equation, x0
    except UnknownName as problem:
        raise UnknownName(f"{problem}{where}") from problem
    except (ValueError, TypeError, ArithmeticError) as problem:
        raise ValueError(f"{problem}{where}") from problem


def _make_trivial_run(equation: Equation, x0: np.ndarray) -> Trajectory:
    """Return a run that ends at its start. It shows the shape of the values of an observable."""
    solve = solve_of(equation.dynamics, equation.options)
    return Trajectory(
        equation.dynamics,
        solve,
        np.zeros(1),
        x0[None],
        "x",
        np.zeros(1),
        Status.OK,
        stats={"reached": 0.0, "steps": 0, "rejected": 0, "evaluations": 0},
    )
