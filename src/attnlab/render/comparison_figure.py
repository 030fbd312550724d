"""The figure of a comparison: which heads changed between checkpoints, by how much, and how surely.

Maps have one cell per head. Below them are the heads that changed most, with intervals over texts:
of one model a row per head, of several models a line per head.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Polygon, Rectangle
from matplotlib.patheffects import withStroke

from attnlab.models.checkpoints.head_names import name_head
from attnlab.models.studies.comparisons import (
    ROUNDING,
    each_model,
    has_other_matrices,
    most_changed,
)
from attnlab.render.head_map import CELL, SMALL_CELL, WRITTEN, draw_head_map
from attnlab.render.literal import LONGEST_NAME, escape_words
from attnlab.render.paper import SCREEN, Paper
from attnlab.render.style import (
    HULL,
    INK,
    LINES,
    MARKERS,
    PALETTE,
    RULE,
    SMALLEST,
    dress_flat,
    house_style,
    paper_figure,
    set_layout,
    title,
)
from attnlab.render.wrap import text_width, wrap

if TYPE_CHECKING:
    import pandas

MOST_ROWS = 10
"""The most heads in the rows of one model."""

MOST_LINES = 6
"""The most heads that have a line of their own; the others are grey."""

MOST_MAPS = 8
"""The most maps. Of more models these are evenly spaced ones, the first and the last among them."""

MAPS_IN_A_ROW = 4
DODGE = 0.045
"""How far the lines of two heads are apart, in steps."""

NUMBER = 0.42
"""Inches of a cell with a number but without an interval."""

LONGEST_STEP = 26
"""Characters of the name of one of several models."""


@dataclass(frozen=True)
class Change:
    """A column of a comparison in a figure: its name, what it says, and a factor to its unit."""

    name: str
    says: str
    factor: float = 100.0


MOVED = Change("attention_change", "attention that moved, %")
SINK = Change("sink_change", "first token's share, after − before, %")
ENTROPY = Change("entropy_change", "entropy, after − before, nats", 1.0)
VALUE = Change("value_change", "change of $V$, %")
SCORE = Change("score_change", "change of $M$, %")


def draw_comparison(frame: pandas.DataFrame, paper: Paper = SCREEN) -> Figure:
    """Draw what changed in each head from one model to others; frame: from `al.models.compare`."""
    parts = each_model(frame)
    has_texts = "attention_change" in frame
    with house_style(paper):
        maps = _choose_maps(parts, (MOVED,) if has_texts else (VALUE, SCORE))
        is_one = len(parts) == 1
        heads, layers = frame["head"].nunique(), frame["layer"].nunique()
        is_written = is_one and heads <= WRITTEN and not paper.is_narrow
        wide, high = _cell(is_written, has_texts)
        columns = paper.columns(len(maps), MAPS_IN_A_ROW if has_texts else 2)
        rows = -(-len(maps) // columns)
        if columns == 1:  # so that the maps of one bar stand together
            maps = sorted(maps, key=lambda one: one.change.name, reverse=True)
        width = max(columns * (wide * heads + 0.7) + 1.0, 6.8)
        tall = rows * (max(high * layers, 0.7) + 0.55) + (0.35 if has_texts else 0.8)
        below = _height_below(parts, has_texts)
        figure = paper_figure(paper, width, tall + below)
        set_layout(figure, h_pad=0.05)
        halves: Any = (
            figure.subfigures(2, 1, height_ratios=[tall, below])
            if below
            else [figure.subfigures(1, 1)]
        )
        cell = ((width if paper.width is None else paper.width) - 1.0) / columns / heads
        shape = (rows, columns)
        _draw_maps(halves[0], maps, shape, None if is_written else cell, frame.attrs)
        if is_one and has_texts:
            _draw_rows(halves[1], parts[0][1], paper)
        elif not is_one:
            _draw_lines(halves[1], parts, (MOVED, SINK) if has_texts else (VALUE, SCORE), paper)
        title(figure, *_words(frame, parts, maps, is_written))
    return figure


@dataclass(frozen=True)
class Map:
    """One map: its title (nothing if there is one model), the rows of a model, and the column that
    it shows.
    """

    title: str
    part: Any
    change: Change

    def grid(self, name: str) -> np.ndarray:
        """Return a column of the table as an array (layers, heads); NaN where there is no row."""
        wide = self.part.pivot(index="layer", columns="head", values=name)
        return np.asarray(wide.to_numpy(dtype=float))


def _choose_maps(parts: Sequence[tuple[str, Any]], changes: Sequence[Change]) -> list[Map]:
    most = MOST_MAPS // len(changes)
    shown = np.unique(np.linspace(0, len(parts) - 1, min(most, len(parts))).round().astype(int))
    is_one = len(parts) == 1
    found = []
    for number in shown:
        name, part = parts[number]
        for change in changes:
            says = "" if is_one else f"{number + 1}. {escape_words(name, LONGEST_STEP)}"
            found.append(Map(says, part, change))
    return found


def _cell(is_written: bool, has_texts: bool) -> tuple[float, float]:
    """Return width and height of a cell in inches."""
    if not is_written:
        return SMALL_CELL, SMALL_CELL
    return CELL if has_texts else (NUMBER, 0.3)


def _height_below(parts: Sequence[tuple[str, Any]], has_texts: bool) -> float:
    """Return the inches of what stands below the maps."""
    if len(parts) > 1:
        return 2.7
    return 0.2 * min(MOST_ROWS, len(parts[0][1])) + 0.75 if has_texts else 0.0


def _draw_maps(
    figure: Any,
    maps: Sequence[Map],
    shape: tuple[int, int],
    cell: float | None,
    facts: Mapping[str, Any],
) -> None:
    """Draw the maps, all on one scale for each column of the table. cell: inches of a cell without
    a number; None: cells have numbers.
    """
    rows, columns = shape
    panels = figure.subplots(rows, columns, squeeze=False)
    for axes in panels.ravel()[len(maps) :]:
        axes.axis("off")
    tops = {one.change.name: _top(maps, one.change) for one in maps}
    images: dict[Change, tuple[Any, list[Any]]] = {}
    for number, (axes, one) in enumerate(zip(panels.ravel(), maps, strict=False)):
        values = one.change.factor * one.grid(one.change.name)
        values[values <= one.change.factor * ROUNDING] = 0.0
        top = tops[one.change.name]
        reach = None
        if one.change is MOVED:
            ends = (one.grid(f"{one.change.name}_{end}") for end in ("high", "low"))
            reach = one.change.factor * np.subtract(*ends) / 2
            reach[values == 0] = np.nan
        image = draw_head_map(
            axes,
            values,
            top,
            reach=reach,
            digits=_digits(top),
            is_written=cell is None,
            cell=CELL[0] if cell is None else cell,
            layers=sorted(one.part["layer"].unique()),
        )
        images.setdefault(one.change, (image, []))[1].append(axes)
        if one.change is MOVED:
            _mark(axes, one, has_corners=not one.title)
        if one.title:
            axes.set_title(one.title, loc="left", fontsize=8.5)
        if number + columns >= len(maps):
            axes.set_xlabel("head")
        if number % columns == 0:
            axes.set_ylabel("layer")
        else:
            axes.set_yticklabels([])
        if facts.get("is_tied") and one.part["layer"].nunique() == 1:
            axes.set_yticks([0], ["all" if number % columns == 0 else ""])
    for change, (image, whose) in images.items():
        place: dict[str, Any] = {"aspect": 25}
        if columns > 1 and len(images) > 1:
            place = {"location": "bottom", "aspect": 40, "shrink": 0.8}
        bar = figure.colorbar(image, ax=whose, pad=0.02, **place)
        bar.set_label(change.says)
        bar.outline.set_visible(False)


def _top(maps: Sequence[Map], change: Change) -> float:
    """Return the largest value on the maps of a column, or 1 if nothing changed."""
    values = np.concatenate(
        [one.part[change.name].to_numpy(dtype=float) for one in maps if one.change is change]
    )
    values = values[np.isfinite(values) & (values > ROUNDING)]
    return change.factor * float(values.max()) if len(values) else 1.0


def _digits(top: float) -> int:
    """Return after how many digits a number is cut, so that the largest has two or more."""
    return int(np.clip(np.ceil(1 - np.log10(top)), 0, 4))


def _mark(axes: Any, one: Map, has_corners: bool) -> None:
    """Draw a box around heads that attend differently, and a corner where V or M changed."""
    layers = {layer: row for row, layer in enumerate(sorted(one.part["layer"].unique()))}
    columns = {head: column for column, head in enumerate(sorted(one.part["head"].unique()))}
    other = has_other_matrices(one.part)
    for row, is_other in zip(one.part.itertuples(), other, strict=True):
        x, y = columns[row.head] - 0.5, layers[row.layer] - 0.5
        if row.changed:
            axes.add_patch(
                Rectangle(
                    (x + 0.06, y + 0.06),
                    0.88,
                    0.88,
                    fill=False,
                    edgecolor=PALETTE[5],
                    linewidth=1.5,
                    path_effects=[withStroke(linewidth=3.2, foreground="white")],
                    clip_on=False,
                    zorder=3,
                )
            )
        if has_corners and is_other and not other.all():
            corner = [(x, y), (x + 0.42, y), (x, y + 0.42)]
            axes.add_patch(Polygon(corner, facecolor=PALETTE[1], linewidth=0, zorder=4))


def _label(change: Change, figure: Any, panels: int) -> str:
    """Return what a number says, on as many lines as a panel needs."""
    return wrap(change.says, figure.bbox.width / figure.dpi / panels - 0.3, 8.5)


def _draw_rows(figure: Any, part: pandas.DataFrame, paper: Paper) -> None:
    """Draw the heads that changed most, one row each, with intervals over the texts."""
    shown = most_changed(part, MOST_ROWS)
    names = [name_head(row.layer, row.head) for row in shown.itertuples()]
    panels = figure.subplots(1, 3, sharey=True)
    for axes, change in zip(panels, (MOVED, SINK, ENTROPY), strict=True):
        axes.axvline(0.0, color=HULL, linewidth=0.8, zorder=1)
        for place, row in enumerate(shown.itertuples()):
            value, low, high = (
                change.factor * getattr(row, f"{change.name}{end}") for end in ("", "_low", "_high")
            )
            colour = INK if row.changed else HULL
            axes.plot([low, high], [place, place], color=colour, linewidth=1.6, zorder=2)
            axes.plot(
                value,
                place,
                marker="o",
                markersize=4.5,
                color=colour,
                markerfacecolor=colour if row.changed else "white",
                zorder=3,
            )
        axes.set_xlabel(_label(change, figure, 3), fontsize=8.5)
        axes.set_ylim(len(names) - 0.4, -0.6)
        dress_flat(axes, 2 if paper.is_narrow else 4)
        axes.spines["left"].set_visible(False)
        axes.grid(axis="y", color=RULE, linewidth=0.4)
        axes.tick_params(axis="y", length=0)
    panels[0].set_yticks(range(len(names)), names, fontsize=8)


def _draw_lines(
    figure: Any,
    parts: Sequence[tuple[str, Any]],
    changes: Sequence[Change],
    paper: Paper,
) -> None:
    """Draw the heads that changed most from model to model, with intervals over the texts."""
    by_place = [part.set_index(["layer", "head"]) for _, part in parts]
    first = by_place[0].index
    sizes = np.array(
        [
            [one[change.name].get(place, np.nan) for place in first]
            for one in by_place
            for change in changes[: 1 if changes[0] is MOVED else 2]
        ],
        dtype=float,
    )
    largest = np.nan_to_num(sizes, nan=np.inf).max(axis=0)
    order = np.argsort(-largest, kind="stable")
    own = [first[number] for number in order[:MOST_LINES] if largest[number] > ROUNDING]
    others = [place for place in first if place not in own]
    panels = figure.subplots(1, len(changes))
    steps = np.arange(len(parts))
    for axes, change in zip(panels, changes, strict=True):
        axes.axhline(0.0, color=HULL, linewidth=0.8, zorder=1)
        for place in others:
            axes.plot(steps, _along(by_place, place, change), color=RULE, linewidth=0.8, zorder=1)
        for number, place in enumerate(own):
            aside = DODGE if changes[0] is MOVED else 0.0  # so that intervals do not cover others
            x = steps + aside * (number - (len(own) - 1) / 2)
            _draw_line(axes, x, by_place, place, change, number)
        axes.set_title(_label(change, figure, len(changes)), loc="left", fontsize=8.5)
        axes.set_xlim(-0.4, len(parts) - 0.6)
        dress_flat(axes)
        _name_steps(axes, [name for name, _ in parts], figure, paper, len(changes))
    marks = [
        Line2D(
            [],
            [],
            color=PALETTE[number],
            marker=MARKERS[number % 4],
            markersize=4.5,
            linestyle=LINES[number // 3],
            label=name_head(*place),
        )
        for number, place in enumerate(own)
    ]
    if others:
        marks.append(Line2D([], [], color=RULE, label=f"{len(others)} others"))
    figure.legend(
        handles=marks,
        loc="outside upper center",
        ncols=4 if paper.is_narrow else len(marks),
        frameon=False,
        fontsize=SMALLEST if paper.is_narrow else 8.5,
        handlelength=1.8,
        columnspacing=1.2,
        borderpad=0.0,
    )


def _along(by_place: Sequence[Any], place: Any, change: Change, end: str = "") -> np.ndarray:
    """Return a number of one head in all models; NaN where it has none."""
    name = f"{change.name}{end}"
    found = [
        float(one.at[place, name]) if name in one and place in one.index else np.nan
        for one in by_place
    ]
    return change.factor * np.array(found)


def _draw_line(
    axes: Any, x: np.ndarray, by_place: Sequence[Any], place: Any, change: Change, number: int
) -> None:
    """Draw one head with its intervals. A filled mark means that it attends differently."""
    values, low, high = (_along(by_place, place, change, end) for end in ("", "_low", "_high"))
    colour = PALETTE[number]
    axes.plot(x, values, color=colour, linewidth=1.3, linestyle=LINES[number // 3], zorder=2)
    axes.vlines(x, low, high, color=colour, linewidth=1.3, zorder=2)
    for at, value, one in zip(x, values, by_place, strict=True):
        is_filled = bool(one.at[place, "changed"]) if "changed" in one else True
        axes.plot(
            at,
            value,
            marker=MARKERS[number % 4],
            markersize=4.5,
            color=colour,
            markerfacecolor=colour if is_filled else "white",
            zorder=3,
        )


def _name_steps(axes: Any, names: Sequence[str], figure: Any, paper: Paper, panels: int) -> None:
    """Write the names of the models below the axis, or their numbers if names are too long."""
    width = figure.bbox.width / figure.dpi
    room = 0.9 * (width / panels - 0.6) / len(names)
    shown = [escape_words(name, LONGEST_STEP) for name in names]
    if max(text_width(name, 8.5) for name in shown) > room:
        shown = [str(number + 1) for number in range(len(names))]
    every = -(-len(names) // max(1, int(width / panels / 0.3)))
    axes.set_xticks(range(0, len(names), every), shown[::every])
    axes.set_xlabel("model")


def _words(
    frame: pandas.DataFrame,
    parts: Sequence[tuple[str, Any]],
    maps: Sequence[Map],
    is_written: bool,
) -> tuple[str, str]:
    """Return the headline and the note."""
    facts = frame.attrs
    before, texts = escape_words(facts["model"], LONGEST_NAME), facts["texts"]
    after = (
        escape_words(parts[0][0], LONGEST_NAME) if len(parts) == 1 else f"{len(parts)} other models"
    )
    over = f", mean over {texts} text{'s' if texts != 1 else ''}" if texts else ""
    what = "attention of each head" if texts else "matrices of each head"
    headline = f"From {before} to {after}: what changed in the {what}{over}"
    note = ["One cell is one head."]
    if not texts:
        note.append("Change of V and of M: |after − before| / |before|, in the Frobenius norm.")
    else:
        small = texts > 1 and is_written
        note.append(
            "Attention that moved: the share of a row that goes to other tokens"
            + (", and half the width of its 95 % interval over the texts." if small else ".")
        )
        if frame["changed"].any():
            filled = "filled marks" if len(parts) > 1 else "black dots"
            note.append(
                f"Boxes and {filled}: the first token's share, or the entropy, changed (paired"
                f" t-tests over texts, Holm's correction for all heads, {100 * facts['alpha']:g} %)."
            )
        elif texts > 1:
            note.append("In no head a test finds a change (paired t-tests, Holm's correction).")
        if len(parts) == 1:
            other = has_other_matrices(parts[0][1])
            if other.all():
                note.append("V or M changed in every head.")
            elif other.any():
                note.append("Corners: V or M itself changed.")
        if texts > 1:
            note.append("Bars: 95 % intervals over the texts.")
    shown = len(maps) if texts else len(maps) // 2
    if shown < len(parts):
        note.append(f"Maps show {shown} of the {len(parts)} models.")
    return headline, " ".join(note)
