"""The figure of a sweep: heat maps, curves and scatter plots, with the uncertainty over the axes
that are not shown.

    x, y       an axis and a number: a curve          two numbers: a scatter plot
    x, y, z    two axes and a number: a heat map      an axis, a number and an axis: one curve per value of z
               two numbers and a column: a scatter plot, coloured by z
A number that is 0 or 1, true or false, is a share of the runs, with Wilson's interval; other
numbers have a mean, with Student's. Words are categories: the share of each of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from matplotlib.figure import Figure

from attnlab.analysis.intervals import wilson_interval
from attnlab.registry import unknown_name
from attnlab.render.literal import escape_words
from attnlab.render.paper import SCREEN, Paper
from attnlab.render.style import house_style, paper_figure, title
from attnlab.render.sweep_numbers import (
    Answers,
    Coordinate,
    Curve,
    SweepTable,
    is_missing,
    read_answers,
)
from attnlab.render.sweep_panels import draw_heat, draw_lines, draw_scatter

MOST_CATEGORIES = 6
"""Categories that are drawn, the most frequent ones."""


def draw_sweep(
    table: SweepTable, wanted: Sequence[str], curves: Sequence[Curve] = (), paper: Paper = SCREEN
) -> Figure:
    """The figure of two or three columns of a sweep."""
    _check_names(table, wanted)
    are_axes = [name in table.axes for name in wanted]
    with house_style(paper):
        if are_axes in ([True, False], [True, False, True]):
            return _curves_figure(table, wanted, curves, paper)
        if are_axes == [True, True, False]:
            return _heat_figure(table, wanted, curves, paper)
        if are_axes[:2] == [False, False]:
            return _scatter_figure(table, wanted, paper)
    raise ValueError(
        "The columns to plot must be an axis and a number, two axes and a number, an axis, a"
        f" number and an axis, or two numbers; got {_words(table, wanted)}."
    )


def _check_names(table: SweepTable, wanted: Sequence[str]) -> None:
    if not 2 <= len(wanted) <= 3 or len(set(wanted)) < len(wanted):
        raise ValueError(
            "A figure of a sweep shows two or three different columns, x,y or x,y,z; got "
            f"{','.join(wanted) or 'none'}."
        )
    for name in wanted:
        if name not in table.columns:
            raise unknown_name("column of the sweep", name, table.columns)
    if not any(len(column) for column in table.columns.values()):
        raise ValueError("The sweep has no rows yet, so there is nothing to draw. Run it first.")


def _words(table: SweepTable, wanted: Sequence[str]) -> str:
    return ", ".join(
        f"{name} ({'an axis' if name in table.axes else 'a number'})" for name in wanted
    )


def _curves_figure(
    table: SweepTable, wanted: Sequence[str], curves: Sequence[Curve], paper: Paper
) -> Figure:
    """One line per value of z, or per category; categories and z together stand in one panel per
    category.
    """
    x = _coordinate(table, wanted[0])
    z = _coordinate(table, wanted[2]) if len(wanted) == 3 else None
    answers = read_answers(wanted[1], table.columns[wanted[1]])
    kinds = _kinds(answers)
    if z is None and len(kinds) > 1:  # one panel, one line per category
        figure, grid = _panels(paper, 1, 6.6, 3.6)
        runs = draw_lines(
            figure,
            grid[0],
            x,
            [(kind.name, kind, np.ones(len(x.places), bool)) for kind in kinds],
            None,
        )
        grid[0].set_ylabel("share of the runs")
    else:
        figure, grid = _panels(paper, len(kinds), 6.6, 3.6)
        runs = []
        for axes, kind in zip(grid, kinds, strict=True):
            groups = (
                [("", kind, np.ones(len(x.places), bool))]
                if z is None
                else [(z.word(point), kind, z.places == point) for point in z.points]
            )
            runs += draw_lines(figure, axes, x, groups, z, curves if axes is grid[0] else ())
            if len(kinds) > 1:
                axes.set_title(_word(kind.name))
        grid[0].set_ylabel("share of the runs" if len(kinds) > 1 else _number_label(answers, runs))
    shown = f"{_name(wanted[1])} against {x.label}" + (
        f", one line per value of {z.label}" if z is not None else ""
    )
    title(
        figure,
        f"{escape_words(table.title)}: {shown}",
        _note(
            table,
            wanted,
            answers,
            runs,
            "Bars:" if x.labels is not None or len(x.points) == 1 else "Bands:",
            curves,
        ),
    )
    return figure


def _heat_figure(
    table: SweepTable, wanted: Sequence[str], curves: Sequence[Curve], paper: Paper
) -> Figure:
    """The mean or the share in colour; beside it half the width of its interval, where cells have
    several runs.
    """
    x, y = _coordinate(table, wanted[0]), _coordinate(table, wanted[1])
    answers = read_answers(wanted[2], table.columns[wanted[2]])
    kinds = _kinds(answers)
    many = max(Counter(zip(x.places, y.places, strict=True)).values())
    has_repeats = len(kinds) == 1 and many > 1
    count = 2 if has_repeats else len(kinds)
    figure, grid = _panels(paper, count, 4.6 if count > 1 else 6.2, 3.7, is_shared=True)
    runs: list[int] = []
    for axes, kind in zip(grid, kinds, strict=False):
        label = (
            _number_label(answers, [many])
            if len(kinds) == 1
            else "share of the runs"
            if axes is grid[-1]
            else ""
        )
        runs += draw_heat(figure, axes, x, y, kind, label, curves)
        if len(kinds) > 1:
            axes.set_title(_word(kind.name))
    if has_repeats:
        draw_heat(
            figure,
            grid[1],
            x,
            y,
            kinds[0],
            "half the width of the 95 % interval",
            curves,
            is_width=True,
        )
    grid[0].set_ylabel(y.label)
    title(
        figure,
        f"{escape_words(table.title)}: {_name(wanted[2])} over {x.label} and {y.label}",
        _note(
            table,
            wanted,
            answers,
            runs,
            "Right: half the width of the" if has_repeats else "",
            curves,
        ),
    )
    return figure


def _scatter_figure(table: SweepTable, wanted: Sequence[str], paper: Paper) -> Figure:
    """One mark per run."""
    x, y = (read_answers(name, table.columns[name]) for name in wanted[:2])
    z = _coordinate(table, wanted[2]) if len(wanted) == 3 else None
    figure, grid = _panels(paper, 1, 6.2, 4.0)
    shown = draw_scatter(figure, grid[0], x, y, z)
    left = len(x.values) - shown
    words = f" {left} of {len(x.values)} runs have no value and are left out." if left else ""
    title(
        figure,
        f"{escape_words(table.title)}: {_name(wanted[1])} against {_name(wanted[0])}",
        f"One mark per run, {shown} in all.{words}",
    )
    return figure


def _coordinate(table: SweepTable, name: str) -> Coordinate:
    """The column as coordinates; an axis has no missing values, but a number that colours a scatter
    plot may.
    """
    column = table.columns[name]
    if name not in table.axes and any(map(is_missing, column)):
        column = ["none" if is_missing(value) else value for value in column]
    return Coordinate(name, column, table.order.get(name, ()))


def _kinds(answers: Answers) -> list[Answers]:
    """The number itself, or the share of each of its most frequent categories."""
    if answers.kind != "category":
        return [answers]
    counts = Counter(answers.values[~np.isnan(answers.values)].astype(int).tolist())
    chosen = sorted(number for number, _ in counts.most_common(MOST_CATEGORIES))
    return [answers.of_category(number) for number in chosen]


def _panels(
    paper: Paper, count: int, width: float, height: float, is_shared: bool = False
) -> tuple[Figure, list]:
    columns = paper.columns(count, 3, panel=2.6)
    rows = -(-count // columns)
    figure = paper_figure(
        paper,
        width * columns if columns > 1 else width,
        height * rows * (0.75 if paper.is_narrow else 1.0),
    )
    grid = figure.subplots(rows, columns, squeeze=False, sharey=True).ravel()
    for axes in grid[count:]:
        axes.remove()
    return figure, list(grid[:count])


def _name(name: str) -> str:
    return _word(name.replace("_", " "))


def _word(words: str) -> str:
    return escape_words(words, 60)


def _number_label(answers: Answers, runs: Iterable[int]) -> str:
    """The label of the axis of a number: what was averaged."""
    name = _name(answers.name)
    if answers.kind == "share":
        return f"share of the runs with {name}"
    return name if max(runs, default=2) <= 1 else f"mean of {name}"


def _note(
    table: SweepTable,
    wanted: Sequence[str],
    answers: Answers,
    runs: Sequence[int],
    where: str,
    curves: Sequence[Curve],
) -> str:
    """How to read the figure: over what it averages, which interval it shows, what is missing, and
    what the curves are.
    """
    parts = []
    is_heat = where not in ("Bands:", "Bars:")
    present = [run for run in runs if run]
    if present and max(present) > 1:
        others = averaged_axes(table, [name for name in wanted if name in table.axes])
        many = (
            f"{max(present)}"
            if min(present) == max(present)
            else f"{min(present)} to {max(present)}"
        )
        over = f" over {', '.join(map(_word, others))}" if others else ""
        parts.append(
            f"{'Mean' if answers.kind == 'mean' else 'Share'} of {many} runs per point{over}."
        )
        interval = "Student's t" if answers.kind == "mean" else "Wilson"
        parts.append(
            f"{where} 95 % interval ({interval})."
            if where
            else f"95 % interval (Wilson) of a share: at most ± {_widest_share(min(present)):.2f}."
        )
    elif present:
        parts.append("One run per point, so there is no interval.")
    if len(present) < len(runs):
        parts.append("Grey: no value." if is_heat else "Some points have no value.")
    if answers.missing:
        parts.append(
            f"{answers.missing} of {len(answers.values)} runs have no value and are left out."
        )
    if answers.kind == "category" and len(answers.categories) > MOST_CATEGORIES:
        parts.append(
            f"The {MOST_CATEGORIES} most frequent of {len(answers.categories)} categories."
        )
    parts += [f"Curve: {_sentence(curve.words)} ({curve.citation})." for curve in curves]
    return " ".join(parts)


def averaged_axes(table: SweepTable, shown: Sequence[str]) -> list[str]:
    """The axes that change while those that are shown stay: an axis that changes together with one
    of them is not averaged.
    """
    points = list(zip(*(map(repr, table.columns[name]) for name in shown), strict=True))
    averaged = []
    for name in table.axes:
        first: dict[tuple[str, ...], str] = {}
        if name not in shown and any(
            first.setdefault(point, value) != value
            for point, value in zip(points, map(repr, table.columns[name]), strict=True)
        ):
            averaged.append(name)
    return averaged


def _widest_share(runs: int) -> float:
    """Half the width of Wilson's interval where it is widest: at one half."""
    low, high = wilson_interval(runs // 2, runs)
    return (high - low) / 2


def _sentence(words: str) -> str:
    return words.rstrip(". ")
