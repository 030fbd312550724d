"""The certified end of a flow: rescaled tokens on their way to it, and how far they are from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab.render.style import HULL, INK, PALETTE, RULE, dress_flat

if TYPE_CHECKING:
    from attnlab.models.studies.flow_end import FlowEnd
    from attnlab.types import Limit

LEAST = 1e-12
"""Distances below this part of the largest point are not drawn: rounding."""


def draw_way(axes: Any, limit: Limit, end: FlowEnd, colours: np.ndarray, size: float) -> None:
    """Draw rescaled tokens on their way, along the first two certified directions; along one over
    time.
    """
    dress_flat(axes, ticks=5)
    path = _known(limit)[..., end.columns]  # (T, n, k)
    if path.shape[2] == 1:
        times = limit.times[: len(path)] * end.rate.real
        for i in range(path.shape[1]):
            axes.plot(times, path[:, i, 0], color=colours[i], linewidth=0.9, alpha=0.7)
        for point in end.points[:, 0]:
            axes.axhline(point, color=INK, linewidth=0.8, linestyle=(0, (2, 2)), zorder=1)
        axes.set_xlabel("λ₁ t", labelpad=1)
        axes.set_ylabel("certified direction 1")
        return
    for i in range(path.shape[1]):
        axes.plot(*path[:, i, :2].T, color=colours[i], linewidth=0.8, alpha=0.5, zorder=2)
    if len(path):
        axes.scatter(
            *path[0, :, :2].T,
            s=0.55 * size,
            facecolors="white",
            edgecolors=colours,
            linewidths=0.9,
            zorder=3,
        )
    axes.scatter(*end.points[:, :2].T, s=4.0 * size, marker="*", color=INK, zorder=5)
    axes.margins(0.1)
    axes.set_xlabel("certified direction 1", labelpad=1)
    axes.set_ylabel("certified direction 2")


def draw_distance(
    axes: Any, limit: Limit, end: FlowEnd, colours: np.ndarray, run: float, has_run: bool = True
) -> None:
    """Draw how far each rescaled token is from its certified end, along the leading directions.

    run: the end of the simulation, marked unless has_run is False. The grey part is certified; the
    end may be off by the dashed line.
    """
    dress_flat(axes, ticks=4)
    leading = 2 if end.rate.imag and end.points.shape[1] > 1 else 1
    path, rate = _known(limit)[..., end.columns[:leading]], end.rate.real
    size = float(np.abs(limit.points).max(initial=0.0)) or 1.0
    ends = limit.points[None][..., end.columns[:leading]]
    away = np.linalg.norm(path - ends, axis=-1) / size  # (T, n)
    times = limit.times[: len(path)] * rate
    is_before = limit.times[: len(path)] < limit.t
    for i in range(path.shape[1]):
        shown = is_before & (away[:, i] > LEAST)
        axes.plot(times[shown], away[shown, i], color=colours[i], linewidth=1.0, alpha=0.8)
    axes.set_yscale("log")
    decided = limit.t * rate
    last = 1.25 * max(decided, run * rate)
    axes.axvspan(decided, last, color=RULE, alpha=0.5, linewidth=0, zorder=0)
    axes.axhline(max(end.error, LEAST), color=HULL, linewidth=1.0, linestyle=(0, (5, 2)))
    if has_run:
        axes.axvline(run * rate, color=PALETTE[1], linewidth=1.2, linestyle=(0, (2, 2)))
    axes.set_xlim(0.0, last)
    axes.set_xlabel("λ₁ t", labelpad=1)


def _known(limit: Limit) -> np.ndarray:
    """The projections of the rescaled tokens at the times where they are known, (T, n, k)."""
    is_known = np.isfinite(limit.path).all(axis=(1, 2))
    return np.asarray(limit.path[: int(np.argmin(is_known)) if not is_known.all() else None])
