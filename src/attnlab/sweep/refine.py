"""Sample where the answer changes: a coarse part of the grid first, then the cells between
neighbours that differ.

    refine(sweep, "dynamics.beta", "start.d", "clusters", level=1.5)

The plane of two axes (or one axis) is cut into blocks. If the known points of a block, such as its
corners, have different answers, the block is divided, until they are neighbours in the grid.
Changes inside one coarse block remain unseen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

import numpy as np

from attnlab.displayed import Displayed
from attnlab.progress import ProgressOption, track
from attnlab.registry import unknown_name
from attnlab.sweep.definition import Sweep
from attnlab.sweep.run import run_sweep
from attnlab.sweep.table import read_results

FIRST_STEP = 8
"""The distance between the first points, in points of the grid."""

Point = tuple[int, ...]
Answer = Hashable


@dataclass(frozen=True)
class Refinement(Displayed):
    """The result of a refinement: known cells, cells of the whole grid, rounds, and failed
    cells.
    """

    cells: int
    total: int
    rounds: int
    failed: int

    def __repr__(self) -> str:
        return (
            f"Refinement({self.cells} of {self.total} cells in {self.rounds} rounds, {self.failed}"
            " failed)"
        )


def refine(
    sweep: Sweep,
    *columns: str,
    level: float | None = None,
    progress: ProgressOption = False,
    **options: Any,
) -> Refinement:
    """Compute the cells of a sweep near changes of a number over one or two axes, and return a
    Refinement.

    columns  one or two axes, and the number, as for `plot`
    level    the value that a number, averaged over the other axes, crosses; None: every change
             counts, and the answer of words
             is the most frequent one
    options  those of `Sweep.run`

    progress: False, True (a bar), a function f(fraction, doing), or an al.Progress, which can also
    cancel.
    """
    *axes, number = check_refinement(sweep, columns)
    shape = tuple(len(sweep.grid.axes[axis]) for axis in axes)
    failed = 0
    with track(progress, "refining") as progress:

        def ask(points: Sequence[Point]) -> dict[Point, Answer]:
            nonlocal failed
            tally = run_sweep(
                sweep, only=places_of(sweep, axes, points), progress=progress.next_part(), **options
            )
            failed += tally.failed
            return answers_at(sweep, axes, number, points, level)

        known, rounds = sample_changes(shape, ask)
    cells = len(places_of(sweep, axes, list(known)))
    return Refinement(cells, len(sweep.grid), rounds, failed)


def check_refinement(sweep: Sweep, columns: Sequence[str]) -> list[str]:
    """Return the columns. Raise an error unless they are one or two axes and a number."""
    if not 2 <= len(columns) <= 3:
        raise ValueError(
            "A refinement needs one or two axes and a number, x,number or x,y,number; got "
            f"{','.join(columns) or 'none'}."
        )
    for name in columns[:-1]:
        if name not in sweep.grid.axes:
            raise unknown_name("axis to refine", name, sweep.grid.names)
    if columns[-1] not in sweep.numbers:
        raise unknown_name("number to refine", columns[-1], sweep.numbers)
    return list(columns)


def sample_changes(
    shape: Sequence[int], ask: Callable[[Sequence[Point]], Mapping[Point, Answer]]
) -> tuple[dict[Point, Answer], int]:
    """Return ({point: answer} of the computed points, number of rounds) on a grid of this shape,
    with one or two axes.
    """
    known: dict[Point, Answer] = {}
    numbers = np.full(tuple(shape), -1)  # the answer at each point; -1: unknown
    kinds: dict[Answer, int] = {}
    blocks = _blocks([_first_indices(count) for count in shape])
    rounds = 0
    while True:
        wanted = sorted({corner for block in blocks for corner in _corners(block)} - known.keys())
        if wanted:
            rounds += 1
            for point, answer in ask(wanted).items():
                known[point] = answer
                numbers[point] = kinds.setdefault(answer, len(kinds))
        divided: list[Block] = []
        kept: list[Block] = []
        for block in blocks:
            seen = numbers[tuple(slice(low, high + 1) for low, high in block)]
            is_mixed = len(np.unique(seen[seen >= 0])) > 1 and any(
                high - low > 1 for low, high in block
            )
            (divided if is_mixed else kept).append(block)
        if not divided:
            return known, rounds
        blocks = kept + [
            part
            for block in divided
            for part in _blocks([_halves(low, high) for low, high in block])
        ]


def places_of(sweep: Sweep, axes: Sequence[str], points: Sequence[Point]) -> set[int]:
    """Return the places in the grid of all cells at these points of some axes."""
    shape = sweep.grid.shape
    number = {name: place for place, name in enumerate(sweep.grid.names)}
    kept = np.fromiter(sweep.grid.places(), int)
    indices = np.unravel_index(kept, shape)
    chosen = np.zeros([len(sweep.grid.axes[axis]) for axis in axes], dtype=bool)
    for point in points:
        chosen[point] = True
    return set(kept[chosen[tuple(indices[number[axis]] for axis in axes)]].tolist())


def answers_at(
    sweep: Sweep, axes: Sequence[str], number: str, points: Sequence[Point], level: float | None
) -> dict[Point, Answer]:
    """Return the answer at each point: the side of the level, the mean, or the most frequent word;
    None without values.
    """
    wanted = set(points)
    values: dict[Point, list[Any]] = {point: [] for point in points}
    place = {
        axis: {repr(value): index for index, value in enumerate(sweep.grid.axes[axis])}
        for axis in axes
    }
    for row in read_results(sweep).rows:
        point = tuple(place[axis][repr(_axis_value(row.axes, axis))] for axis in axes)
        value = row.numbers.get(number)
        if point in wanted and value is not None:
            values[point].append(value)
    return {point: _answer(found, level) for point, found in values.items()}


def _answer(values: Sequence[Any], level: float | None) -> Answer:
    if not values:
        return None
    if any(isinstance(value, str) for value in values):
        return min(Counter(values).items(), key=lambda item: (-item[1], item[0]))[0]
    mean = sum(values) / len(values)
    return mean if level is None else mean > level


def _axis_value(cell: Mapping[str, Any], axis: str) -> Any:
    keys = [key.strip() for key in axis.split(",")]
    return [cell[key] for key in keys] if len(keys) > 1 else cell[axis]


def _first_indices(count: int) -> list[int]:
    """0, FIRST_STEP, 2 FIRST_STEP, ... and the last index, in nearly equal steps."""
    steps = max(1, round((count - 1) / FIRST_STEP))
    return sorted({round(step * (count - 1) / steps) for step in range(steps + 1)})


Block = tuple[tuple[int, int], ...]


def _blocks(indices: Sequence[Sequence[int]]) -> list[Block]:
    """The blocks between neighbouring indices of each axis; an axis with one index has the block
    from it to itself.
    """
    sides = [list(pairwise(one)) or [(one[0], one[0])] for one in indices]
    return list(product(*sides))


def _halves(low: int, high: int) -> list[int]:
    return sorted({low, (low + high) // 2, high})


def _corners(block: Block) -> list[Point]:
    return list(product(*({low, high} for low, high in block)))
