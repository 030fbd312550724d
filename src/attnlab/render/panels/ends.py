"""Where tokens end: starts, the way to their limits, the limits and what the free directions make
of them. Nothing here moves.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.patches import Polygon
from matplotlib.patheffects import Normal, Stroke
from mpl_toolkits.mplot3d.art3d import Line3DCollection

from attnlab.render.hulls import outline
from attnlab.render.limit_view import LimitView
from attnlab.render.panels.box import AZIMUTH, ELEVATION, SpaceBox
from attnlab.render.panels.flat import draw_level, frame_flat, place_polygon, token_size
from attnlab.render.panels.views import USUAL, see_planes
from attnlab.render.ranges import pad_ranges, square_ranges
from attnlab.render.style import HULL, INK, NOTE, RULE, dress_flat
from attnlab.render.ticks import plain_ticks

MOST_NAMES = 12
"""Leaders with their numbers beside them: more would cover the picture."""

MOST_LINES = 3000
"""Beyond this the lines are a grey cloud, and colours show the basins alone."""

MOST_ROWS = 8
"""Rows of a number line that are named."""

MARK, RING = 75.0, 150.0
"""The areas of a limit and of a leader's ring in points squared: a ring is seen around a leader
that is its own limit.
"""

NAME = 12.0
"""Points from a leader to its number: outside the ring."""

STEEPEST = 0.5
"""Lines of which more than this part points at the viewer look like points."""

BESIDE: Any = {"textcoords": "offset points", "ha": "center", "va": "center"}
NAMES: Any = {
    "fontsize": 8,
    "color": INK,
    "zorder": 7,
    "path_effects": [Stroke(linewidth=2.0, foreground="white"), Normal()],
}


def ranges_of(view: LimitView) -> np.ndarray:
    """Ranges (m, 2) of the axes around everything that is drawn."""
    points = np.concatenate([view.lines.reshape(-1, view.m), view.marks])
    return pad_ranges(points.min(axis=0), points.max(axis=0))


def by_marker(view: LimitView) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Numbers of tokens and of groups drawn with each marker: few collections, however many groups
    there are.
    """
    markers = np.array(view.group_markers)
    for marker in dict.fromkeys(view.group_markers):
        groups = np.flatnonzero(markers == marker)
        yield marker, np.concatenate([view.groups[int(k)] for k in groups]), groups


def draw_tokens(
    axes: Any, starts: np.ndarray, marks: np.ndarray, view: LimitView, depth: Any = None
) -> None:
    """Starts (n, m), the rings of leaders around them, and the limits (count, m), as they lie in
    the axes.

    depth: how near points (n, 3) are to the viewer, in space; near ones are larger.
    """

    def sizes(area: float, points: np.ndarray) -> Any:
        return view.size * (
            area if depth is None else area * np.clip(1.0 + 0.35 * depth(points), 0.5, 1.5)
        )

    flat: dict[str, Any] = {} if depth is None else {"depthshade": False}
    small, colours = 0.55 * token_size(len(starts)), view.colours
    for marker, tokens, groups in by_marker(view):
        axes.scatter(
            *starts[tokens].T,
            s=sizes(small, starts[tokens]),
            marker=marker,
            c=colours[tokens],
            alpha=0.55,
            linewidths=0,
            zorder=4,
            label="start",
            **flat,
        )
        if view.has_ends:
            axes.scatter(
                *marks[groups].T,
                s=sizes(MARK, marks[groups]),
                marker=marker,
                c=view.group_colours[groups],
                edgecolors="white",
                linewidths=0.8,
                zorder=5,
                label="limit",
                **flat,
            )
    leaders = starts[view.leaders]
    axes.scatter(
        *leaders.T,
        s=view.size * RING * (1.0 if len(leaders) <= MOST_NAMES else 0.6),
        facecolors="none",
        edgecolors=INK,
        linewidths=0.8,
        zorder=6,
        label="leader",
        **flat,
    )


def outwards(view: LimitView, limits: np.ndarray, towards: np.ndarray | None = None) -> np.ndarray:
    """Directions (leaders, m), in parts of the box, in which the name of each leader stands free:
    away from the middle.

    towards (3,): the viewer in space. Names are moved across the line of sight, or they would not
    be seen to move.
    """
    away = (view.starts[view.leaders] - limits.mean(axis=1)) / (limits[:, 1] - limits[:, 0])
    if towards is not None:
        away = away - np.outer(away @ towards, towards)
    length = np.linalg.norm(away, axis=1, keepdims=True)
    return np.where(length > 1e-9, away / np.maximum(length, 1e-9), np.eye(view.m)[-1])


def draw_ends_flat(axes: Any, view: LimitView) -> None:
    """The view in the plane."""
    dress_flat(axes)
    limits = ranges_of(view)
    frame_flat(axes, view.axes, limits, view.paper)
    hull = axes.add_patch(
        Polygon(np.zeros((1, 2)), facecolor="#EFEFEF", edgecolor=HULL, linewidth=1.0, zorder=0.8)
    )
    hull.set_visible(False)
    if view.has_ends and view.free.shape[1] == 0:
        place_polygon(hull, outline(view.marks))
    if view.has_ends and view.free.shape[1] == 1:
        normal = view.free[::-1, 0] * (1, -1)
        for mark, colour in zip(view.marks, view.group_colours, strict=True):
            draw_level(axes, normal, float(normal @ mark), colour)
        axes.axline((0.0, 0.0), view.limit.basis[:, 0], color=HULL, linewidth=0.8, zorder=1)
    draw_lines(axes, list(np.swapaxes(view.lines, 0, 1)), view)
    draw_tokens(axes, view.starts, view.marks, view)
    if len(view.leaders) <= MOST_NAMES:
        for token, place, away in zip(
            view.leaders, view.starts[view.leaders], outwards(view, limits), strict=True
        ):
            axes.annotate(
                str(token), place, xytext=NAME * np.sqrt(view.size) * away, **BESIDE, **NAMES
            )


