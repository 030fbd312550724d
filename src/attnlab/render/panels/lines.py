"""Lines over time: one coordinate of every token, or what was observed."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.ticker import LogFormatterSciNotation, LogLocator, NullLocator

from attnlab.render.scene import Scene
from attnlab.render.style import LINES, MARKERS, RULE, dress_flat, label_upright
from attnlab.render.ticks import plain_ticks
from attnlab.render.wrap import wrap

WIDEST = 30.0
"""Values that grow by more than this factor need a logarithmic axis, or their early motion is a
flat line.
"""


DEEPEST = 1e-16
"""Values that have fallen by more than this are below the axis: it would show hundreds of decades,
and nothing else.
"""


class LinesPanel:
    """Values (T, m) over the times of a scene, one line per column, with dots at the end of what
    is shown.

    The columns are the tokens, drawn as their groups, unless colours are given for them. Infinite
    values are left out. scale: "linear", "log" (values that are not positive are left out), or
    "asinh", linear near 0 and logarithmic on both sides beyond, without a kink; None: linear, or
    asinh where the values grow much. is_log_time: whether the clock is logarithmic.
    """

    def __init__(
        self,
        axes: Any,
        scene: Scene,
        values: np.ndarray,
        label: str,
        *,
        colours: Any = None,
        dots: bool = False,
        scale: str | None = None,
        is_log_time: bool = False,
    ):
        values = np.where(np.isfinite(values), values, np.nan)
        if scale == "log":
            values = np.where(values > 0, values, np.nan)
            floor = log_floor(values)
        self.axes, self.scene, self.values, times = axes, scene, values, scene.times
        styles: Any = "solid"
        if colours is None:
            colours, styles = (
                scene.groups.colours,
                [LINES[MARKERS.index(marker)] for marker in scene.groups.markers],
            )
        self.colours = colours
        known = values[np.isfinite(values)] if np.isfinite(values).any() else np.zeros(1)
        low, high, largest = known.min(), known.max(), np.abs(known).max()
        start = np.nanmax(np.abs(values[0]), initial=0.0)
        if scale is None:
            scale = "asinh" if largest > WIDEST * max(start, 1e-300) and largest > 0 else "linear"
        if scale == "asinh":
            asinh_scale(axes, start if start > 0 else largest * 1e-6, largest)
            axes.set_ylim(min(low, 0) * 3, max(high, 0) * 3)
        elif scale == "log":
            log_scale(axes, max(low, floor), high)
        else:
            room = 0.06 * (high - low) or 0.5
            axes.set_ylim(low - room, high + room)
            label = plain_ticks(axes.yaxis, label, low - room, high + room)
        if scale != "log":
            axes.axhline(0.0, color=RULE, linewidth=0.8, zorder=0)
        if is_log_time:
            axes.set_xscale("log")
            axes.set_xlim(times[times > 0][0], times[-1])
        else:
            axes.set_xlim(times[0], times[-1] if len(times) > 1 else times[0] + 1)
        dress_flat(axes, ticks=4 if scene.paper.is_narrow else 6)
        label_upright(axes, wrap(label, 1.1, 8.0) if scene.paper.is_narrow else label)
        width = 1.0 if values.shape[1] <= 60 else 0.6
        self.lines = LineCollection(
            [], colors=colours, linestyles=styles, linewidths=width, alpha=0.85, zorder=2
        )
        axes.add_collection(self.lines, autolim=False)
        self.dots = axes.scatter([], [], s=12, zorder=3) if dots else None

    def show(self, position: float) -> None:
        """Draw the lines up to a position in time."""
        last = int(np.floor(position))
        part = position - last
        times, values = self.scene.times[: last + 1], self.values[: last + 1]
        if part > 0:
            times = np.append(times, (1 - part) * times[-1] + part * self.scene.times[last + 1])
            values = np.vstack([values, (1 - part) * values[-1] + part * self.values[last + 1]])
        self.lines.set_segments(
            [np.column_stack([times, values[:, i]]) for i in range(values.shape[1])]
        )
        if self.dots is not None:
            self.dots.set_offsets(
                np.column_stack([np.full(values.shape[1], times[-1]), values[-1]])
            )
            self.dots.set_facecolor(self.colours)


def log_floor(values: np.ndarray) -> float:
    """The lowest value (T, m) that a logarithmic axis shows: below DEEPEST of the start there is
    nothing but underflow to see.
    """
    positive = np.where(values > 0, values, 0.0)
    return DEEPEST * float(np.nanmax(positive[0], initial=0.0))


def asinh_scale(axes: Any, start: float, largest: float) -> None:
    """A scale that is linear well below the power of ten above `start` and logarithmic beyond, at
    most three ticks a side.
    """
    first, last = int(np.ceil(np.log10(start))), int(np.floor(np.log10(largest)))
    axes.set_yscale("asinh", linear_width=10.0**first)
    every = max(1, -(-(last - first) // 3))
    powers = 10.0 ** np.arange(
        last, min(first, last - 1), -every
    )  # those near 0 would be printed over each other
    axes.set_yticks([*-powers, 0.0, *powers[::-1]])
    axes.yaxis.set_major_formatter(LogFormatterSciNotation())
    axes.set_yticks([], minor=True)


def log_scale(axes: Any, low: float, high: float) -> None:
    """A logarithmic scale from low to high, with at most five ticks, all at powers of ten."""
    axes.set_yscale("log")
    first, last = np.log10(low), np.log10(high)
    room = 0.06 * (last - first) or 0.5
    axes.set_ylim(*10.0 ** np.clip([first - room, last + room], -307, 308))
    axes.yaxis.set_major_locator(LogLocator(numticks=5))
    axes.yaxis.set_minor_locator(NullLocator())
