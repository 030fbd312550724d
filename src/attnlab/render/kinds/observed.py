"""The observables kept with the run, one panel each, over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from attnlab.render.kinds import Kind, Stage, kinds
from attnlab.render.kinds.paths import grid_of, time_label
from attnlab.render.literal import LONGEST_NAME, escape_words
from attnlab.render.panels import LinesPanel
from attnlab.render.scene import Scene
from attnlab.render.style import PALETTE, new_figure, title

MOST_LINES = len(PALETTE)
"""Lines in a panel: one a colour."""


def objection(scene: Scene) -> str | None:
    """Why there is nothing to draw."""
    if scene.run.observed:
        return None
    return ("The kind of figure 'observed' needs a run with observables, and this one has none. Name them when it is computed: "
            "simulate(..., observe=['diameter', 'attention_rank']).")


def make_panel(axes: Any, scene: Scene, name: str, dots: bool = False) -> LinesPanel:
    """The panel of one observable (T, ...): a line an entry of the axes after time, with a legend where there are several."""
    values = np.asarray(scene.run.observed[name], dtype=float)
    entries = list(np.ndindex(values.shape[1:]))[:MOST_LINES]
    lines = values.reshape(len(values), -1)[:, :MOST_LINES]
    colours = np.array([to_rgb(colour) for colour in PALETTE[: len(entries)]])
    panel = LinesPanel(axes, scene, lines, escape_words(name.replace("_", " "), LONGEST_NAME), colours=colours, dots=dots)
    if len(entries) > 1:
        # every observable with one axis more than time has it for the heads
        word = "head " if values.shape[1:] == (scene.run.dynamics.weights.heads,) else ""
        names = [word + ", ".join(map(str, entry)) for entry in entries]
        axes.legend([Line2D([], [], color=colour) for colour in colours], names, frameon=False, fontsize=8.5, handlelength=1.4,
                    ncols=3, loc="lower right", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.0)       # above: never on a line
    return panel


def note(scene: Scene) -> str:
    """What was left out, if anything."""
    cut = [name for name, values in scene.run.observed.items() if values[0].size > MOST_LINES]
    return f"The first {MOST_LINES} lines of {escape_words(', '.join(cut))}." if cut else ""


def draw(scene: Scene, moments: Sequence[int], head: int | None = None) -> Figure:
    """A grid of panels, one an observable."""
    del moments, head
    names = list(scene.run.observed)
    rows, columns = grid_of(len(names))
    figure = new_figure(10.5 if columns > 1 else 7.0, 2.6 * rows + 0.85)
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
    panels = [make_panel(axes, scene, name, dots=True) for axes, name in zip(grid, names, strict=True)]
    panels[-1].axes.set_xlabel(time_label(scene))
    title(figure, scene.headline("Observables"), note(scene))

    def show(position: float) -> None:
        for panel in panels:
            panel.show(position)
        panels[0].axes.set_title(scene.clock(position, decimals=2))

    return figure, show


kinds.register("observed")(Kind(draw, stage, objection))