def draw_ends_space(axes: Any, view: LimitView) -> None:
    """The view in space."""
    limits = ranges_of(view)
    sides, free = square_ranges(limits), view.free
    span = sides[:, 1] - sides[:, 0]
    normal, look = None, USUAL
    if free.shape[1] == 2:
        normal = np.cross(free[:, 0], free[:, 1])
        look = see_planes(normal, view.marks @ normal, sides)
    elif free.shape[1] == 1:
        look = side_on(free[:, 0] / span)
    box = SpaceBox(axes, view.axes, limits, view=look, paper=view.paper)
    if view.has_ends and normal is None:
        box.show_hull(view.marks)
    for mark, colour in zip(view.marks, view.group_colours, strict=False):
        if normal is not None:
            box.show_plane(normal, float(normal @ mark), colour)
        elif free.shape[1] == 1:
            axes.add_collection3d(
                Line3DCollection(
                    [line_in_box(mark, free[:, 0], box.limits)],
                    colors=[colour],
                    linewidths=1.0,
                    linestyles=[(0, (6, 4))],
                    zorder=2.5,
                )
            )
    draw_lines(axes, list(np.swapaxes(view.lines, 0, 1)), view)
    draw_tokens(axes, view.starts, view.marks, view, box.depth)
    if len(view.leaders) <= MOST_NAMES:
        away = outwards(view, box.limits, box.towards())
        for token, place in zip(
            view.leaders, view.starts[view.leaders] + 0.06 * span * away, strict=True
        ):
            axes.text(*place, str(token), ha="center", va="center", **NAMES)


def draw_ends_line(axes: Any, view: LimitView) -> None:
    """One coordinate: a row for the start, one for each time asked for, one for the limit, and
    lines down through them.
    """
    dress_flat(axes)
    rows = np.arange(len(view.lines))[::-1]
    low, high = ranges_of(view)[0]
    axes.set_xlim(low, high)
    axes.set_ylim(-0.45, rows[0] + 0.45)
    axes.set_xlabel(plain_ticks(axes.xaxis, view.axes[0], low, high))
    words = ["start", *(f"t = {t:.4g}" for t in view.times), *(["limit"] if view.has_ends else [])]
    every = -(-len(rows) // MOST_ROWS)
    shown = sorted(
        {*range(0, len(rows), every), len(rows) - 1} - ({len(rows) - 2} if every > 1 else set())
    )
    axes.set_yticks(rows[shown], [words[i] for i in shown])
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    for row in rows[shown]:
        axes.axhline(row, color=RULE, linewidth=0.7, zorder=0)
    draw_lines(
        axes, [np.column_stack([view.lines[:, i, 0], rows]) for i in range(len(view.starts))], view
    )
    starts = np.column_stack([view.starts, np.full(len(view.starts), rows[0])])
    marks = np.column_stack([view.marks, np.zeros(len(view.marks))])
    draw_tokens(axes, starts, marks, view)
    if len(view.leaders) <= MOST_NAMES:
        for token in view.leaders:
            axes.annotate(str(token), starts[token], xytext=(0, NAME), **BESIDE, **NAMES)
    for mark, group in zip(marks, view.groups, strict=False):
        axes.annotate(str(len(group)), mark, xytext=(0, -NAME), fontsize=8, color=NOTE, **BESIDE)


def draw_lines(axes: Any, lines: list[np.ndarray], view: LimitView) -> None:
    """Draw the path of each token (T, m). With more tokens the lines are fainter."""
    n, m = len(lines), lines[0].shape[1]
    if len(lines[0]) < 2 or n > MOST_LINES:
        return
    style: Any = {
        "colors": view.colours,
        "linewidths": 0.8 if n <= 100 else 0.5,
        "alpha": float(np.clip(12.0 / n, 0.15, 0.5)),
        "zorder": 3,
        "label": "way",
    }
    if m == 3:
        axes.add_collection3d(Line3DCollection(lines, **style))
    else:
        axes.add_collection(LineCollection(lines, **style), autolim=False)


def side_on(direction: np.ndarray) -> tuple[float, float]:
    """The view nearest to the usual one from which lines along `direction`, in parts of the box,
    are not foreshortened much.
    """
    turns = np.arange(0, 181, 5)
    azimuths = AZIMUTH + np.stack([turns, -turns], axis=1).ravel()  # the nearest first
    elevation, around = np.deg2rad(ELEVATION), np.deg2rad(azimuths)
    towards = np.column_stack(
        [
            np.cos(elevation) * np.cos(around),
            np.cos(elevation) * np.sin(around),
            np.full(len(around), np.sin(elevation)),
        ]
    )
    steepness = np.abs(towards @ direction) / np.linalg.norm(direction)
    return ELEVATION, float(azimuths[np.argmax(steepness <= max(STEEPEST, steepness.min()))])


def line_in_box(point: np.ndarray, direction: np.ndarray, limits: np.ndarray) -> np.ndarray:
    """The part (2, 3) of a line through a point of the box of limits (3, 2) that lies in it."""
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = (limits - point[:, None]) / direction[:, None]  # (3, 2): where it meets the walls
    reach = np.where(direction[:, None] == 0.0, [-np.inf, np.inf], np.sort(reach, axis=1))
    return np.array([point + reach[:, 0].max() * direction, point + reach[:, 1].min() * direction])
