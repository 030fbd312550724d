"""The panels of the figure of a sweep: lines with bands, heat maps, and marks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

from attnlab.render.kinds.observed import asks_for_log
from attnlab.render.literal import escape_words
from attnlab.render.style import INK, LINES, MARKERS, NOTE, PALETTE, RULE, TOKENS, dress_flat
from attnlab.render.sweep_numbers import Answers, Coordinate, Curve, rows_at

MOST_LINES = len(PALETTE)
"""Lines with colours of their own and a legend; more of them have colours from a scale."""

FEW = 8
"""Points of an axis that all have a tick."""

MOST_MARKS = 30
"""Points of a line that have marks."""

Group = tuple[str, Answers, np.ndarray]
"""A line: its word in the legend, its number, and the rows it is made of."""


def draw_lines(
    figure: Figure,
    axes: Any,
    x: Coordinate,
    groups: Sequence[Group],
    z: Coordinate | None,
    curves: Sequence[Curve] = (),
) -> list[int]:
    """Draw one line with its band per group; returns the numbers of runs at the points."""
    runs: list[int] = []
    has_scale = z is not None and z.is_number and len(groups) > MOST_LINES
    colours = _scale_colours(z) if has_scale and z is not None else None
    tops: list[np.ndarray] = []
    for number, (word, answers, rows) in enumerate(groups):
        found = [answers.summary(rows & (x.places == point)) for point in x.points]
        runs += [one.runs for one in found]
        middle, low, high = (
            np.array([getattr(one, name) for one in found]) for name in ("middle", "low", "high")
        )
        known = np.isfinite(middle)
        if not known.any():
            continue
        points = x.points[known]
        colour = PALETTE[number % len(PALETTE)] if colours is None else colours[number]
        marker = MARKERS[number % len(MARKERS)] if colours is None else "o"
        dash = LINES[number // len(PALETTE) % len(LINES)] if colours is None else "solid"
        axes.plot(
            points,
            middle[known],
            color=colour,
            linewidth=1.4,
            marker=marker if len(points) <= MOST_MARKS else "",
            markersize=3.6,
            linestyle="none" if x.labels is not None else dash,
            label=word or None,
            zorder=3,
        )
        if x.labels is not None or len(points) == 1:  # words have no neighbours: bars, and no band
            error = np.nan_to_num(np.array([middle - low, high - middle]))[:, known]
            axes.errorbar(
                points,
                middle[known],
                yerr=np.maximum(error, 0.0),
                fmt="none",
                ecolor=colour,
                elinewidth=1.0,
                capsize=2,
            )
        else:
            axes.fill_between(
                points, low[known], high[known], color=colour, alpha=0.18, linewidth=0, zorder=2
            )
        tops.append(middle[known])
    _dress_x(axes, x)
    _dress_number(axes, groups[0][1], np.concatenate(tops) if tops else np.zeros(0))
    for number, curve in enumerate(curves):
        axes.plot(
            curve.x,
            curve.y,
            color=INK,
            linewidth=1.1,
            linestyle=LINES[1 + number % 3],
            zorder=4,
            label="theory",
        )
    if has_scale and z is not None:
        _draw_bar(figure, axes, matplotlib.cm.ScalarMappable(_norm(z), TOKENS), z.label)
    elif len(groups) > 1 or curves:
        axes.legend(
            frameon=False,
            fontsize=8,
            title=z.label if z is not None else None,
            title_fontsize=8,
            loc="center left",
            bbox_to_anchor=(1.0, 0.5),
        )
    return runs


def draw_heat(
    figure: Figure,
    axes: Any,
    x: Coordinate,
    y: Coordinate,
    answers: Answers,
    label: str,
    curves: Sequence[Curve],
    is_width: bool = False,
) -> list[int]:
    """Draw the middles, or half the widths of the intervals, over two axes; returns the numbers of
    runs in the cells.

    Without a label there is no colour bar.
    """
    shape = (len(y.points), len(x.points))
    found = [
        [answers.summary(rows_at((x.places, column), (y.places, row))) for column in x.points]
        for row in y.points
    ]
    if is_width:
        values = np.array([[(one.high - one.low) / 2 for one in row] for row in found]).reshape(
            shape
        )
    else:
        values = np.array([[one.middle for one in row] for row in found]).reshape(shape)
    known = values[np.isfinite(values)]
    if not is_width and (
        answers.kind == "share"
        or (known.size and known.min() >= 0 and known.max() <= 1 < 2 * known.max())
    ):
        norm: Normalize = Normalize(0.0, 1.0)
    elif known.size and known.min() > 0 and known.max() > 30 * known.min() and not is_width:
        norm = LogNorm(known.min(), known.max())
    else:
        low, high = (known.min(), known.max()) if known.size else (0.0, 1.0)
        norm = Normalize(
            0.0 if is_width or 0 <= low < 0.3 * high else low, high if high > low else low + 1.0
        )
    axes.set_facecolor(RULE)  # a cell without a value
    image = axes.pcolormesh(
        x.edges(),
        y.edges(),
        np.ma.masked_invalid(values),
        cmap="Greys" if is_width else TOKENS,
        norm=norm,
        rasterized=True,
    )
    _dress_x(axes, x)
    _dress_y(axes, y)
    axes.spines[:].set_visible(False)
    axes.set_xlim(x.edges()[[0, -1]])
    axes.set_ylim(y.edges()[[0, -1]])
    for number, curve in enumerate(curves):
        axes.plot(
            curve.x,
            curve.y,
            color="white" if not is_width else INK,
            linewidth=1.6,
            linestyle=LINES[number % len(LINES)],
            path_effects=[withStroke(linewidth=3.0, foreground=INK if not is_width else "white")],
            zorder=4,
        )
    if label:
        _draw_bar(figure, axes, image, label)
    return [one.runs for row in found for one in row]


def draw_scatter(figure: Figure, axes: Any, x: Answers, y: Answers, z: Coordinate | None) -> int:
    """Draw one mark per run; returns how many."""
    known = ~np.isnan(x.values) & ~np.isnan(y.values)
    if z is not None and z.is_number and len(z.points) > MOST_LINES:
        marks = axes.scatter(
            x.values[known],
            y.values[known],
            c=z.places[known],
            cmap=TOKENS,
            norm=_norm(z),
            s=14,
            linewidths=0,
        )
        _draw_bar(figure, axes, marks, z.label)
    else:
        groups = (
            [("", known)]
            if z is None
            else [(z.word(point), known & (z.places == point)) for point in z.points]
        )
        for number, (word, rows) in enumerate(groups):
            axes.scatter(
                x.values[rows],
                y.values[rows],
                s=14,
                color=PALETTE[number % len(PALETTE)],
                linewidths=0,
                marker=MARKERS[number % len(MARKERS)],
                alpha=0.75,
                label=word or None,
            )
        if z is not None:
            axes.legend(
                frameon=False,
                fontsize=8,
                title=z.label,
                title_fontsize=8,
                loc="center left",
                bbox_to_anchor=(1.0, 0.5),
            )
    for answers, axis, is_x in ((x, axes.xaxis, True), (y, axes.yaxis, False)):
        (axes.set_xlabel if is_x else axes.set_ylabel)(
            escape_words(answers.name.replace("_", " "), 60)
        )
        if answers.kind == "category":
            axis.set_ticks(
                range(len(answers.categories)),
                [escape_words(word, 24) for word in answers.categories],
            )
        elif asks_for_log(answers.values):
            (axes.set_xscale if is_x else axes.set_yscale)(
                "symlog", linthresh=_least(answers.values)
            )
    dress_flat(axes)
    return int(known.sum())


def _draw_bar(figure: Figure, axes: Any, colours: Any, label: str) -> None:
    bar = figure.colorbar(colours, ax=axes, pad=0.02, aspect=28)
    bar.set_label(label)
    bar.outline.set_visible(False)
    if isinstance(bar.norm, LogNorm):
        decades = np.log10(float(bar.norm.vmax or 1.0) / float(bar.norm.vmin or 1.0))
        bar.ax.yaxis.set_major_locator(
            LogLocator(subs=(1.0, 2.0, 5.0) if decades < 2.5 else (1.0,))
        )
        bar.ax.yaxis.set_major_formatter(lambda value, place: f"{value:g}")
        bar.ax.yaxis.set_minor_formatter(NullFormatter())


def _least(values: np.ndarray) -> float:
    return float(values[values > 0].min())


def _norm(z: Coordinate) -> Normalize:
    low, high = float(z.points[0]), float(z.points[-1])
    return LogNorm(low, high) if z.is_log else Normalize(low, high)


def _scale_colours(z: Coordinate) -> list[Any]:
    norm = _norm(z)
    return [TOKENS(norm(point)) for point in z.points]


def _dress_x(axes: Any, x: Coordinate) -> None:
    axes.set_xlabel(x.label)
    _dress(axes.xaxis, x, axes.set_xscale)
    if x.labels is not None and sum(map(len, x.labels)) > 40:
        axes.tick_params(axis="x", labelrotation=30)


def _dress_y(axes: Any, y: Coordinate) -> None:
    _dress(axes.yaxis, y, axes.set_yscale)


def _dress(axis: Any, coordinate: Coordinate, set_scale: Any) -> None:
    """The scale and the ticks of an axis of the sweep."""
    if coordinate.labels is not None:
        axis.set_ticks(range(len(coordinate.labels)), coordinate.labels)
        return
    points = coordinate.points
    if coordinate.is_log:
        set_scale("log")
        if len(points) <= FEW:
            axis.set_ticks(points, [f"{point:g}" for point in points])
            axis.set_ticks([], minor=True)
            return
        decades = np.log10(points[-1] / points[0])
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if decades < 2.5 else (1.0,)))
        axis.set_major_formatter(lambda value, place: f"{value:g}")
        axis.set_minor_formatter(NullFormatter())
    elif len(points) <= FEW and (points == points.round()).all() and np.ptp(points) <= 12:
        axis.set_ticks(points, [f"{point:g}" for point in points])
    else:
        axis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))


def _dress_number(axes: Any, answers: Answers, middles: np.ndarray) -> None:
    """The axis of the number: shares from 0 to 1, several decades on a logarithmic one."""
    axes.spines[["top", "right"]].set_visible(False)
    if answers.kind == "share":
        axes.set_ylim(-0.03, 1.03)
        axes.set_yticks([0, 0.25, 0.5, 0.75, 1.0], ["0", "25 %", "50 %", "75 %", "100 %"])
        for edge in (0.0, 1.0):
            axes.axhline(edge, color=RULE, linewidth=0.6, zorder=0)
    elif (
        asks_for_log(middles) and (middles > 0).all() and not 0.2 < middles.max() <= 1
    ):  # a share is read from 0 to 1
        axes.set_yscale("log")
        axes.set_ylim(middles.min() / 2, middles.max() * 2)
    axes.tick_params(axis="y", labelcolor=INK, color=NOTE)
