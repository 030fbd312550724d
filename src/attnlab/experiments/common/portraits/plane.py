"""Tokens in a plane that is not one of the user's: their parts in F at one time, and data that a
symmetry keeps on the axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.patches import Circle, Polygon

from attnlab.experiments.common.portraits.marks import GHOST, OUTLINED
from attnlab.render.groups import Groups
from attnlab.render.hulls import outline
from attnlab.render.panels.flat import frame_flat, token_size
from attnlab.render.ranges import pad_ranges
from attnlab.render.style import HULL, INK, PALETTE, RULE, dress_flat


def draw_plane(
    axes: Any,
    history: np.ndarray,
    ends: np.ndarray,
    groups: Groups,
    words: str,
    labels: Sequence[str],
    everything: np.ndarray,
    *,
    special: np.ndarray | None = None,
    has_hull: bool = False,
    is_end: bool = False,
    label_above: bool = False,
) -> None:
    """The history (T, n, 2) of the tokens until now, hollow marks (n, 2) where they end; the axes
    hold everything (..., n, 2).
    """
    dress_flat(axes)
    points = history[-1]
    everything = np.concatenate([everything.reshape(-1, 2), ends])
    limits = pad_ranges(everything.min(axis=0), everything.max(axis=0), margin=0.1)
    frame_flat(axes, labels, limits)
    axes.set_xlabel(labels[0])
    axes.set_ylabel("" if label_above else labels[1], rotation=90, va="bottom", labelpad=3)
    if label_above:  # where a label in space stands to the left of these axes
        axes.text(
            0.0, 1.02, labels[1], ha="right", va="bottom", fontsize=10, transform=axes.transAxes
        )
    axes.tick_params(labelleft=bool(labels[1]))
    if has_hull:
        axes.add_patch(
            Polygon(
                outline(points).ring, facecolor="#EFEFEF", edgecolor=HULL, linewidth=1.0, zorder=0.8
            )
        )
        axes.add_patch(
            Polygon(
                outline(ends).ring,
                facecolor="none",
                edgecolor=INK,
                linewidth=0.9,
                zorder=2.5,
                alpha=0.8,
                linestyle="solid" if is_end else (0, (4, 2.5)),
            )
        )
    if len(history) > 1:
        axes.add_collection(
            LineCollection(
                list(np.swapaxes(history, 0, 1)),
                colors=groups.colours,
                linewidths=0.7,
                alpha=0.35,
                zorder=2,
            ),
            autolim=False,
        )
    for marker in dict.fromkeys(groups.markers):
        chosen = np.flatnonzero(groups.markers == marker)
        axes.scatter(
            *points[chosen].T,
            s=token_size(len(points)),
            marker=marker,
            c=groups.colours[chosen],
            edgecolors="white",
            linewidths=0.5,
            zorder=4,
        )
        axes.scatter(
            *ends[chosen].T,
            s=GHOST,
            marker=marker,
            facecolors="none",
            edgecolors=groups.colours[chosen],
            linewidths=1.2,
            zorder=3.5,
        )
    leading = points[groups.leaders]
    axes.scatter(*leading.T, s=120.0, facecolors="none", edgecolors=INK, linewidths=0.9, zorder=5)
    if special is not None and len(special):
        axes.scatter(*special.T, s=26, marker="x", c=INK, linewidths=1.1, zorder=5.5)
    if is_end:
        _draw_numbers(axes, ends, groups)
    axes.set_title(words)


def _draw_numbers(axes: Any, ends: np.ndarray, groups: Groups) -> None:
    """How many tokens end at each limit, outside their hull."""
    assert groups.labels is not None
    middle = np.unique(np.round(ends, 9), axis=0).mean(axis=0)
    for label in np.unique(groups.labels):
        at = ends[groups.labels == label][0]
        away = at - middle
        axes.annotate(
            str(int((groups.labels == label).sum())),
            at,
            xytext=14 * away / max(float(np.linalg.norm(away)), 1e-300),
            textcoords="offset points",
            fontsize=8.5,
            ha="center",
            va="center",
            zorder=7,
            path_effects=OUTLINED,
        )


def draw_cross(axes: Any, limits: np.ndarray, start: np.ndarray, radius: float) -> None:
    """Four tokens (4, 2) that stay on their axes: start, limits, and the circle on which theory
    puts these.
    """
    dress_flat(axes)
    axes.axhline(0.0, color=RULE, linewidth=0.8, zorder=0)
    axes.axvline(0.0, color=RULE, linewidth=0.8, zorder=0)
    axes.add_patch(
        Circle(
            (0.0, 0.0),
            radius,
            facecolor="none",
            edgecolor=INK,
            linewidth=1.0,
            linestyle=(0, (1, 1.2)),
            zorder=1,
        )
    )
    for number, (first, last) in enumerate(zip(start, limits, strict=True)):
        axes.plot(
            *np.array([first, last]).T, color=PALETTE[number], linewidth=1.2, alpha=0.6, zorder=2
        )
        axes.scatter(*first, s=22, color=PALETTE[number], zorder=3)
        axes.scatter(
            *last, s=70, color=PALETTE[number], edgecolors="white", linewidths=0.7, zorder=4
        )
        beside = (
            (1.45 * np.sign(last[0]), 0.24)
            if abs(last[0]) > 0.1
            else (0.75, 1.25 * np.sign(last[1]))
        )
        axes.text(
            *beside,
            f"({last[0]:.4g}, {last[1]:.4g})".replace("-", "−"),
            fontsize=8,
            ha="center",
            va="center",
            path_effects=OUTLINED,
            zorder=5,
        )
    frame_flat(axes, ("z₁", "z₂"), np.array([[-2.1, 2.1], [-2.1, 2.1]]))
    axes.set_title("V = diag(1.2, 0.8): four limits")
