"""Attention matrices at a few times, a row a head, with their numerical ranks."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from attnlab.render.kinds import Kind, Stage, kinds
from attnlab.render.panels import HeatPanel
from attnlab.render.panels.heat import token_order
from attnlab.render.scene import Scene
from attnlab.render.style import new_figure, title

MOST_HEADS = 4
"""Heads shown when none is asked for."""


def chosen_heads(scene: Scene, head: int | None) -> list[int]:
    """The heads to draw: the one asked for, or the first few."""
    count = scene.run.dynamics.weights.heads
    if head is None:
        return list(range(min(count, MOST_HEADS)))
    if not isinstance(head, numbers.Integral) or not 0 <= head < count:
        raise ValueError(f"head must be the number of a head, from 0 to {count - 1}, got {head!r}.")
    return [int(head)]


def draw(scene: Scene, moments: Sequence[int], head: int | None = None) -> Figure:
    """Heat maps, a column a time and a row a head, with one colour bar."""
    heads = chosen_heads(scene, head)
    figure = new_figure(max(2.6 * len(moments), 4.0) + 0.9, 2.75 * len(heads) + 0.85)
    grid = figure.subplots(len(heads), len(moments), squeeze=False)
    draw_heat_maps(figure, grid, scene, heads, moments)
    title(figure, headline(scene, heads), f"P: row i is the attention of token i; {token_order(scene)[1]}.")
    return figure


def draw_heat_maps(figure: Figure, grid: Any, scene: Scene, heads: Sequence[int], moments: Sequence[int]) -> list[HeatPanel]:
    """Fill a grid of axes (head, time) with heat maps; one colour bar beside them."""
    order, _ = token_order(scene)
    panels = []
    for row, head in enumerate(heads):
        for column, k in enumerate(moments):
            panel = HeatPanel(grid[row, column], scene, head, order)
            panel.show(k)
            panel.set_title(scene.clock(k))
            panels.append(panel)
        grid[row, 0].set_ylabel(f"head {head}" if scene.run.dynamics.weights.heads > 1 else "token i")
    for axes in grid[-1]:
        axes.set_xlabel("token j")
    bar = figure.colorbar(panels[0].image, ax=grid, shrink=0.85 if len(heads) == 1 else 0.5, aspect=30, pad=0.02, extend="min")
    bar.set_label("weight $P_{ij}$")
    bar.outline.set_visible(False)
    return panels


def headline(scene: Scene, heads: Sequence[int]) -> str:
    """Whose attention it is."""
    count = scene.run.dynamics.weights.heads
    which = "" if count == 1 else f" · head{'s' if len(heads) > 1 else ''} {', '.join(map(str, heads))} of {count}"
    return f"Attention P · n = {scene.run.n}, d = {scene.run.d}{which}{scene.origin}"


def stage(scene: Scene, head: int | None = None) -> Stage:
    """One heat map a head that moves."""
    heads = chosen_heads(scene, head)
    figure = new_figure(4.4 * len(heads) + 0.8, 5.0, dpi=120)
    grid = figure.subplots(len(heads), 1, squeeze=False) if len(heads) == 1 else figure.subplots(1, len(heads), squeeze=False).T
    panels = draw_heat_maps(figure, grid, scene, heads, [0])
    title(figure, headline(scene, heads), f"{token_order(scene)[1]}".capitalize() + ".")

    def show(position: float) -> None:
        for panel in panels:
            panel.show(position)
            panel.set_title(scene.clock(position, decimals=2))

    return figure, show


kinds.register("attention")(Kind(draw, stage))
