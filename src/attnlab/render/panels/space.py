"""Tokens in space: points that shrink with distance, trails, the convex hull as a glass body, or the unit sphere."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.ticker import NullFormatter
from mpl_toolkits.mplot3d.art3d import Line3DCollection, Poly3DCollection

from attnlab.render.hulls import outline, plane_in_box
from attnlab.render.limits import squared
from attnlab.render.panels.flat import token_size
from attnlab.render.panels.trails import trail_colours, trail_segments
from attnlab.render.scene import Scene
from attnlab.render.style import HULL, INK, dress_space
from attnlab.render.ticks import plain_ticks

ELEVATION, AZIMUTH = 18.0, -55.0

STEEPEST = 0.9
"""An axis is steep when this part of it points at the viewer."""

PANE = 0.8
"""The part of the box that panes of hyperplanes fill: they should end before the titles."""

LIGHT = np.array([0.35, -0.45, 0.82])
"""Where the light comes from: above and left of the viewer, the convention of shaded drawings."""


class SpacePanel:
    """Three coordinates of a scene on 3-d axes, at the limits (3, 2), seen from `view`: elevation and azimuth in degrees."""

    def __init__(self, axes: Any, scene: Scene, limits: np.ndarray, *, memory: float | None = None,
                 view: tuple[float, float] = (ELEVATION, AZIMUTH)):
        self.axes, self.scene, self.memory, self.is_sphere = axes, scene, memory, scene.is_sphere
        groups = scene.groups
        axes.computed_zorder = False                       # tokens above trails above hull, always
        dress_space(axes)
        self.elevation, self.azimuth = view
        axes.view_init(*view)
        axes.set_proj_type("persp", focal_length=1.6)      # a long lens: parallel faces look parallel
        self.set_limits(limits)
        if self.is_sphere:
            draw_sphere(axes)
        self.faces = Poly3DCollection([np.zeros((3, 3))], edgecolors="none", zorder=1)
        self.edges = Line3DCollection([np.zeros((2, 3))], linewidths=0.8, zorder=2)
        self.trails = Line3DCollection([np.zeros((2, 3))], linewidths=0.8, zorder=3)
        for collection in (self.faces, self.edges, self.trails):
            collection.set_visible(False)
            axes.add_collection3d(collection)
        self.trail_colours = trail_colours(groups, memory)
        self.size = token_size(scene.run.n)
        self.parts = [(np.flatnonzero(groups.markers == marker), marker) for marker in dict.fromkeys(groups.markers)]
        self.tokens = [axes.scatter(*np.zeros((3, len(part))), s=self.size, marker=marker, linewidths=0.5, depthshade=False,
                                    zorder=5) for part, marker in self.parts]
        self.leading = np.flatnonzero(groups.leaders)
        self.rings = axes.scatter(*np.zeros((3, len(self.leading))), s=3.2 * self.size, facecolors="none", edgecolors=INK,
                                  linewidths=0.9, depthshade=False, zorder=6)

    def set_limits(self, limits: np.ndarray) -> None:
        """Show the box `limits`, to one scale where its sides are comparable."""
        self.limits = squared(limits)
        for name, label, (low, high) in zip("xyz", self.scene.axes, self.limits, strict=True):
            axis = getattr(self.axes, f"{name}axis")
            getattr(self.axes, f"set_{name}lim")(low, high)
            # 3-d ticks are centred: long ones would cross the axis
            text = plain_ticks(axis, label, low, high, digits=3)
            axis.set_label_text(text)
            axis.labelpad = -7 if text == label else -3
        if self.memory is None:                            # in a movie the view turns, and ticks would come and go
            self.hide_steep_ticks()
        self.axes.set_box_aspect((1, 1, 1), zoom=1.1)

    def hide_steep_ticks(self) -> None:
        """Leave out the tick labels of an axis that points at the viewer: they would be printed over each other."""
        for axis, steepness in zip((self.axes.xaxis, self.axes.yaxis, self.axes.zaxis), np.abs(self.towards()), strict=True):
            if steepness > STEEPEST:
                axis.set_major_formatter(NullFormatter())

    def towards(self) -> np.ndarray:
        """The direction (3,) from the middle of the box to the viewer."""
        elevation, azimuth = np.deg2rad(self.axes.elev), np.deg2rad(self.axes.azim)
        return np.array([np.cos(elevation) * np.cos(azimuth), np.cos(elevation) * np.sin(azimuth), np.sin(elevation)])

    def show(self, position: float) -> None:
        """Move everything to a position in time."""
        points = self.scene.at(position)
        depth = self.depth(points)
        colours = self.scene.groups.colours
        # Size, not paleness, says how far: a pale blue would be another group's sky blue. Behind the sphere tokens are hollow.
        size = self.size * np.clip(1.0 + 0.35 * depth, 0.5, 1.5)
        is_behind = (depth < 0) & self.is_sphere
        inside = np.where(is_behind[:, None], 1.0, colours)
        border = np.where(is_behind[:, None], colours, 1.0)
        for (part, _), tokens in zip(self.parts, self.tokens, strict=True):
            tokens._offsets3d = tuple(points[part].T)      # there is no public way to move a 3-d scatter
            tokens.set_sizes(size[part])
            tokens.set_facecolor(inside[part])
            tokens.set_edgecolor(border[part])
        self.rings._offsets3d = tuple(points[self.leading].T)
        segments = trail_segments(self.scene, position, self.memory)
        place(self.trails, segments if self.is_sphere else self.inside(segments), self.trail_colours)
        if not self.is_sphere:
            self.show_hull(points)

    def show_hull(self, points: np.ndarray) -> None:
        """The hull as a glass body: lit faces, edges fainter at the back."""
        hull = outline(points)
        near = np.clip(0.5 + 0.5 * self.depth(hull.edges.mean(axis=1)), 0.0, 1.0) if len(hull.edges) else np.empty(0)
        place(self.edges, hull.edges, [(*to_rgb(HULL), 0.25 + 0.6 * part) for part in near])
        self.faces.set_visible(len(hull.faces) > 0)
        if len(hull.faces):
            span = self.limits[:, 1] - self.limits[:, 0]
            self.faces.set_verts(hull.faces)
            self.faces.set_facecolor([(0.55, 0.57, 0.6, 0.05 + 0.07 * lit(face / span)) for face in hull.faces])

    def show_planes(self) -> None:
        """Draw the hyperplanes that the groups end in, as faint panes."""
        middle = self.limits.mean(axis=1, keepdims=True)
        for normal, level, colour in self.scene.hyperplanes():
            corners = plane_in_box(normal, level, middle + PANE * (self.limits - middle))
            if len(corners):
                self.axes.add_collection3d(Poly3DCollection([corners], facecolors=[(*colour, 0.1)], edgecolors=[(*colour, 0.45)],
                                                            linewidths=0.7, zorder=0.5))

    def depth(self, points: np.ndarray) -> np.ndarray:
        """How near (n,) the points are to the viewer: about -1 (far) to 1 (near), 0 in the middle of the box."""
        span = self.limits[:, 1] - self.limits[:, 0]
        return 2 * (points - self.limits.mean(axis=1)) / span @ self.towards()

    def inside(self, segments: list[np.ndarray]) -> list[np.ndarray]:
        """The segments without what lies outside the box: 3-d axes do not clip."""
        span = self.limits[:, 1] - self.limits[:, 0]
        low, high = self.limits[:, 0] - 0.02 * span, self.limits[:, 1] + 0.02 * span
        return [np.where(((line >= low) & (line <= high)).all(axis=-1, keepdims=True), line, np.nan) for line in segments]

    def set_title(self, text: str) -> None:
        """Write `text` above the panel."""
        self.axes.set_title(text, y=1.04 if self.is_sphere else 1.0, pad=2)


def edge_on(normal: np.ndarray | None, span: np.ndarray) -> tuple[float, float]:
    """The view (elevation, azimuth) in degrees, near the usual one, from which planes perpendicular to `normal` are lines.

    The viewer looks along (cos E cos A, cos E sin A, sin E). That must be perpendicular to the normal in the box, whose sides
    span (3,) are drawn equally long. For planes that lie nearly flat the viewer has to come down.
    """
    if normal is None or len(normal) != 3:
        return ELEVATION, AZIMUTH
    normal = normal * span / np.linalg.norm(normal * span)
    across = float(np.hypot(normal[0], normal[1]))
    elevation = min(np.deg2rad(ELEVATION), np.arctan2(across, abs(normal[2])))
    turn = np.arccos(np.clip(-normal[2] * np.tan(elevation) / max(across, 1e-300), -1.0, 1.0))
    towards = np.arctan2(normal[1], normal[0])
    # from behind the planes are lines as well
    candidates = np.rad2deg([towards + turn, towards - turn])
    away = (candidates - AZIMUTH + 180.0) % 360.0 - 180.0
    return float(np.rad2deg(elevation)), AZIMUTH + float(away[np.argmin(np.abs(away))])


def place(collection: Line3DCollection, segments: Any, colours: Any) -> None:
    """Put the collection onto the segments; matplotlib cannot draw an empty one."""
    collection.set_visible(len(segments) > 0)
    if len(segments):
        collection.set_segments(segments)
        collection.set_color(colours)


def lit(face: np.ndarray) -> float:
    """How far a triangle or polygon (m, 3) is turned away from the light, 0 to 1; a hull has no inside, so both sides count."""
    normal = np.cross(face[1] - face[0], face[2] - face[0])
    length = float(np.linalg.norm(normal))
    return 1.0 - abs(float(normal @ LIGHT)) / length if length > 0 else 0.0


def draw_sphere(axes: Any) -> None:
    """A light wire-frame of the unit sphere: meridians and parallels every 30 degrees, nothing else."""
    axes.set_axis_off()
    around = np.linspace(0, 2 * np.pi, 73)
    circles = [np.column_stack([np.cos(around) * np.cos(a), np.cos(around) * np.sin(a), np.sin(around)])
               for a in np.arange(6) * np.pi / 6]
    circles += [np.column_stack([np.cos(b) * np.cos(around), np.cos(b) * np.sin(around), np.full_like(around, np.sin(b))])
                for b in np.arange(-2, 3) * np.pi / 6]
    axes.add_collection3d(Line3DCollection(circles, colors="#DCDCDC", linewidths=0.5, zorder=0))
