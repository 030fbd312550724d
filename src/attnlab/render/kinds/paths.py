"""Coordinates over time; for d = 1 together with the unscaled tokens and the attention matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from attnlab.render.kinds import Kind, Stage, kinds
from attnlab.render.kinds.attention import chosen_heads, draw_heat_maps, heat_columns, heat_height
from attnlab.render.moments import take_attention, take_tokens
from attnlab.render.panels import HeatPanel, LinesPanel
from attnlab.render.panels.heat import token_order
from attnlab.render.paper import Paper
from attnlab.render.scene import Scene
from attnlab.render.style import RULE, new_figure, paper_figure, title

MOST_COORDINATES = 6
"""The most coordinates drawn; of more, those with the widest spread at the end."""

LINES_PANEL = 1.65
"""Inches that a panel of lines must be wide."""


def rows_of(scene: Scene) -> list[tuple[np.ndarray, str]]:
    """Return the values (T, n) to draw over time, each with a label."""
    if scene.is_sphere and scene.d == 2:
        # on the circle the angle is the one coordinate; unwrapped, so that no line jumps
        angle = np.unwrap(np.arctan2(scene.points[..., 1], scene.points[..., 0]), axis=0)
        return [(angle / np.pi, "angle / π")]
    spread = np.ptp(scene.points[-1], axis=0)
    chosen = np.sort(np.argsort(-spread, kind="stable")[:MOST_COORDINATES])
    rows = [(scene.points[..., k], scene.axes[k]) for k in chosen]
    if scene.d == 1 and scene.name == "z":
        try:
            rows.append((scene.run.x[..., 0], "x"))
        except OverflowError:
            pass  # x is past double precision: z says it all
    return rows


def draw(scene: Scene, moments: Sequence[int], head: int | None = None) -> Figure:
    """Lines above; for d = 1, attention below."""
    rows, paper = rows_of(scene), scene.paper
    with_attention = scene.run.d == 1
    lines, columns = grid_of(len(rows), paper)
    across = heat_columns(paper, len(moments))
    usual = 10.5 if columns > 1 else 7.0
    above_height, below_height = (
        line_height(paper) * lines,
        heat_height(paper, across, usual) * -(-len(moments) // across),
    )
    figure: Any = paper_figure(
        paper, usual, above_height + (below_height if with_attention else 0.0)
    )
    above = figure
    if with_attention:
        above, below = figure.subfigures(
            2, 1, height_ratios=[above_height, below_height], hspace=0.04
        )
        grid = below.subplots(-(-len(moments) // across), across, squeeze=False)
        draw_heat_maps(
            below, grid, scene, chosen_heads(scene, 0 if head is None else head), moments
        )
    for number, (values, label) in enumerate(rows):
        axes = above.add_subplot(lines, columns, number + 1)
        panel = LinesPanel(axes, scene, values, label)
        panel.show(len(scene.times) - 1)
        if number >= len(rows) - columns:
            axes.set_xlabel(time_label(scene))
        if with_attention:
            for k in moments[1:-1]:
                axes.axvline(
                    scene.times[k], color=RULE, linewidth=0.9, linestyle=(0, (3, 3)), zorder=0
                )
    left_out = (
        f"  The {len(rows)} of {scene.d} coordinates spread widest at the end."
        if scene.d > MOST_COORDINATES
        else ""
    )
    below_note = (
        f"  Below: attention P, row i is the attention of token i; {token_order(scene)[1]}."
        if with_attention
        else ""
    )
    title(figure, scene.headline(), scene.groups.words + left_out + below_note)
    return figure


def grid_of(count: int, paper: Paper) -> tuple[int, int]:
    """Return rows and columns for a number of panels: up to three side by side, more in two rows;
    in a paper as many as fit.
    """
    columns = count if count <= 3 else -(-count // 2)
    if paper.width is not None:
        columns = paper.columns(count, columns, LINES_PANEL if paper.is_narrow else 2.5)
    return -(-count // columns), columns


def line_height(paper: Paper) -> float:
    """Inches that a panel of lines is high."""
    return 1.45 if paper.is_narrow else 2.6


def time_label(scene: Scene) -> str:
    """Return the unit of the clock."""
    return "time k dt of layer k" if scene.run.dynamics.is_layers else "time t"


def stage(scene: Scene, head: int | None = None) -> Stage:
    """Draw growing lines; for d = 1 with the present attention matrix next to them."""
    rows = rows_of(scene)
    with_attention = scene.run.d == 1
    figure: Any = new_figure(
        9.0 if with_attention else 6.5, 4.4 if with_attention else 1.6 * len(rows) + 1.6, dpi=120
    )
    left = figure
    heat: list[HeatPanel] = []
    if with_attention:
        left, right = figure.subfigures(1, 2, width_ratios=[1.0, 1.0])
        grid = right.subplots(1, 1, squeeze=False)
        heat = draw_heat_maps(
            right, grid, scene, chosen_heads(scene, 0 if head is None else head), [0]
        )
    panels = []
    for number, (values, label) in enumerate(rows):
        panels.append(
            LinesPanel(left.add_subplot(len(rows), 1, number + 1), scene, values, label, dots=True)
        )
    panels[-1].axes.set_xlabel(time_label(scene))
    title(figure, scene.headline(), scene.groups.words)

    def show(position: float) -> None:
        for panel in panels:
            panel.show(position)
        for matrix in heat:
            matrix.show(position)
            matrix.set_title(scene.clock(position, decimals=2))
        if not heat:
            panels[0].axes.set_title(scene.clock(position, decimals=2))

    return figure, show


def shown(scene: Scene, numbers: np.ndarray) -> np.ndarray:
    """Return what panels of single times show: attention for d = 1. For other d there are no such
    panels.
    """
    return (take_attention if scene.run.d == 1 else take_tokens)(scene, numbers)


kinds.register("paths")(Kind(draw, stage, shown=shown))
