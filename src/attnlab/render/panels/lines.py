"""Lines over time: one coordinate of every token, or what was observed."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.collections import LineCollection

from attnlab.render.scene import Scene
from attnlab.render.style import LINES, MARKERS, RULE, dress_flat, label_upright
from attnlab.render.ticks import plain_ticks

WIDEST = 30.0
"""Values that grow by more than this factor need a logarithmic axis, or their early motion is a flat line."""


class LinesPanel:
    """Values (T, m) over the times of a scene, a line a column, with dots at the end of what is shown.

    The columns are the tokens, drawn as their groups, unless colours are given for them. Infinite values are left out.
    """

    def __init__(self, axes: Any, scene: Scene, values: np.ndarray, label: str, *, colours: Any = None, dots: bool = False):
        values = np.where(np.isfinite(values), values, np.nan)
        self.axes, self.scene, self.values, times = axes, scene, values, scene.times
        styles: Any = "solid"
        if colours is None:
            colours, styles = scene.groups.colours, [LINES[MARKERS.index(marker)] for marker in scene.groups.markers]
        self.colours = colours
        known = values[np.isfinite(values)] if np.isfinite(values).any() else np.zeros(1)
        low, high, largest = known.min(), known.max(), np.abs(known).max()
        start = np.nanmax(np.abs(values[0]), initial=0.0)
        if largest > WIDEST * max(start, 1e-300) and largest > 0:
            log_scale(axes, start if start > 0 else largest * 1e-6, largest)
        dress_flat(axes, ticks=6)
        axes.axhline(0.0, color=RULE, linewidth=0.8, zorder=0)
        axes.set_xlim(times[0], times[-1] if len(times) > 1 else times[0] + 1)
        if axes.get_yscale() == "linear":
            room = 0.06 * (high - low) or 0.5
            axes.set_ylim(low - room, high + room)
            label = plain_ticks(axes.yaxis, label, low - room, high + room)
        else:
            axes.set_ylim(min(low, 0) * 3, max(high, 0) * 3)
        label_upright(axes, label)
        width = 1.0 if values.shape[1] <= 60 else 0.6
        self.lines = LineCollection([], colors=colours, linestyles=styles, linewidths=width, alpha=0.85, zorder=2)
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
        self.lines.set_segments([np.column_stack([times, values[:, i]]) for i in range(values.shape[1])])
        if self.dots is not None:
            self.dots.set_offsets(np.column_stack([np.full(values.shape[1], times[-1]), values[-1]]))
            self.dots.set_facecolor(self.colours)


def log_scale(axes: Any, start: float, largest: float) -> None:
    """A scale that is linear up to the power of ten above `start` and logarithmic beyond, with at most three ticks a side."""
    first, last = int(np.ceil(np.log10(start))), int(np.floor(np.log10(largest)))
    axes.set_yscale("symlog", linthresh=10.0**first, linscale=0.8)
    every = max(1, -(-(last - first) // 3))
    powers = 10.0 ** np.arange(last, first - 1, -every)
    axes.set_yticks([*-powers, 0.0, *powers[::-1]])
    axes.set_yticks([], minor=True)
