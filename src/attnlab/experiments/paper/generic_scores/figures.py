"""Panels of random draws: a run in the plane with its shrinking hulls and limits, and how often
each number of limits occurs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from attnlab.experiments.datasets import limit_in, run_in
from attnlab.experiments.record import Data
from attnlab.render.hulls import outline
from attnlab.render.style import (
    HULL,
    INK,
    MARKERS,
    PALETTE,
    dress_flat,
    house_style,
    new_figure,
    set_layout,
    title,
)

from .claims import COUNTED, classes_of, counts_of
from .experiment import CLASSES, REACH, N, class_of, ended, first_of, scores_of


def draw_shrinking(
    axes: Any,
    times: np.ndarray,
    z: np.ndarray,
    points: np.ndarray,
    labels: np.ndarray,
    scores: np.ndarray,
    reach: float,
    hulls: Sequence[float] = (0.0, 0.5, 1.0, 1.5, 2.0),
) -> None:
    """Tokens z (T, n, 2) in [-reach, reach]^2: the first ones, trails, hulls, limits `points` (n,
    2), their polytope.

    Dotted, at each limit u: the line through it that <scores^T u, .> is constant on, which must
    bound the polytope.
    """
    for t, alpha in zip(hulls, np.linspace(0.95, 0.4, len(hulls)), strict=True):
        ring = outline(z[int(np.argmin(np.abs(times - t)))]).ring
        axes.plot(
            *np.append(ring, ring[:1], axis=0).T,
            color=HULL,
            linewidth=0.8,
            alpha=alpha,
            zorder=1,
            linestyle=(0, (4, 3)) if t == hulls[0] else "solid",
        )
    axes.fill(
        *outline(points).ring.T, facecolor="#E2E2E2", edgecolor=INK, linewidth=1.0, zorder=1.5
    )
    for label in range(int(labels.max()) + 1):
        members, colour = np.flatnonzero(labels == label), PALETTE[label % len(PALETTE)]
        axes.plot(
            z[:, members, 0], z[:, members, 1], color=colour, linewidth=0.8, alpha=0.55, zorder=2
        )
        axes.scatter(
            *z[0, members].T,
            s=15,
            marker=MARKERS[label % len(MARKERS)],
            color=colour,
            edgecolors="white",
            linewidths=0.4,
            zorder=3,
        )
        limit = points[members[0]]
        along = (scores.T @ limit)[::-1] * (1, -1)
        sides = limit + np.array([[-1.0], [1.0]]) * 0.36 * reach * along / np.linalg.norm(along)
        axes.plot(*sides.T, color=colour, linewidth=1.6, linestyle=(0, (1, 1.1)), zorder=3.5)
        axes.scatter(*limit, s=60, facecolors="white", edgecolors=colour, linewidths=2.0, zorder=4)
    axes.plot(0, 0, marker="+", markersize=8, color=INK, markeredgewidth=1.1, zorder=5)
    dress_flat(axes)
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal", xlabel="z₁")
    axes.set_ylabel("z₂", rotation=0, labelpad=6)


def draw_counts(
    axes: Any, counts: np.ndarray, most: int, sample: Mapping[int, int] | None = None
) -> None:
    """Bars: the share of draws with 1, 2, .. most limits; diamonds: another sample, {number of
    limits: how often}.
    """
    numbers, times = np.unique(counts, return_counts=True)
    shares = times / max(len(counts), 1)
    axes.bar(
        numbers,
        shares,
        width=0.62,
        color=PALETTE[5],
        edgecolor=PALETTE[0],
        linewidth=0.8,
        label=f"{len(counts)} draws",
    )
    for number, share, many in zip(numbers, shares, times, strict=True):
        axes.text(number, share + 0.03, str(many), ha="center", va="bottom", fontsize=8)
    if sample:
        runs = sum(sample.values())
        axes.scatter(
            np.array(list(sample)) + 0.45,
            np.array(list(sample.values())) / runs,
            marker="D",
            s=26,
            color=PALETTE[1],
            edgecolors="white",
            linewidths=0.6,
            zorder=4,
            label=f"other sample, {runs} runs",
        )
    axes.legend(frameon=False, fontsize=8, loc="upper right", handletextpad=0.5, handlelength=1.2)
    dress_flat(axes)
    axes.set(xlim=(0.4, most + 0.6), ylim=(0, 1.5), xlabel="number of limits")
    axes.set_xticks(range(1, most + 1))
    axes.set_yticks([0, 0.5, 1], ["0", "50 %", "100 %"])


def figures(data: Data) -> dict[str, Any]:
    """Three draws and the counts, for V = I and in F; and what the size of the start does."""
    return {
        "generic_scores": _rows(
            data, "draws", "", "V = I, any scores: tokens still end on a polytope"
        ),
        "generic_scores_paranormal": _rows(
            data, "paranormal", "paranormal_", "V = diag(1, 1, −0.5), any scores: the part in F"
        ),
        "generic_scores_start_size": _size_figure(data["sizes"]),
    }


def _rows(data: Data, name: str, before: str, headline: str) -> Any:
    """The first draw of each class, and below it the counts of all."""
    draws = data[name]
    kinds, counts = classes_of(draws), counts_of(draws)
    open_ones = int((draws["is_decided"].values == 0).sum())
    block = "$M_{FF}$" if before else "M"
    with house_style():
        figure = new_figure(9.6, 6.5)
        set_layout(figure, wspace=0.04, hspace=0.03)
        panels = figure.subplots(2, 3, height_ratios=[1.75, 1])
        for (top, below), kind in zip(panels.T, CLASSES, strict=True):
            shown = before + kind.replace(" ", "_")
            run, end, draw = (
                run_in(data, shown),
                limit_in(data, f"{shown}_limit", shown),
                first_of(kind, draws.attrs["d"]),
            )
            assert run.z is not None
            points, labels = (
                (end.limits[:, :2], end.labels) if end.certified else ended(run.z[-1][:, :2])
            )
            draw_shrinking(
                top,
                run.times,
                run.z[..., :2],
                points,
                labels,
                run.dynamics.weights.M[0][:2, :2],
                1.12 * REACH,
            )
            count = int(labels.max()) + 1
            found = (
                f"{count} limits"
                if count > 1
                else f"1 limit, at {np.linalg.norm(points[0]):.2f} from 0"
            )
            top.set_title(f"sym({block}) {kind}\n(draw {draw}: {found})", fontsize=9.5)
            draw_counts(
                below,
                counts[kinds == kind],
                max(6, int(counts.max())),
                None if before else COUNTED[kind],
            )
        panels[1, 0].set_ylabel("share of draws")
        said = (
            f", {open_ones} not certified and counted at the end of their run" if open_ones else ""
        )
        said += "" if before else "; other sample: 20 runs counted independently"
        title(
            figure,
            f"{headline} · n = {N}",
            "Above: the first draw of each class, entries of M uniform in [−1, 1]. Rings: limits"
            f" u, their polytope shaded; dotted: the lines ⟨{block}ᵀu, ·⟩ = const., which must"
            f" bound it; grey: hulls at t = 0, ½, 1, 1½, 2. Below: {len(counts)} draws{said}.",
        )
    return figure


def _size_figure(sizes: Any) -> Any:
    """Against the size of the start: the share of draws of each class with one limit, and where the
    one limit is.
    """
    reach, counts = sizes["size"].values, sizes["label"].values.max(axis=-1) + 1  # (size, draw)
    kinds = np.array([class_of(scores_of(draw, 2)) for draw in range(counts.shape[1])])
    negative = kinds == CLASSES[2]
    norms = (
        np.linalg.norm(sizes["limit"].values[:, negative].mean(axis=2), axis=-1) / reach[:, None]
    )
    mean = float(np.median(np.linalg.norm(sizes["mean"].values[negative], axis=-1)))
    with house_style():
        figure = new_figure(8.6, 3.8)
        left, right = figure.subplots(1, 2)
        for number, kind in enumerate(CLASSES):
            is_single = counts[:, kinds == kind] == 1
            left.plot(
                reach,
                is_single.mean(axis=1),
                marker=MARKERS[number],
                color=PALETTE[number],
                linewidth=1.6,
                label=f"{kind} ({is_single.shape[1]} draws)",
            )
        left.axvline(REACH, color=INK, linewidth=0.8, linestyle=(0, (1, 1.5)))
        left.text(REACH * 1.08, 0.5, f"the paper's\n[−{REACH:g}, {REACH:g}]²", fontsize=8)
        left.set(xscale="log", ylim=(-0.04, 1.6), title="Share of draws with a single limit")
        left.legend(frameon=False, fontsize=8, loc="upper left")
        right.loglog(reach, norms, color=PALETTE[2], linewidth=0.7, alpha=0.4)
        right.loglog(
            reach,
            np.median(norms, axis=1),
            color=PALETTE[2],
            marker=MARKERS[2],
            linewidth=2.0,
            label="median of the limits",
        )
        right.axhline(
            mean,
            color=INK,
            linewidth=1.0,
            linestyle=(0, (5, 2)),
            label="theory for small L: the mean of the start",
        )
        right.set_title("sym(M) negative definite: |limit| / L")
        right.legend(frameon=False, fontsize=8, loc="lower left")
        for axes in (left, right):
            dress_flat(axes)
            axes.set_xlabel("L: tokens start in [−L, L]²")
            axes.set_xticks(reach, [f"{size:g}" for size in reach])
            axes.minorticks_off()
        left.set_yticks([0, 0.5, 1.0], ["0", "50 %", "100 %"])
        marks = [
            tick
            for tick in (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
            if norms.min() <= tick <= norms.max()
        ]
        right.set_yticks(marks, [f"{tick:g}" for tick in marks])
        title(
            figure,
            "The same draws with smaller and larger starts · V = I",
            "Small tokens attend evenly and end in one point near their mean, whatever the signs of"
            " sym(M). Where sym(M) is negative definite, tokens turn to those opposite: there is"
            " always one limit, the nearer to 0 the larger the start.",
        )
    return figure
