"""The observables kept with the run, one panel each, over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from attnlab.render.kinds import Kind, Stage, kinds
from attnlab.render.kinds.paths import grid_of, line_height, time_label
from attnlab.render.literal import LONGEST_NAME, escape_words
from attnlab.render.panels import LinesPanel
from attnlab.render.panels.lines import DEEPEST, log_floor
from attnlab.render.scene import Scene
from attnlab.render.style import PALETTE, new_figure, paper_figure, title

MOST_LINES = len(PALETTE)
"""The most lines in a panel, one per colour."""

DECADES = 2.5
"""Positive values that span more powers of ten than this need a logarithmic axis, or the small ones
are a line at 0.
"""


def objection(scene: Scene) -> str | None:
    """Return why there is nothing to draw."""
    if scene.run.observed:
        return None
    return (
        "The kind of figure 'observed' needs a run with observables, and this one has none. Name"
        " them when it is computed: simulate(..., observe=['diameter', 'attention_rank'])."
    )


def asks_for_log(values: np.ndarray) -> bool:
    """Whether values, of any shape, are better seen on a logarithmic axis: none is negative, and
    they span some decades.
    """
    known = values[np.isfinite(values)]
    positive = known[known > 0]
    return bool(
        len(positive) > 1 and (known >= 0).all() and positive.max() > 10.0**DECADES * positive.min()
    )


def has_log_time(times: np.ndarray) -> bool:
    """Whether the times kept are themselves spread over decades: half of them are in the first
    fiftieth of the run.
    """
    positive = times[times > 0]
    return bool(
        len(positive) > 3 and asks_for_log(positive) and np.median(positive) < 0.02 * positive[-1]
    )


def make_panel(axes: Any, scene: Scene, name: str, dots: bool = False) -> LinesPanel:
    """The panel of one observable (T, ...): one line per entry of the axes after time, with a
    legend where there are several.
    """
    values = np.asarray(scene.run.observed[name], dtype=float)
    entries = list(np.ndindex(values.shape[1:]))[:MOST_LINES]
    lines = values.reshape(len(values), -1)[:, :MOST_LINES]
    colours = np.array([to_rgb(colour) for colour in PALETTE[: len(entries)]])
    panel = LinesPanel(
        axes,
        scene,
        lines,
        escape_words(name.replace("_", " "), LONGEST_NAME),
        colours=colours,
        dots=dots,
        scale="log" if asks_for_log(lines) else "linear",
        is_log_time=has_log_time(scene.times),
    )
    if len(entries) > 1:
        # every observable with one axis more than time has it for the heads
        word = "head " if values.shape[1:] == (scene.run.dynamics.weights.heads,) else ""
        names = [word + ", ".join(map(str, entry)) for entry in entries]
        axes.legend(
            [Line2D([], [], color=colour) for colour in colours],
            names,
            frameon=False,
            handlelength=1.4,
            fontsize=7 if scene.paper.is_narrow else 8.5,
            ncols=2 if scene.paper.is_narrow else 3,
            columnspacing=1.0,
            loc="lower right",
            bbox_to_anchor=(1.0, 1.0),
            borderaxespad=0.0,
        )  # above: never on a line
    return panel


def note(scene: Scene) -> str:
    """Describe what was left out, if anything."""
    cut = [name for name, values in scene.run.observed.items() if values[0].size > MOST_LINES]
    words = [f"The first {MOST_LINES} lines of {escape_words(', '.join(cut))}."] if cut else []
    for name, values in scene.run.observed.items():
        lines = np.asarray(values, dtype=float).reshape(len(values), -1)[:, :MOST_LINES]
        none = int((lines == 0).any(axis=1).sum()) if asks_for_log(lines) else 0
        if none:
            words.append(
                f"{escape_words(name.replace('_', ' '), LONGEST_NAME)}: 0 at {none} of {len(lines)}"
                " times, which a logarithmic axis cannot show."
            )
        low = (
            int((np.where(lines > 0, lines, np.inf) < log_floor(lines)).any(axis=1).sum())
            if asks_for_log(lines)
            else 0
        )
        if low:
            words.append(
                f"{escape_words(name.replace('_', ' '), LONGEST_NAME)}: below the axis, less than"
                f" {DEEPEST:.0e} of the start, at {low} of {len(lines)} times."
            )
    if has_log_time(scene.times) and scene.times[0] == 0:
        words.append("The clock is logarithmic, and t = 0 is left out.")
    return "  ".join(words)


def draw(scene: Scene, moments: Sequence[int], head: int | None = None) -> Figure:
    """Draw a grid of panels, one per observable."""
    del moments, head
    names = list(scene.run.observed)
    rows, columns = grid_of(len(names), scene.paper)
    figure = paper_figure(
        scene.paper, 10.5 if columns > 1 else 7.0, line_height(scene.paper) * rows
    )
    for number, name in enumerate(names):
        axes = figure.add_subplot(rows, columns, number + 1)
        make_panel(axes, scene, name).show(len(scene.times) - 1)
        if number >= len(names) - columns:
            axes.set_xlabel(time_label(scene))
    title(figure, scene.headline("Observables"), note(scene))
    return figure


def stage(scene: Scene, head: int | None = None) -> Stage:
    """The panels below each other, with lines that grow."""
    del head
    names = list(scene.run.observed)
    figure = new_figure(6.5, 1.6 * len(names) + 1.6, dpi=120)
    grid = figure.subplots(len(names), 1, squeeze=False)[:, 0]
    panels = [
        make_panel(axes, scene, name, dots=True) for axes, name in zip(grid, names, strict=True)
    ]
    panels[-1].axes.set_xlabel(time_label(scene))
    title(figure, scene.headline("Observables"), note(scene))

    def show(position: float) -> None:
        for panel in panels:
            panel.show(position)
        panels[0].axes.set_title(scene.clock(position, decimals=2))

    return figure, show


kinds.register("observed")(Kind(draw, stage, objection))
