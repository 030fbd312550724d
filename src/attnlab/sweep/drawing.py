"""The figure of the results of a sweep: `plot("phase.toml", "dynamics.beta", "spread")`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab.registry import unknown_name
from attnlab.sweep.curves import curves_over
from attnlab.sweep.grid import canonical_text, split_name
from attnlab.sweep.table import TIME, Results, Source, read_results, time_groups

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from attnlab.render.sweep_numbers import Curve, SweepTable


def plot(
    source: Source,
    *columns: str,
    small: bool = False,
    width: float | None = None,
    title: bool = True,
) -> Figure:
    """Return a matplotlib Figure of two or three columns of the results of a sweep.

    An axis and a number give a curve, and a second axis gives one curve per value. Two axes and a
    number give a heat map. Two numbers give one mark per run, coloured by a third column. "t" is an
    axis of numbers that are kept at several times. A number is averaged over the axes that are not
    named, and the figure says which interval it shows. Curves of the theory are drawn where there
    is one for these axes and this equation.

    Parameters
    ----------
    source : str, path or Sweep
        The .toml or .sqlite file of the sweep, or the Sweep.
    *columns : str
        Two or three names of axes and numbers.
    small : bool, optional
        Whether to draw the small version of the sweep.
    width : float, optional
        The width of the figure in inches.
    title : bool, optional
        False leaves out the headline and the note below.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> import attnlab as al
    >>> al.sweep.plot(sweep, "dynamics.beta", "spread").savefig("phase.png")
    """
    from attnlab.render.paper import Paper
    from attnlab.render.sweep_figure import draw_sweep

    paper = Paper(width, title)
    results = read_results(source, small=small)
    return draw_sweep(make_table(results, columns), columns, find_curves(results, columns), paper)


def check_columns(sweep: Any, columns: Sequence[str]) -> None:
    """Refuse columns that the results of a sweep cannot have, before anything is computed."""
    if not 2 <= len(columns) <= 3:
        raise ValueError(
            f"--plot takes two or three columns, x,y or x,y,z; got {','.join(columns) or 'none'}."
        )
    groups = time_groups(sweep.numbers)
    known = [*sweep.grid.keys, *sweep.numbers, *groups, *([TIME] if any(groups.values()) else [])]
    for name in columns:
        if name not in known:
            raise unknown_name("column of the sweep", name, known)


def make_table(results: Results, columns: Sequence[str]) -> SweepTable:
    """Return the rows as columns for the figure. With "t" each row appears once per time."""
    from attnlab.render.sweep_numbers import SweepTable

    groups = time_groups(results.numbers)
    keys = list(results.keys)
    order: dict[str, Sequence[Any]] = {}
    for name, axis in results.axes.items():
        parts = split_name(name)
        order |= zip(parts, zip(*axis, strict=True) if len(parts) > 1 else [axis], strict=True)
    if TIME not in columns or TIME in keys:
        for name in columns:
            if groups.get(name):
                raise ValueError(
                    f"{name} is kept at {len(groups[name])} times: name t as well, --plot t,{name},"
                    f" or one time, {name}@{groups[name][0]!r}."
                )
        made = {key: [row.axes.get(key) for row in results.rows] for key in keys}
        made |= {name: [row.numbers.get(name) for row in results.rows] for name in results.numbers}
        return SweepTable(made, keys, results.path.stem, order)
    names = [name for name in columns if groups.get(name)]
    if not names:
        raise ValueError(
            "t is the axis of numbers at several times, such as at = [0.5, 1]. Name such a number"
            " too."
        )
    times = groups[names[0]]
    made = {key: [row.axes.get(key) for row in results.rows for _ in times] for key in keys}
    made[TIME] = [time for _ in results.rows for time in times]
    for name, own in groups.items():
        if own == times:
            made[name] = [
                row.numbers.get(f"{name}@{time!r}") for row in results.rows for time in times
            ]
        elif not own:
            made[name] = [row.numbers.get(name) for row in results.rows for _ in times]
    return SweepTable(made, [*keys, TIME], results.path.stem, order)


def find_curves(results: Results, columns: Sequence[str]) -> list[Curve]:
    """Return the curves of the theory over the columns of a figure, cut at its border."""
    from attnlab.render.sweep_numbers import Curve

    if results.sweep is None:
        return []
    axes = [name for name in columns if name in (*results.keys, TIME)]
    numbers = [name for name in columns if name not in axes]
    if len(numbers) != 1 or list(columns[:1]) != axes[:1]:
        return []
    places = _numbers(results, axes[0])
    if places is None:
        return []
    drawn = []
    is_plane = list(columns[:2]) == axes[:2]
    for curve, x, y in curves_over(
        results.sweep, axes if is_plane else axes[:1], numbers[0], places
    ):
        if is_plane and (others := _numbers(results, axes[1])) is not None:
            inside = (y >= others.min()) & (y <= others.max())
            x, y = x[inside], y[inside]
        if len(x):
            drawn.append(Curve(x, y, curve.words, curve.citation))
    return drawn


def _numbers(results: Results, key: str) -> np.ndarray | None:
    """Return the values of an axis as numbers, or None if they are not numbers."""
    if key == TIME:
        return np.array(
            sorted({time for times in time_groups(results.numbers).values() for time in times})
        )
    values = {canonical_text(row.axes.get(key)): row.axes.get(key) for row in results.rows}.values()
    if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return None
    return np.array(list(values), dtype=float)
