"""Tokens in space: points that shrink with distance, trails, the convex hull as a glass body, or
the unit sphere.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from mpl_toolkits.mplot3d.art3d import Line3DCollection

from attnlab.render.panels.box import AZIMUTH, ELEVATION, SpaceBox, place
from attnlab.render.panels.flat import token_size
from attnlab.render.panels.trails import trail_colours, trail_segments
from attnlab.render.scene import Scene
from attnlab.render.style import INK


class SpacePanel(SpaceBox):
    """Three coordinates of a scene on 3-d axes, at the limits (3, 2), seen from `view`: elevation
    and azimuth in degrees.
    """

    def __init__(
        self,
        axes: Any,
        scene: Scene,
        limits: np.ndarray,
        *,
        memory: float | None = None,
        view: tuple[float, float] = (ELEVATION, AZIMUTH),
    ):
        self.scene, self.memory, self.is_sphere = scene, memory, scene.shows_sphere
        groups = scene.groups
        # in a movie the view turns
        super().__init__(
            axes, scene.axes, limits, is_still=memory is None, view=view, paper=scene.paper
        )
        if self.is_sphere:
            draw_sphere(axes)
        self.trail_colours = trail_colours(groups, memory)
        self.size = token_size(scene.run.n, scene.paper)
        self.parts = [
            (np.flatnonzero(groups.markers == marker), marker)
            for marker in dict.fromkeys(groups.markers)
        ]
        self.tokens = [
            axes.scatter(
                *np.zeros((3, len(part))),
                s=self.size,
                marker=marker,
                linewidths=0.5,
                depthshade=False,
                zorder=5,
            )
            for part, marker in self.parts
        ]
        self.leading = np.flatnonzero(groups.leaders)
        self.rings = axes.scatter(
            *np.zeros((3, len(self.leading))),
            s=3.2 * self.size,
            facecolors="none",
            edgecolors=INK,
            linewidths=0.9,
            depthshade=False,
            zorder=6,
        )

    def show(self, position: float) -> None:
        """Move everything to a position in time."""
        points = self.scene.at(position)
        depth = self.depth(points)
        colours = self.scene.groups.colours
        # Size, not paleness, says how far: a pale blue would be another group's sky blue. Behind
        # the sphere tokens are hollow.
        size = self.size * np.clip(1.0 + 0.35 * depth, 0.5, 1.5)
        is_behind = (depth < 0) & self.is_sphere
        inside = np.where(is_behind[:, None], 1.0, colours)
        border = np.where(is_behind[:, None], colours, 1.0)
        for (part, _), tokens in zip(self.parts, self.tokens, strict=True):
            tokens._offsets3d = tuple(
                points[part].T
            )  # there is no public way to move a 3-d scatter
            tokens.set_sizes(size[part])
            tokens.set_facecolor(inside[part])
            tokens.set_edgecolor(border[part])
        self.rings._offsets3d = tuple(points[self.leading].T)
        segments = trail_segments(self.scene, position, self.memory)
        place(
            self.trails, segments if self.is_sphere else self.inside(segments), self.trail_colours
        )
        if self.scene.shows_hull:
            self.show_hull(points)

    def show_planes(self) -> None:
        """Draw the hyperplanes that the groups end in, as faint panes."""
        for normal, level, colour in self.scene.hyperplanes():
            self.show_plane(normal, level, colour)

    def set_title(self, text: str) -> None:
        """Write `text` above the panel."""
        above = 0.08 if self.scene.paper.is_narrow else 0.0  # the box is larger there
        self.axes.set_title(text, y=(1.04 if self.is_sphere else 1.0) + above, pad=2)


def draw_sphere(axes: Any) -> None:
    """A light wire-frame of the unit sphere: meridians and parallels every 30 degrees, nothing
    else.
    """
    axes.set_axis_off()
    around = np.linspace(0, 2 * np.pi, 73)
    circles = [
        np.column_stack([np.cos(around) * np.cos(a), np.cos(around) * np.sin(a), np.sin(around)])
        for a in np.arange(6) * np.pi / 6
    ]
    circles += [
        np.column_stack(
            [
                np.cos(b) * np.cos(around),
                np.cos(b) * np.sin(around),
                np.full_like(around, np.sin(b)),
            ]
        )
        for b in np.arange(-2, 3) * np.pi / 6
    ]
    axes.add_collection3d(Line3DCollection(circles, colors="#DCDCDC", linewidths=0.5, zorder=0))
