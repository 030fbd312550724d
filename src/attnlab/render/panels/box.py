"""A box in space: 3-d axes in the house style, the convex hull as a glass body in it, and panes
that planes cut out of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, MaxNLocator, NullFormatter
from matplotlib.transforms import Bbox
from mpl_toolkits.mplot3d import Axes3D
from mpl_toolkits.mplot3d.art3d import Line3DCollection, Poly3DCollection

from attnlab.render.hulls import outline, plane_in_box
from attnlab.render.paper import SCREEN, Paper
from attnlab.render.ranges import square_ranges
from attnlab.render.style import HULL, SMALLEST, dress_space
from attnlab.render.ticks import plain_ticks

ELEVATION, AZIMUTH = 18.0, -55.0

STEEPEST = 0.9
"""An axis is steep when this part of it points at the viewer."""

PANE = 0.8
"""The part of the box that panes of hyperplanes fill: they should end before the titles."""

PASSES = 6
"""How often the layout is told where labels are, at most: panels then shrink, and labels move with
them.
"""

SETTLED = 0.01
"""Inches that labels may still move when the layout is taken to be settled."""

CORNER = 0.13
"""Part of an axis at either end that has no ticks in a small box."""

SPARE = 0.04
"""Inches around labels that are kept free."""

LIGHT = np.array([0.35, -0.45, 0.82])
"""Where the light comes from: above and left of the viewer, the convention of shaded drawings."""


class SpaceBox:
    """3-d axes with labels, at the limits (3, 2), seen from `view`: elevation and azimuth in
    degrees. is_still: no movie.
    """

    def __init__(
        self,
        axes: Any,
        labels: Sequence[str],
        limits: np.ndarray,
        *,
        is_still: bool = True,
        view: tuple[float, float] = (ELEVATION, AZIMUTH),
        paper: Paper = SCREEN,
    ):
        self.axes, self.labels, self.is_still, self.is_narrow = (
            axes,
            labels,
            is_still,
            paper.is_narrow,
        )
        axes.computed_zorder = False  # tokens above trails above hull, always
        dress_space(axes, SMALLEST if self.is_narrow else 7.5)
        self.elevation, self.azimuth = view
        axes.view_init(*view)
        axes.set_proj_type("persp", focal_length=1.6)  # a long lens: parallel faces look parallel
        self.set_limits(limits)
        self.faces = Poly3DCollection([np.zeros((3, 3))], edgecolors="none", zorder=1)
        self.edges = Line3DCollection([np.zeros((2, 3))], linewidths=0.8, zorder=2)
        self.trails = Line3DCollection([np.zeros((2, 3))], linewidths=0.8, zorder=3)
        for collection in (self.faces, self.edges, self.trails):
            collection.set_visible(False)
            axes.add_collection3d(collection)

    def set_limits(self, limits: np.ndarray) -> None:
        """Show the box `limits`, to one scale where its sides are comparable."""
        self.limits = square_ranges(limits)
        for name, label, (low, high) in zip("xyz", self.labels, self.limits, strict=True):
            axis = getattr(self.axes, f"{name}axis")
            getattr(self.axes, f"set_{name}lim")(low, high)
            # 3-d ticks are centred: long ones would cross the axis
            text = plain_ticks(axis, label, low, high, digits=3, is_short=self.is_narrow)
            # upright, with the unit on a line of its own: along the axis it would run out of the
            # panel
            axis.set_rotate_label(False)
            axis.set_label_text(text.replace(" (", "\n("))
            axis.labelpad = (
                -7 if len(text) <= 2 else -5 if "(" not in text else 4 if name == "z" else 1
            )
            if self.is_narrow:
                axis.set_major_locator(FixedLocator(inner_ticks(low, high)))
        if self.is_still:  # in a movie the view turns, and ticks would come and go
            self.hide_steep_ticks()
        self.axes.set_box_aspect((1, 1, 1), zoom=1.22 if self.is_narrow else 1.1)

    def hide_steep_ticks(self) -> None:
        """Leave out the tick labels of an axis that points at the viewer: they would be printed
        over each other.
        """
        for axis, steepness in zip(
            (self.axes.xaxis, self.axes.yaxis, self.axes.zaxis), np.abs(self.towards()), strict=True
        ):
            if steepness > STEEPEST:
                axis.set_major_formatter(NullFormatter())

    def towards(self) -> np.ndarray:
        """The direction (3,) from the middle of the box to the viewer."""
        elevation, azimuth = np.deg2rad(self.axes.elev), np.deg2rad(self.axes.azim)
        return np.array(
            [
                np.cos(elevation) * np.cos(azimuth),
                np.cos(elevation) * np.sin(azimuth),
                np.sin(elevation),
            ]
        )

    def show_hull(self, points: np.ndarray) -> None:
        """The hull as a glass body: lit faces, edges fainter at the back."""
        hull = outline(points)
        near = (
            np.clip(0.5 + 0.5 * self.depth(hull.edges.mean(axis=1)), 0.0, 1.0)
            if len(hull.edges)
            else np.empty(0)
        )
        place(self.edges, hull.edges, [(*to_rgb(HULL), 0.25 + 0.6 * part) for part in near])
        self.faces.set_visible(len(hull.faces) > 0)
        if len(hull.faces):
            span = self.limits[:, 1] - self.limits[:, 0]
            self.faces.set_verts(hull.faces)
            self.faces.set_facecolor(
                [(0.55, 0.57, 0.6, 0.05 + 0.07 * lit(face / span)) for face in hull.faces]
            )

    def show_plane(self, normal: np.ndarray, level: float, colour: Any) -> None:
        """Draw the plane <normal, z> = level as a faint pane."""
        middle = self.limits.mean(axis=1, keepdims=True)
        corners = plane_in_box(normal, level, middle + PANE * (self.limits - middle))
        if len(corners):
            self.axes.add_collection3d(
                Poly3DCollection(
                    [corners],
                    facecolors=[(*colour, 0.1)],
                    edgecolors=[(*colour, 0.45)],
                    linewidths=0.7,
                    zorder=0.5,
                )
            )

    def depth(self, points: np.ndarray) -> np.ndarray:
        """How near (n,) the points are to the viewer: about -1 (far) to 1 (near), 0 in the middle
        of the box.
        """
        span = self.limits[:, 1] - self.limits[:, 0]
        return 2 * (points - self.limits.mean(axis=1)) / span @ self.towards()

    def inside(self, segments: list[np.ndarray]) -> list[np.ndarray]:
        """The segments without what lies outside the box: 3-d axes do not clip."""
        span = self.limits[:, 1] - self.limits[:, 0]
        low, high = self.limits[:, 0] - 0.02 * span, self.limits[:, 1] + 0.02 * span
        return [
            np.where(((line >= low) & (line <= high)).all(axis=-1, keepdims=True), line, np.nan)
            for line in segments
        ]


def keep_labels(figure: Figure) -> None:
    """Tell the layout of a figure where the labels of its axes in space are, which it does not
    know: it then keeps them free.
    """
    # there is no public way to ask whether axes in space are on
    spaces: list[Any] = [
        axes for axes in figure.axes if isinstance(axes, Axes3D) and axes._axis3don
    ]
    lines = [
        axes.add_artist(
            Line2D([0.5], [0.5], transform=axes.transAxes, linestyle="none", clip_on=False)
        )
        for axes in spaces
    ]
    known: np.ndarray | None = None
    for _ in range(PASSES):
        figure.draw_without_rendering()
        places = []
        for axes, line in zip(spaces, lines, strict=True):
            labels = [
                axis.label for axis in (axes.xaxis, axes.yaxis, axes.zaxis) if axis.label.get_text()
            ]
            if labels:
                around = Bbox.union([label.get_window_extent() for label in labels]).padded(
                    SPARE * figure.dpi
                )
                line.set_data(axes.transAxes.inverted().transform_bbox(around).get_points().T)
                places.append(around.get_points())
        now = np.array(places)
        if known is not None and np.abs(now - known).max(initial=0.0) < SETTLED * figure.dpi:
            return
        known = now


def inner_ticks(low: float, high: float) -> list[float]:
    """Two ticks, as far apart as they can be without coming near the ends of an axis, where those
    of its neighbours stand.
    """
    room = CORNER * (high - low)
    for count in range(2, 12):
        ticks = MaxNLocator(count, steps=[1, 2, 5, 10]).tick_values(low + room, high - room)
        inside = [float(tick) for tick in ticks if low + room <= tick <= high - room]
        if inside and inside[-1] - inside[0] > 0.45 * (high - low):
            break
    return [inside[0], inside[-1]] if inside else []


def place(collection: Line3DCollection, segments: Any, colours: Any) -> None:
    """Put the collection onto the segments; matplotlib cannot draw an empty one."""
    collection.set_visible(len(segments) > 0)
    if len(segments):
        collection.set_segments(segments)
        collection.set_color(colours)


def lit(face: np.ndarray) -> float:
    """How far a triangle or polygon (m, 3) is turned away from the light, 0 to 1; a hull has no
    inside, so both sides count.
    """
    normal = np.cross(face[1] - face[0], face[2] - face[0])
    length = float(np.linalg.norm(normal))
    return 1.0 - abs(float(normal @ LIGHT)) / length if length > 0 else 0.0
