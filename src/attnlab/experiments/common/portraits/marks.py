"""What a portrait draws beside the tokens: the sets where they end, the ways to them, the limits,
and special points.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.patches import Polygon
from matplotlib.patheffects import Normal, Stroke
from mpl_toolkits.mplot3d.art3d import Line3DCollection, Poly3DCollection

from attnlab.render.hulls import outline
from attnlab.render.panels.box import SpaceBox
from attnlab.render.panels.ends import by_marker, line_in_box
from attnlab.render.panels.flat import draw_level, token_size
from attnlab.render.style import HULL, INK

if TYPE_CHECKING:
    from attnlab.experiments.common.portraits.panels import Portrait

GHOST, MARK = 62.0, 70.0
"""The areas in points squared of a limit that is not reached yet, and of one that is."""

DASHES: Any = (0, (4, 2.5))
OUTLINED: Any = [Stroke(linewidth=2.2, foreground="white"), Normal()]


def draw_goal(axes: Any, portrait: Portrait, box: SpaceBox | None, *, is_end: bool = False) -> None:
    """The sets where tokens end: hyperplanes, lines, a prism, or a polytope with its special
    points; hollow limits before it.
    """
    view = portrait.view
    if portrait.normal is not None:
        for mark, colour in zip(view.marks, view.group_colours, strict=True):
            level = float(portrait.normal @ mark)
            if box is None:
                draw_level(axes, portrait.normal, level, colour)
            else:
                box.show_plane(portrait.normal, level, colour)
    elif view.free.shape[1] == 1 and box is not None:
        _draw_lines(axes, portrait, box)
    elif not is_end:
        _draw_outline(axes, view.marks)
    elif box is None:
        ring = outline(view.marks).ring
        axes.add_patch(Polygon(ring, facecolor="#EFEFEF", edgecolor=INK, linewidth=1.0, zorder=0.8))
    if (
        portrait.special is not None and len(portrait.special) and (is_end or box is None)
    ):  # in space they would hide tokens
        options: Any = {} if box is None else {"depthshade": False}
        axes.scatter(
            *portrait.special.T,
            s=26 if box is None else 14,
            marker="x",
            c=INK,
            linewidths=1.1 if box is None else 0.8,
            zorder=5.5,
            **options,
        )
    if view.free.shape[1] == 0 and not is_end:
        _draw_marks(axes, portrait, box, is_hollow=True)


def _draw_lines(axes: Any, portrait: Portrait, box: SpaceBox) -> None:
    """Lines through the limits along the free direction; between neighbouring ones of a polygon,
    the walls of the prism.
    """
    view = portrait.view
    along = view.free[:, 0]
    middle = box.limits.mean(axis=1, keepdims=True)
    inner = middle + 0.92 * (box.limits - middle)
    lines = np.array([line_in_box(mark, along, inner) for mark in view.marks])  # (m, 2, 3)
    style: Any = {"linewidths": 1.3, "linestyles": [(0, (6, 3))], "zorder": 2.5}
    axes.add_collection3d(Line3DCollection(lines, colors=view.group_colours, **style))
    if len(lines) < 3:
        return
    across = np.linalg.svd(along[None])[2][1:]  # (2, 3): sees the lines as points
    flat = view.marks @ across.T
    corners = outline(flat).ring
    order = [int(np.argmin(np.linalg.norm(flat - corner, axis=1))) for corner in corners]
    sides = list(zip(order, [*order[1:], order[0]], strict=True))
    walls = [np.vstack([lines[i], lines[j][::-1]]) for i, j in sides]
    axes.add_collection3d(
        Poly3DCollection(walls, facecolors=[(0.55, 0.57, 0.6, 0.08)], edgecolors="none", zorder=0.6)
    )
    rims = [np.array([lines[i][end], lines[j][end]]) for i, j in sides for end in (0, 1)]
    axes.add_collection3d(Line3DCollection(rims, colors=HULL, linewidths=0.8, zorder=0.7))


def _draw_outline(axes: Any, marks: np.ndarray) -> None:
    """The edges of the polytope to come, dashed."""
    edges = list(outline(marks).edges)
    if not edges:
        return
    style: Any = {
        "colors": INK,
        "linewidths": 0.8,
        "linestyles": [DASHES],
        "alpha": 0.75,
        "zorder": 2.5,
    }
    if marks.shape[1] == 3:
        axes.add_collection3d(Line3DCollection(edges, **style))
    else:
        axes.add_collection(LineCollection(edges, **style), autolim=False)


def _draw_marks(axes: Any, portrait: Portrait, box: SpaceBox | None, *, is_hollow: bool) -> None:
    """The limits, hollow before they are reached."""
    view = portrait.view
    flat: Any = {} if box is None else {"depthshade": False}
    for marker, _, groups in by_marker(view):
        points, colours = view.marks[groups], view.group_colours[groups]
        look = (
            {"facecolors": "none", "edgecolors": colours, "linewidths": 1.2}
            if is_hollow
            else {"c": colours, "edgecolors": "white", "linewidths": 0.7}
        )
        axes.scatter(
            *points.T,
            s=GHOST if is_hollow else MARK,
            marker=marker,
            zorder=3.5 if is_hollow else 5,
            **look,
            **flat,
        )


def draw_ways(axes: Any, portrait: Portrait) -> None:
    """The way of every token from the start to its limit."""
    lines = list(np.swapaxes(portrait.view.lines, 0, 1))
    style: Any = {"colors": portrait.groups.colours, "linewidths": 0.8, "alpha": 0.4, "zorder": 3}
    if portrait.d == 3:
        axes.add_collection3d(Line3DCollection(lines, **style))
    else:
        axes.add_collection(LineCollection(lines, **style), autolim=False)


def draw_ends(axes: Any, portrait: Portrait, box: SpaceBox | None) -> None:
    """The tokens at t = infinity: at their limits, with their number, or on the sets along which
    they are free.
    """
    view = portrait.view
    flat: Any = {} if box is None else {"depthshade": False}
    if view.free.shape[1]:
        ends, colours = view.lines[-1], view.colours
        for marker, tokens, _ in by_marker(view):
            axes.scatter(
                *ends[tokens].T,
                s=token_size(len(ends)),
                marker=marker,
                c=colours[tokens],
                edgecolors="white",
                linewidths=0.5,
                zorder=5,
                **flat,
            )
        leading = ends[view.leaders]
    else:
        _draw_marks(axes, portrait, box, is_hollow=False)
        leading = view.marks
        _draw_numbers(axes, portrait, box)
    axes.scatter(
        *leading.T,
        s=2.1 * MARK,
        facecolors="none",
        edgecolors=INK,
        linewidths=0.9,
        zorder=6,
        **flat,
    )


def _draw_numbers(axes: Any, portrait: Portrait, box: SpaceBox | None) -> None:
    """How many tokens end at each limit, written outside the polytope."""
    view = portrait.view
    middle = view.marks.mean(axis=0)
    for mark, group in zip(view.marks, view.groups, strict=True):
        words, style = (
            str(len(group)),
            {
                "fontsize": 8.5,
                "ha": "center",
                "va": "center",
                "zorder": 7,
                "path_effects": OUTLINED,
            },
        )
        away = mark - middle
        if box is None:
            axes.annotate(
                words,
                mark,
                xytext=14 * away / max(float(np.linalg.norm(away)), 1e-300),
                textcoords="offset points",
                **style,
            )
            continue
        span = box.limits[:, 1] - box.limits[:, 0]
        away = away / span
        towards = box.towards()
        away = away - (away @ towards) * towards
        length = float(np.linalg.norm(away))
        away = away / length if length > 1e-9 else np.array([0.0, 0.0, 1.0])
        axes.text(*(mark + 0.085 * span * away), words, **style)
