"""A portrait of a run: its tokens at a few times, where each of them will end, and the end itself,
t = infinity.

Colours and markers say where a token ends, so they come from the certified limit and are right from
the first panel on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from attnlab.experiments.common.portraits.marks import draw_ends, draw_goal, draw_ways
from attnlab.render.groups import Groups
from attnlab.render.kinds.tokens import MARGIN
from attnlab.render.limit_view import LimitView, make_view
from attnlab.render.moments import choose_moments
from attnlab.render.panels import FlatPanel, SpacePanel
from attnlab.render.panels.box import AZIMUTH, ELEVATION, SpaceBox
from attnlab.render.panels.ends import side_on
from attnlab.render.panels.flat import frame_flat
from attnlab.render.panels.views import see_planes
from attnlab.render.ranges import pad_ranges, shared_ranges, square_ranges
from attnlab.render.scene import Scene, make_scene
from attnlab.render.style import dress_flat, new_figure, set_layout, title
from attnlab.render.ticks import plain_ticks
from attnlab.types import Limit, Trajectory

COLUMNS = 3
ZOOM = 1.28
"""3-d boxes leave much of their panel empty: this fills it, and the labels still have room."""

ROOM = 0.05
"""Of a panel's width, on either side, for rings and numbers beside the outermost limits."""


@dataclass(frozen=True, eq=False)
class Portrait(Scene):
    """A Scene whose groups are those of the certified limit.

    normal (d,): perpendicular to the hyperplanes, where there are any. special (s, d): points of S
    that are no vertices.
    """

    view: LimitView = field(kw_only=True)
    normal: np.ndarray | None = field(default=None, kw_only=True)
    special: np.ndarray | None = field(default=None, kw_only=True)

    @cached_property
    def groups(self) -> Groups:
        """Tokens that end together are drawn alike; leaders are those that someone follows in the
        end.
        """
        n = self.run.n
        labels, leaders = np.zeros(n, dtype=int), np.zeros(n, dtype=bool)
        for number, group in enumerate(self.view.groups):
            labels[group] = number
        leaders[self.view.leaders] = True
        markers = np.array(self.view.group_markers)[labels]
        return Groups(
            self.view.colours,
            markers,
            leaders,
            labels,
            "Colour and marker: where a token ends.",
            self.normal,
        )

    @property
    def has_lines(self) -> bool:
        """Whether tokens end on lines in space, along which z is free."""
        return self.normal is None and self.view.free.shape == (3, 1)

    @property
    def has_hull(self) -> bool:
        """Whether convex hulls mean something: where whole tokens have limits, and these are not
        seen as hyperplanes.
        """
        return self.normal is None and self.view.free.shape[1] == 0


class LoosePanel(SpacePanel):
    """A SpacePanel with a scale for each axis: along lines on which z is free it grows, and the
    rest would shrink with it.
    """

    def set_limits(self, limits: np.ndarray) -> None:
        """Show exactly the box `limits`."""
        super().set_limits(limits)
        fit_loosely(self, limits)


def fit_loosely(box: SpaceBox, limits: np.ndarray) -> None:
    """Let the box show exactly `limits`, each axis to its own scale."""
    box.limits = limits
    for name, label, (low, high) in zip("xyz", box.labels, limits, strict=True):
        axis = getattr(box.axes, f"{name}axis")
        getattr(box.axes, f"set_{name}lim")(low, high)
        axis.set_label_text(plain_ticks(axis, label, low, high, digits=3))


def make_portrait(
    run: Trajectory,
    limit: Limit,
    normal: np.ndarray | None = None,
    special: np.ndarray | None = None,
) -> Portrait:
    """The Portrait of a single run and its certified limit, d = 2 or 3."""
    scene = make_scene(run, frame="z")
    return Portrait(
        scene.run,
        scene.points,
        scene.name,
        scene.axes,
        view=make_view(limit),
        normal=normal,
        special=special,
    )


