"""Tokens in the plane or in space at a few times, with their trails, hull and leaders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from attnlab.render.kinds import Kind, Stage, kinds
from attnlab.render.panels import FlatPanel, SpacePanel
from attnlab.render.panels.box import keep_labels
from attnlab.render.panels.views import USUAL, see_planes
from attnlab.render.paper import SCREEN, Paper
from attnlab.render.ranges import shared_ranges, square_ranges
from attnlab.render.scene import Scene
from attnlab.render.style import new_figure, paper_figure, set_layout, title

ROW = 4
"""Panels in a row."""

PANEL = 2.75
"""The width of a panel in inches, if no width is given."""

SMALLEST_PANEL, SMALLEST_BOX = 1.35, 1.6
"""Inches that a panel is wide at least; the second where every panel has ticks of its own, or
stands in space.
"""

MARGIN = 0.2
"""Inches to the right of panels in space: 3-d labels stand outside what the layout knows."""

MEMORY = 0.2
"""The length of trails as a part of a movie."""

TURN = 50.0
"""Degrees by which a movie in space turns from start to end."""


def objection(scene: Scene) -> str | None:
    """Return why tokens cannot be drawn as points."""
    if scene.d in (2, 3):
        return None
    instead = "'paths'" if scene.d == 1 else "'pca' or 'paths'"
    return (
        f"The kind of figure 'tokens' needs tokens with 2 or 3 coordinates, got d = {scene.d}. Use"
        f" kind={instead}."
    )


def ranges_of(scene: Scene, moments: Sequence[int]) -> np.ndarray:
    """Limits (panel, d, 2): the unit ball on the sphere, else as the tokens and their trails
    need.
    """
    if scene.shows_sphere:
        reach = (
            1.12 if scene.d == 2 else 0.75
        )  # in space the axes are hidden: let the sphere fill the panel
        return np.broadcast_to([-reach, reach], (len(moments), scene.d, 2))
    low, high = (
        np.minimum.accumulate(scene.points.min(axis=1)),
        np.maximum.accumulate(scene.points.max(axis=1)),
    )  # (T, d)
    return shared_ranges(
        [scene.points[k] for k in moments], [np.stack([low[k], high[k]]) for k in moments]
    )


def make_panel(
    axes: Any, scene: Scene, limits: np.ndarray, last: np.ndarray, memory: float | None = None
) -> FlatPanel | SpacePanel:
    """The panel for the dimension of a scene; in space seen so that hyperplanes stand apart at the
    limits `last`.
    """
    if scene.d == 2:
        return FlatPanel(axes, scene, limits, memory=memory)
    sides = square_ranges(last)
    planes = scene.hyperplanes()
    view = see_planes(planes[0][0], [level for _, level, _ in planes], sides) if planes else USUAL
    return SpacePanel(axes, scene, limits, memory=memory, view=view)


def draw(scene: Scene, moments: Sequence[int], head: int | None = None) -> Figure:
    """Draw a row of panels, one per time."""
    del head
    is_space, paper = scene.d == 3, scene.paper
    limits = ranges_of(scene, moments)
    is_shared = bool(np.ptp(limits, axis=0).max() == 0)
    columns = paper.columns(
        len(moments), ROW, SMALLEST_PANEL if is_shared and not is_space else SMALLEST_BOX
    )
    rows = -(-len(moments) // columns)
    width = max(PANEL * columns, 4.5) if paper.width is None else paper.width
    body = (
        rows * 0.95 * width / columns
        if is_space
        else flat_height(paper, width, rows, columns, is_shared)
    )
    figure = paper_figure(paper, width, body)
    for number, k in enumerate(moments):
        axes: Any = figure.add_subplot(
            rows, columns, number + 1, projection="3d" if is_space else None
        )
        panel_drawn = make_panel(axes, scene, limits[number], limits[-1])
        panel_drawn.show(k)
        if k == len(scene.times) - 1:
            panel_drawn.show_planes()
        panel_drawn.set_title(scene.clock(k))
        if not is_space:
            share_labels(axes, number, columns, len(moments), is_shared)
    has_planes = len(scene.times) - 1 in moments and bool(scene.hyperplanes())
    title(figure, scene.headline(), note(scene, is_shared, has_planes))
    has_units = is_space and any(
        len(axis.label.get_text()) > 2 for axis in (axes.xaxis, axes.yaxis, axes.zaxis)
    )
    is_usual = paper == SCREEN and not scene.is_projected and not scene.hyperplanes()
    if is_space and not (is_usual and not has_units):
        keep_labels(figure)
    elif is_space:
        # from the usual side short labels need little room, and boxes bring some above and below
        set_layout(figure, rect=(0.0, 0.0, 1.0 - MARGIN / figure.get_figwidth(), 1.0), h_pad=0.115)
    return figure


def flat_height(
    paper: Paper, width: float, rows: int, columns: int, is_shared: bool, lines: int = 1
) -> float:
    """Inches of rows of square panels, with titles of so many lines; where axes are shared, labels
    stand at the rim only.
    """
    left, below, line = (0.5, 0.34, 0.15) if paper.is_narrow else (0.62, 0.45, 0.19)
    side = (width - left) / columns - 0.1 if is_shared else width / columns - left
    return rows * (side + line * lines + 0.15) + (1 if is_shared else rows) * below


def share_labels(axes: Any, number: int, columns: int, count: int, is_shared: bool = True) -> None:
    """Leave out the labels that the panel to the left, or the one below, has as well; ticks only
    where axes are shared.
    """
    if number % columns and (is_shared or "×" not in axes.get_ylabel()):
        axes.set_ylabel("")
        axes.tick_params(labelleft=not is_shared)
    if number + columns < count and is_shared:
        axes.set_xlabel("")
        axes.tick_params(labelbottom=False)


def note(scene: Scene, is_shared: bool, has_planes: bool = False) -> str:
    """Explain the picture in one line."""
    words = [scene.groups.words]
    if has_planes:
        words.append(
            "Coloured dashes: the hyperplanes." if scene.d == 2 else "Panes: the hyperplanes."
        )
    if scene.groups.leaders.any():
        words.append("Ring: leader.")
    if scene.shows_sphere and scene.d == 3:
        words.append("Hollow: behind the sphere.")
    if scene.shows_hull:
        words.append("Grey: convex hull" + (" (dashed: at the start)." if scene.d == 2 else "."))
    if not is_shared:
        words.append("Axes differ between panels.")
    return "  ".join([*words, *filter(None, [scene.remark])])


def stage(scene: Scene, head: int | None = None) -> Stage:
    """Draw one panel with moving tokens; in space it turns slowly."""
    del head
    is_space = scene.d == 3
    figure = new_figure(5.0, 5.4, dpi=120)
    memory = MEMORY * max(len(scene.times) - 1, 1)
    limits = np.array(ranges_of(scene, range(len(scene.times))))
    limits = np.stack(
        [np.minimum.accumulate(limits[..., 0]), np.maximum.accumulate(limits[..., 1])], axis=-1
    )
    axes: Any = figure.add_subplot(projection="3d" if is_space else None)
    panel = make_panel(axes, scene, limits[0], limits[-1], memory)
    title(figure, scene.headline().replace(" · ", "\n", 1), note(scene, True))
    is_fixed = bool(np.ptp(limits, axis=0).max() == 0)
    last = max(len(scene.times) - 1, 1)
    end = 0.0 if scene.hyperplanes() else 0.5  # the turn ends where hyperplanes are seen apart

    def show(position: float) -> None:
        if not is_fixed:
            low = int(position)
            part = position - low
            panel.set_limits(
                (1 - part) * limits[low] + part * limits[min(low + 1, len(limits) - 1)]
            )
        if isinstance(panel, SpacePanel):
            axes.view_init(axes.elev, panel.azimuth + TURN * (position / last - 1.0 + end))
        panel.show(position)
        panel.set_title(scene.clock(position, decimals=2))

    return figure, show


kinds.register("tokens")(Kind(draw, stage, objection))
