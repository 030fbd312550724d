"""Numbers beside portraits: how tokens approach their limits, what Euler steps make of it, and how
many limits starts have.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.ticker import MaxNLocator

from attnlab.experiments.common.portraits.run import euler_errors
from attnlab.experiments.record import Data
from attnlab.render.groups import Groups
from attnlab.render.style import HULL, INK, NOTE, PALETTE, dress_flat

LAW: Any = {"color": INK, "linewidth": 1.1, "linestyle": (0, (1, 1.2)), "zorder": 4}
FINEST = 1e-9
"""Distances below this are those of leaders that have arrived, and rounding."""


def draw_approach(
    axes: Any,
    times: np.ndarray,
    away: np.ndarray,
    groups: Groups,
    rate: float,
    since: float,
    law: str,
    what: str = "Distance to the limit",
) -> None:
    """Distances (T, n) to the limits over time, the farthest token thick, beside an exponential law
    from the decision on.
    """
    farthest = away.max(axis=1)
    lines = [np.column_stack([times, np.maximum(away[:, i], FINEST)]) for i in range(away.shape[1])]
    axes.add_collection(
        LineCollection(lines, colors=groups.colours, linewidths=0.8, alpha=0.55, zorder=2)
    )
    axes.semilogy(times, farthest, color=INK, linewidth=1.7, zorder=3, label="farthest token")
    start = max(since, 1.0)
    late = times >= start
    axes.semilogy(
        times[late],
        2.2 * farthest[late][0] * np.exp(rate * (times[late] - start)),
        **LAW,
        label=f"{law}, the law",
    )
    axes.axvline(5.0, color=HULL, linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
    axes.set(
        xlabel="t",
        title=what,
        xlim=(times[0], times[-1]),
        ylim=(max(FINEST, 0.2 * farthest[-1]), 5 * farthest.max()),
    )
    dress_flat(axes)
    axes.text(
        5.0,
        0.03,
        " published end",
        fontsize=8,
        color=NOTE,
        rotation=90,
        va="bottom",
        ha="right",
        transform=axes.get_xaxis_transform(),
    )
    axes.legend(frameon=False, fontsize=8, loc="upper right")
    axes.set_box_aspect(1)


def draw_euler(axes: Any, data: Data) -> None:
    """The error of Euler steps at T = 5 against the step."""
    dt, errors = data["numerics"]["dt"].values, euler_errors(data)
    median, largest = np.median(errors, axis=1), errors.max(axis=1)
    axes.loglog(
        dt,
        largest,
        color=PALETTE[1],
        marker="s",
        markersize=5,
        linewidth=1.3,
        label="farthest token",
    )
    axes.loglog(
        dt, median, color=PALETTE[0], marker="o", markersize=5, linewidth=1.3, label="median token"
    )
    axes.loglog(dt, median[-1] * dt / dt[-1], **LAW, label="∝ dt")
    axes.set_xticks(dt, [f"{step:g}" for step in dt])
    axes.set_xticks([], minor=True)
    axes.set(
        xlabel="time step dt",
        title="Error of Euler steps at T = 5",
        xlim=(0.8 * dt.min(), 1.3 * dt.max()),
        ylim=(0.5 * median.min(), (largest.max() / median.min()) ** 0.45 * largest.max()),
    )
    axes.axvline(dt[0], color=HULL, linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
    axes.text(
        dt[0],
        0.03,
        "published ",
        fontsize=8,
        color=NOTE,
        rotation=90,
        va="bottom",
        ha="right",
        transform=axes.get_xaxis_transform(),
    )
    dress_flat(axes)
    axes.legend(frameon=False, fontsize=8, loc="upper left")


def draw_counts(axes: Any, counts: np.ndarray, label: str) -> None:
    """How often each count occurs."""
    values, heights = np.unique(counts, return_counts=True)
    first = values[0] - 1 if values[0] > 3 else min(values[0], 1)
    bars = axes.bar(values, heights, width=0.62, color=PALETTE[0], zorder=2)
    axes.bar_label(bars, fontsize=8.5, padding=2)
    axes.set(
        xlabel=f"number of {label}",
        ylabel="starts",
        title=f"{len(counts)} random starts",
        xlim=(first - 0.6, max(values[-1], 3) + 0.6),
        ylim=(0, 1.15 * heights.max()),
    )
    dress_flat(axes)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def draw_levels(
    axes: Any,
    times: np.ndarray,
    values: np.ndarray,
    groups: Groups,
    levels: np.ndarray,
    ends: np.ndarray,
) -> None:
    """The leading coordinate of every token (T, n) over time, its extremes thick, and the certified
    levels; ends (n,).
    """
    lines = [np.column_stack([times, values[:, i]]) for i in range(values.shape[1])]
    axes.add_collection(
        LineCollection(lines, colors=groups.colours, linewidths=0.9, alpha=0.8, zorder=2)
    )
    for extreme in (values.min(axis=1), values.max(axis=1)):
        axes.plot(times, extreme, color=INK, linewidth=1.6, zorder=3)
    for level in levels:
        colour = groups.colours[int(np.argmin(np.abs(ends - level)))]
        axes.axhline(level, color=colour, linewidth=1.0, linestyle=(0, (6, 4)), zorder=1)
        count = int((np.abs(ends - level) < 1e-6 * max(np.abs(levels).max(), 1e-300)).sum())
        axes.text(
            1.015,
            level,
            f"{count}",
            fontsize=8.5,
            va="center",
            transform=axes.get_yaxis_transform(),
        )
    axes.axvline(5.0, color=HULL, linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
    axes.text(
        5.0,
        0.5,
        "published end ",
        fontsize=8,
        color=NOTE,
        rotation=90,
        va="center",
        ha="right",
        transform=axes.get_xaxis_transform(),
    )
    spread = float(np.ptp(values))
    axes.set(
        xlabel="t",
        title="Leading coordinate φ₁*(z)",
        xlim=(times[0], times[-1]),
        ylim=(values.min() - 0.06 * spread, values.max() + 0.06 * spread),
    )
    dress_flat(axes)
    axes.set_box_aspect(1)


def draw_law(
    axes: Any, times: np.ndarray, values: np.ndarray, rate: float, since: float, law: str, what: str
) -> None:
    """One positive number over time beside the exponential law that it follows from `since` on."""
    axes.semilogy(times, values, color=PALETTE[0], linewidth=1.7, zorder=3, label="farthest token")
    late = times >= since
    axes.semilogy(
        times[late],
        values[late][0] * np.exp(rate * (times[late] - times[late][0])),
        **LAW,
        label=f"{law}, the law",
    )
    axes.axvline(5.0, color=HULL, linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
    axes.set(xlabel="t", title=what, xlim=(0, times[-1]))
    dress_flat(axes)
    axes.legend(frameon=False, fontsize=8)


def draw_two_counts(axes: Any, counts: dict[str, np.ndarray], label: str) -> None:
    """How often each count occurs, for two kinds of starts."""
    bottom = np.zeros(4)
    for number, (name, values) in enumerate(counts.items()):
        heights = np.array([int((values == place).sum()) for place in (0, 1, 2, 3)])
        axes.bar(
            np.arange(1, 4),
            heights[1:],
            bottom=bottom[1:],
            width=0.55,
            color=PALETTE[number],
            label=name,
            zorder=2,
            hatch="" if number == 0 else "///",
            edgecolor="white",
            linewidth=0.0,
        )
        for place in np.flatnonzero(heights):
            axes.text(
                place,
                bottom[place] + heights[place],
                f"{heights[place]}",
                fontsize=8.5,
                ha="center",
                va="bottom",
            )
        bottom += heights
    most = max(len(values) for values in counts.values())
    axes.set(
        xlabel=f"number of {label}",
        ylabel="starts",
        title="Random starts",
        xlim=(0.4, 3.6),
        ylim=(0, 1.6 * most),
    )
    dress_flat(axes)
    axes.set_xticks([1, 2, 3])
    axes.legend(frameon=False, fontsize=8, loc="upper right")


def draw_group_count(axes: Any, times: np.ndarray, counts: np.ndarray, wall: float) -> None:
    """The number of groups over time, what the conjecture allows, and where double precision
    ends.
    """
    axes.semilogy(times, counts, color=PALETTE[0], linewidth=1.7, drawstyle="steps-post", zorder=3)
    axes.axhline(3, color=INK, linewidth=1.0, linestyle=(0, (1, 1.2)), zorder=2)
    axes.text(2.2 * wall, 3.1, "conjecture: at most 3", fontsize=8, ha="right", va="bottom")
    for t, words, place, side in (
        (5.0, "published end ", "bottom", "right"),
        (wall, " double precision ends", "top", "left"),
    ):
        axes.axvline(t, color=HULL, linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
        axes.text(
            t,
            0.03 if place == "bottom" else 0.98,
            words,
            fontsize=8,
            color=NOTE,
            rotation=90,
            va=place,
            ha=side,
            transform=axes.get_xaxis_transform(),
        )
    axes.set(xlabel="t", title="Groups in F", xlim=(0, 2.2 * wall), ylim=(1, 1.3 * counts.max()))
    dress_flat(axes)
    axes.set_yticks([1, 2, 3, 5, 10, 20, 40], ["1", "2", "3", "5", "10", "20", "40"])
    axes.set_yticks([], minor=True)
    axes.set_box_aspect(1)