def draw_portrait(
    portrait: Portrait,
    times: Sequence[float],
    *,
    headline: str,
    note: str,
    beside: Callable[[Any], None] | None = None,
) -> Figure:
    """Panels at `times` and one at infinity, in rows of three; `beside` draws into plain axes after
    them.
    """
    chosen = choose_moments(portrait, list(times))
    count = len(chosen) + 1 + (beside is not None)
    rows = -(-count // COLUMNS)
    is_space = portrait.d == 3
    figure = new_figure(3.05 * COLUMNS, (2.9 if is_space else 3.0) * rows + 1.0)
    limits, last = _limits(portrait, chosen)
    for number, k in enumerate(chosen):
        axes: Any = figure.add_subplot(
            rows, COLUMNS, number + 1, projection="3d" if is_space else None
        )
        _draw_moment(axes, portrait, k, limits[number])
    axes = figure.add_subplot(rows, COLUMNS, len(chosen) + 1, projection="3d" if is_space else None)
    draw_infinity(axes, portrait, last)
    if beside is not None:
        beside(figure.add_subplot(rows, COLUMNS, count))
    if is_space:
        set_layout(
            figure,
            rect=(0.0, 0.0, 1.0 - MARGIN / figure.get_figwidth(), 1.0),
            h_pad=0.115,
            w_pad=0.1,
        )
    title(figure, headline, note)
    return figure


def look_of(portrait: Portrait, limits: np.ndarray) -> tuple[float, float]:
    """The view (elevation, azimuth): planes stand side by side, lines are seen at their length,
    anything else as usual.
    """
    sides = limits if portrait.has_lines else square_ranges(limits)
    span = sides[:, 1] - sides[:, 0]
    if portrait.normal is not None:
        return see_planes(portrait.normal, portrait.view.marks @ portrait.normal, sides)
    if portrait.has_lines:
        return side_on(portrait.view.free[:, 0] / span)
    return _clearest(portrait.view.marks / span)


def _clearest(marks: np.ndarray) -> tuple[float, float]:
    """The view, from the usual height, in which the two nearest of the marks (m, 3), in parts of
    the box, are farthest apart.
    """
    if len(marks) < 2:
        return ELEVATION, AZIMUTH
    low = np.deg2rad(ELEVATION)
    pairs = np.triu_indices(len(marks), 1)
    azimuths, gaps = AZIMUTH + np.arange(0.0, 360.0, 5.0), []
    for turn in np.deg2rad(azimuths):
        across = np.array([-np.sin(turn), np.cos(turn), 0.0])
        upwards = np.array([-np.sin(low) * np.cos(turn), -np.sin(low) * np.sin(turn), np.cos(low)])
        seen = marks @ np.column_stack([across, upwards])
        gaps.append(np.sort(np.linalg.norm(seen[pairs[0]] - seen[pairs[1]], axis=1))[:3].sum())
    return ELEVATION, float(azimuths[int(np.argmax(gaps))])


def _limits(portrait: Portrait, chosen: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Limits (panel, d, 2) of the panels in time, and (d, 2) of the one at infinity."""
    points, marks = portrait.points, portrait.view.marks
    low, high = np.minimum.accumulate(points.min(axis=1)), np.maximum.accumulate(points.max(axis=1))
    limits = shared_ranges(
        [points[k] for k in chosen], [np.vstack([low[k], high[k], marks]) for k in chosen]
    )
    limits = limits + ROOM * (limits[..., 1:] - limits[..., :1]) * (-1, 1)
    if np.ptp(limits, axis=0).max() == 0:
        return limits, limits[-1]
    ways = np.concatenate([portrait.view.lines.reshape(-1, portrait.d), marks])
    return limits, pad_ranges(ways.min(axis=0), ways.max(axis=0))


def _draw_moment(axes: Any, portrait: Portrait, k: int, limits: np.ndarray) -> None:
    """The tokens at a saved time, and where they will be."""
    if portrait.d == 2:
        panel: Any = FlatPanel(axes, portrait, limits, hull=portrait.has_hull)
        panel.show(k)
    else:
        panel = (LoosePanel if portrait.has_lines else SpacePanel)(
            axes, portrait, limits, view=look_of(portrait, limits)
        )
        panel.show(k)
        axes.set_box_aspect((1, 1, 1), zoom=ZOOM)
        if not portrait.has_hull:
            panel.faces.set_visible(False)
            panel.edges.set_visible(False)
    draw_goal(axes, portrait, panel if portrait.d == 3 else None)
    axes.set_title(portrait.clock(k), **_above(portrait))


def draw_infinity(axes: Any, portrait: Portrait, limits: np.ndarray) -> None:
    """The certified limit: the ways of the tokens, the sets where they end, and how many end at
    each.
    """
    box = None
    if portrait.d == 2:
        dress_flat(axes)
        frame_flat(axes, portrait.axes, limits)
    else:
        box = SpaceBox(axes, portrait.axes, limits, view=look_of(portrait, limits))
        if portrait.has_lines:
            fit_loosely(box, limits)
        axes.set_box_aspect((1, 1, 1), zoom=ZOOM)
        if portrait.has_hull:
            box.show_hull(portrait.view.marks)
    draw_goal(axes, portrait, box, is_end=True)
    draw_ways(axes, portrait)
    draw_ends(axes, portrait, box)
    axes.set_title("t = ∞, certified", **_above(portrait))


def _above(portrait: Portrait) -> dict[str, Any]:
    """Where the title of a panel stands: in space above the box, which reaches beyond its axes."""
    return {"y": 1.06, "pad": 2} if portrait.d == 3 else {}
