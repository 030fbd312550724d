"""Tokens in the plane or in space at a few times, with their trails, hull and leaders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from attnlab.render.kinds import Kind, Stage, kinds
from attnlab.render.limits import shared_limits
from attnlab.render.panels import FlatPanel, SpacePanel
from attnlab.render.scene import Scene
from attnlab.render.style import new_figure, set_layout, title

ROW = 4
"""Panels in a row."""

MEMORY = 0.2
"""The part of a movie that trails remember."""

TURN = 50.0
"""Degrees by which a movie in space turns from start to end."""


def objection(scene: Scene) -> str | None:
    """Why tokens cannot be drawn as points."""
    if scene.d in (2, 3):
        return None
    instead = "'paths'" if scene.d == 1 else "'pca' or 'paths'"
    return f"The kind of figure 'tokens' needs tokens with 2 or 3 coordinates, got d = {scene.d}. Use kind={instead}."


def limits_of(scene: Scene, panels: Sequence[np.ndarray]) -> np.ndarray:
    """Limits (panel, d, 2): the unit ball on the sphere, else as the tokens need."""
    if scene.is_sphere and scene.d == scene.run.d:
        reach = 1.12 if scene.d == 2 else 0.75          # in space the axes are hidden: let the sphere fill the panel
        return np.broadcast_to([-reach, reach], (len(panels), scene.d, 2))
    return shared_limits(panels)


def draw(scene: Scene, moments: Sequence[int], head: int | None = None) -> Figure:
    """A row of panels, one a time."""
    del head
    columns = min(ROW, len(moments))
    rows = -(-len(moments) // columns)
    is_space = scene.d == 3
    figure = new_figure(max(2.75 * columns, 4.5), (2.6 if is_space else 2.85) * rows + 0.75)
    limits = limits_of(scene, [scene.points[k] for k in moments])
    is_shared = bool(np.ptp(limits, axis=0).max() == 0)
    for number, k in enumerate(moments):
        axes = figure.add_subplot(rows, columns, number + 1, projection="3d" if is_space else None)
        panel = SpacePanel(axes, scene, limits[number]) if is_space else FlatPanel(axes, scene, limits[number])
        panel.show(k)
        panel.set_title(scene.clock(k))
        if not is_space and number % columns and is_shared:
            axes.set_ylabel("")
            axes.tick_params(labelleft=False)
    if is_space:
        set_layout(figure, rect=(0.0, 0.0, 0.985, 1.0))           # 3-d labels stand outside what the layout knows
    title(figure, scene.headline(), note(scene, is_shared))
    return figure


def note(scene: Scene, is_shared: bool) -> str:
    """How to read the picture, in one line."""
    words = [scene.groups.words]
    if scene.groups.leaders.any():
        words.append("Ring: leader.")
    if scene.is_sphere and scene.d == scene.run.d == 3:
        words.append("Hollow: behind the sphere.")
    if not scene.is_sphere:
        words.append("Grey: convex hull" + (" (dashed: at the start)." if scene.d == 2 else "."))
    if not is_shared:
        words.append("Axes differ between panels.")
    return "  ".join([*words, *filter(None, [scene.remark])])


def stage(scene: Scene, head: int | None = None) -> Stage:
    """One panel whose tokens move; in space it turns slowly."""
    del head
    is_space = scene.d == 3
    figure = new_figure(5.0, 5.4, dpi=120)
    memory = MEMORY * max(len(scene.times) - 1, 1)
    limits = np.array(limits_of(scene, list(scene.points)))
    limits = np.stack([np.minimum.accumulate(limits[..., 0]), np.maximum.accumulate(limits[..., 1])], axis=-1)
    axes: Any = figure.add_subplot(projection="3d" if is_space else None)
    panel = (SpacePanel if is_space else FlatPanel)(axes, scene, limits[0], memory=memory)
    title(figure, scene.headline().replace(" · ", "\n", 1), note(scene, True))
    is_fixed = bool(np.ptp(limits, axis=0).max() == 0)
    last = max(len(scene.times) - 1, 1)

    def show(position: float) -> None:
        if not is_fixed:
            low = int(position)
            part = position - low
            panel.set_limits((1 - part) * limits[low] + part * limits[min(low + 1, len(limits) - 1)])
        if isinstance(panel, SpacePanel):
            axes.view_init(axes.elev, panel.azimuth + TURN * (position / last - 0.5))
        panel.show(position)
        panel.set_title(scene.clock(position, decimals=2))

    return figure, show


kinds.register("tokens")(Kind(draw, stage, objection))
