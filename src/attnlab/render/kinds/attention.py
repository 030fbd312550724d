"""Attention matrices at a few times, one row per head, with their numerical ranks."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from attnlab.render.kinds import PANELS, Kind, Stage, kinds
from attnlab.render.moments import take_attention
from attnlab.render.panels import HeatPanel
from attnlab.render.panels.heat import token_order
from attnlab.render.paper import Paper
from attnlab.render.scene import Scene
from attnlab.render.style import new_figure, paper_figure, title

MOST_HEADS = 4
"""The number of heads shown by default."""

BAR = 0.9
"""Inches for the colour bar with its label."""


def chosen_heads(scene: Scene, head: int | None) -> list[int]:
    """Return the heads to draw: the given one, or the first few."""
    count = scene.run.dynamics.weights.heads
    if head is None:
        return list(range(min(count, MOST_HEADS)))
    if not isinstance(head, numbers.Integral) or not 0 <= head < count:
        raise ValueError(f"head must be the number of a head, from 0 to {count - 1}, got {head!r}.")
    return [int(head)]


def heat_columns(paper: Paper, count: int) -> int:
    """How many heat maps stand side by side: all, but in a given width only as many as can be
    read.
    """
    return paper.columns(count, count)


def heat_height(paper: Paper, columns: int, usual: float) -> float:
    """Inches that a heat map is high, with its title: it is square."""
    width = usual if paper.width is None else paper.width
    return (width - BAR) / columns + (0.3 if paper.is_narrow else 0.4)


def draw(scene: Scene, moments: Sequence[int], head: int | None = None) -> Figure:
    """Draw heat maps, one column per time and one row per head, with one colour bar."""
    heads, paper = chosen_heads(scene, head), scene.paper
    columns = heat_columns(paper, len(moments))
    rows = len(heads) * -(-len(moments) // columns)
    usual = max(2.6 * len(moments), 4.0) + 0.9
    figure = paper_figure(paper, usual, heat_height(paper, columns, usual) * rows)
    draw_heat_maps(figure, figure.subplots(rows, columns, squeeze=False), scene, heads, moments)
    title(
        figure,
        headline(scene, heads),
        f"P: row i is the attention of token i; {token_order(scene)[1]}.",
    )
    return figure


def draw_heat_maps(
    figure: Figure, grid: Any, scene: Scene, heads: Sequence[int], moments: Sequence[int]
) -> list[HeatPanel]:
    """Fill a grid of axes with heat maps, the times of a head in as many rows as they need; one
    colour bar beside them.
    """
    order, _ = token_order(scene)
    rows, columns = grid.shape
    each = rows // len(heads)  # rows of a head
    panels, bottom = [], set()
    for number, head in enumerate(heads):
        for place, axes in enumerate(grid[number * each : (number + 1) * each].ravel()):
            if place >= len(moments):
                axes.axis("off")
                continue
            panel = HeatPanel(axes, scene, head, order)
            panel.show(moments[place])
            panel.set_title(scene.clock(moments[place]))
            panels.append(panel)
            if place % columns == 0:
                axes.set_ylabel(
                    f"head {head}" if scene.run.dynamics.weights.heads > 1 else "token i"
                )
            if number == len(heads) - 1 and place + columns >= len(moments):
                bottom.add(axes)
    for axes in bottom:
        axes.set_xlabel("token j")
    bar = figure.colorbar(
        panels[0].image,
        ax=grid,
        shrink=0.85 if rows == 1 else 0.5,
        aspect=30,
        pad=0.02,
        extend="min",
    )
    bar.set_label("weight $P_{ij}$")
    bar.outline.set_visible(False)
    return panels


def headline(scene: Scene, heads: Sequence[int]) -> str:
    """Describe the heads of the attention."""
    count = scene.run.dynamics.weights.heads
    which = (
        ""
        if count == 1
        else f" of head{'s' if len(heads) > 1 else ''} {', '.join(map(str, heads))}"
    )
    return scene.headline(f"Attention P{which}")


def stage(scene: Scene, head: int | None = None) -> Stage:
    """Draw one moving heat map per head."""
    heads = chosen_heads(scene, head)
    figure = new_figure(4.4 * len(heads) + 0.8, 5.0, dpi=120)
    grid = (
        figure.subplots(len(heads), 1, squeeze=False)
        if len(heads) == 1
        else figure.subplots(1, len(heads), squeeze=False).T
    )
    panels = draw_heat_maps(figure, grid, scene, heads, [0])
    title(figure, headline(scene, heads), f"{token_order(scene)[1]}".capitalize() + ".")

    def show(position: float) -> None:
        for panel in panels:
            panel.show(position)
            panel.set_title(scene.clock(position, decimals=2))

    return figure, show


def panels(scene: Scene, head: int | None = None) -> int:
    """Return four times; for several heads as many as fit side by side, so that the figure fits on
    a page.
    """
    return (
        max(2, heat_columns(scene.paper, PANELS)) if len(chosen_heads(scene, head)) > 1 else PANELS
    )


kinds.register("attention")(Kind(draw, stage, shown=take_attention, panels=panels))
