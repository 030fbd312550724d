"""Tokens in the plane: points, trails, the convex hull, or the unit circle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.patches import Circle, Polygon

from attnlab.render.hulls import Outline, outline
from attnlab.render.panels.trails import trail_colours, trail_segments
from attnlab.render.paper import SCREEN, Paper
from attnlab.render.ranges import square_ranges
from attnlab.render.scene import Scene
from attnlab.render.style import HULL, INK, RULE, dress_flat, label_upright
from attnlab.render.ticks import plain_ticks
from attnlab.render.wrap import wrap

LABEL = 1.2
"""Inches that the label of an axis is long at most in a paper."""


class FlatPanel:
    """Two coordinates of a scene on plain axes, at the limits (2, 2)."""

    def __init__(
        self,
        axes: Any,
        scene: Scene,
        limits: np.ndarray,
        *,
        memory: float | None = None,
        hull: bool = True,
    ):
        self.axes, self.scene, self.memory = axes, scene, memory
        self.has_hull = hull and scene.shows_hull
        groups = scene.groups
        dress_flat(axes, ticks=2 if scene.paper.is_narrow else 4)
        self.set_limits(limits)
        if scene.shows_sphere:
            axes.set_axis_off()
            axes.add_patch(
                Circle((0, 0), 1, facecolor="none", edgecolor=RULE, linewidth=1.2, zorder=0.5)
            )
        self.first_hull = axes.add_patch(
            Polygon(
                np.zeros((1, 2)),
                facecolor="none",
                edgecolor=HULL,
                linestyle=(0, (4, 3)),
                linewidth=0.8,
                alpha=0.8,
                zorder=1,
            )
        )
        self.hull = axes.add_patch(
            Polygon(
                np.zeros((1, 2)), facecolor="#EFEFEF", edgecolor=HULL, linewidth=1.0, zorder=0.8
            )
        )
        self.trails = LineCollection(
            [], linewidths=0.8, colors=trail_colours(groups, memory), zorder=2, capstyle="round"
        )
        axes.add_collection(self.trails, autolim=False)
        size = token_size(scene.run.n, scene.paper)
        self.parts = [
            (np.flatnonzero(groups.markers == marker), marker)
            for marker in dict.fromkeys(groups.markers)
        ]
        self.tokens = [
            axes.scatter(
                np.zeros(len(part)),
                np.zeros(len(part)),
                s=size,
                marker=marker,
                c=groups.colours[part],
                edgecolors="white",
                linewidths=0.5,
                zorder=4,
            )
            for part, marker in self.parts
        ]
        self.leading = np.flatnonzero(groups.leaders)
        self.rings = axes.scatter(
            np.zeros(len(self.leading)),
            np.zeros(len(self.leading)),
            s=3.2 * size,
            facecolors="none",
            edgecolors=INK,
            linewidths=0.9,
            zorder=5,
        )
        for patch in (self.first_hull, self.hull):
            patch.set_visible(False)

    def set_limits(self, limits: np.ndarray) -> None:
        """Show the rectangle `limits`, to one scale where its sides are comparable."""
        frame_flat(self.axes, self.scene.axes, limits, self.scene.paper)

    def show(self, position: float) -> None:
        """Move everything to a position in time."""
        points = self.scene.at(position)
        for (part, _), tokens in zip(self.parts, self.tokens, strict=True):
            tokens.set_offsets(points[part])
        self.rings.set_offsets(points[self.leading])
        if not self.scene.shows_sphere:  # on the circle, trails would only cover it
            self.trails.set_segments(trail_segments(self.scene, position, self.memory))
        if self.has_hull:
            place_polygon(self.hull, outline(points))
            if position > 0:
                place_polygon(self.first_hull, outline(self.scene.at(0)))

    def show_planes(self) -> None:
        """Draw the hyperplanes that the groups end in, as lines."""
        for normal, level, colour in self.scene.hyperplanes():
            draw_level(self.axes, normal, level, colour)

    def set_title(self, text: str) -> None:
        """Write `text` above the panel."""
        self.axes.set_title(text)


def frame_flat(axes: Any, labels: Sequence[str], limits: np.ndarray, paper: Paper = SCREEN) -> None:
    """Let the axes show the rectangle `limits` (2, 2), to one scale where its sides are comparable,
    with plain ticks.
    """
    limits = square_ranges(limits)
    axes.set_xlim(*limits[0])
    axes.set_ylim(*limits[1])
    across, upwards = (
        plain_ticks(axes.xaxis, labels[0], *limits[0]),
        plain_ticks(axes.yaxis, labels[1], *limits[1]),
    )
    axes.set_xlabel(wrap(across, LABEL, 8.0) if paper.is_narrow else across)
    label_upright(axes, wrap(upwards, LABEL, 8.0) if paper.is_narrow else upwards)
    axes.set_box_aspect(1)  # equal scales come from the limits, so that all panels have one size


def draw_level(axes: Any, normal: np.ndarray, level: float, colour: Any) -> None:
    """The line <normal, z> = level through the whole panel, dashed."""
    foot = level * normal / (normal @ normal)
    axes.axline(
        foot,
        foot + normal[::-1] * (1, -1),
        color=colour,
        linewidth=0.8,
        linestyle=(0, (6, 4)),
        alpha=0.8,
        zorder=1.5,
    )


def place_polygon(patch: Polygon, hull: Outline) -> None:
    """Put the patch onto the hull of points in the plane; a single point has none to show."""
    patch.set_visible(len(hull.ring) > 1)
    if len(hull.ring) > 1:
        patch.set_xy(hull.ring)


def token_size(n: int, paper: Paper = SCREEN) -> float:
    """The area of a token in points squared: 36 for few tokens, smaller when they are many, and in
    a narrow figure.
    """
    return float(np.clip(40.0 * (30.0 / n) ** 0.4, 3.0, 36.0)) * (0.4 if paper.is_narrow else 1.0)
