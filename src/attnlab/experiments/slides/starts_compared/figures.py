"""The pictures of starts_compared: starts and limits in the plane, limits over the size, clusters
over the number of heads.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.analysis.intervals import bootstrap_interval
from attnlab.experiments.common.heads import as_shown
from attnlab.experiments.common.panels import draw_means, set_ticks
from attnlab.experiments.datasets import select
from attnlab.experiments.record import Data
from attnlab.render.style import (
    INK,
    MARKERS,
    NOTE,
    PALETTE,
    dress_flat,
    house_style,
    new_figure,
    title,
)

from .claims import ended
from .experiment import LAWS


def figures(data: Data) -> dict[str, Any]:
    """Starts and limits in the plane, limits over the size; then clusters over the number of
    heads.
    """
    with house_style():
        return {"starts_compared": over_size(data), "starts_compared_heads": over_heads(data)}


WORDS = {
    "regular": "equally spaced",
    "sphere": "circle or sphere",
    "cube": "cube",
    "normal": "normal",
    "real": "real embeddings",
}


def over_size(data: Data) -> Any:
    """Starts (grey) and certified limits (colour) at two sizes; on the right the number of limits
    over the size.
    """
    pictures, sizes = data["pictures"], data["sizes"]
    n = sizes.attrs["n"]
    figure = new_figure(13.2, 5.4)
    grid = figure.subplots(2, 5, width_ratios=[1, 1, 1, 1, 1.55])
    for row, reach in enumerate(pictures["size"].values):
        for column, law in enumerate(pictures["law"].values):
            axes, one = grid[row, column], pictures.isel(size=row, law=column)
            start, end = one["start"].values / reach, one["limit"].values / reach
            axes.plot(
                *np.stack([start, end], axis=-1).transpose(1, 2, 0),
                color=NOTE,
                linewidth=0.5,
                alpha=0.45,
                zorder=1,
            )
            axes.scatter(*start.T, s=12, color=NOTE, linewidths=0, zorder=2, alpha=0.7)
            axes.scatter(
                *end.T, s=34, color=PALETTE[column - 1] if column else INK, linewidths=0, zorder=3
            )
            axes.set(
                xlim=(-2.2, 2.2),
                ylim=(-2.2, 2.2),
                aspect="equal",
                xticks=[],
                yticks=[],
                title=(
                    f"{'circle' if law == 'sphere' else 'square' if law == 'cube' else WORDS[str(law)]}:"
                    f" {int(one['count'])} of {n}"
                ),
            )
        grid[row, 0].set_ylabel(f"size {reach:g}", fontsize=11)
        _draw_sizes(grid[row, -1], sizes, row + 2)
        dress_flat(grid[row, -1])
    grid[0, -1].legend(frameon=False, fontsize=8, loc="upper left")
    title(
        figure,
        "A large start keeps the tokens that lead themselves, a small one a single limit: size"
        " decides how much of the shape remains · one head, Q = K = V = I",
        "Left: grey dots are the first tokens over the size (root mean square norm), coloured dots"
        " their certified limits z, thin lines join the two; titles: limits of tokens. Right: mean"
        " number of limits with 95 % intervals over independent starts; dashed: tokens that lead"
        " themselves at t = 0, the limit of large starts.",
    )
    return figure


def _draw_sizes(axes: Any, sizes: Any, d: int) -> None:
    """The number of limits over the size of the start, by law."""
    for number, law in enumerate(("sphere", "cube", "normal")):
        rows = select(sizes, law=law, d=d)
        places = np.unique(rows["size"].values)
        groups = [select(rows, size=place)["limits"].values for place in places]
        draw_means(
            axes, places * (1 + 0.04 * (number - 1)), groups, label=WORDS[law], **look_of(number)
        )
        axes.axhline(
            rows["self_led"].values.mean(),
            color=PALETTE[number],
            linewidth=0.9,
            linestyle=(0, (4, 2)),
        )
    axes.set(
        xscale="log", ylim=(0, None), ylabel="limits", xlabel="size of the start", title=f"d = {d}"
    )


def look_of(number: int) -> dict[str, Any]:
    """How the means of a law are drawn, with 95 % intervals; there is no mean below one cluster."""
    return {
        "ends": bootstrap_interval,
        "least": 1.0,
        "color": PALETTE[number],
        "marker": MARKERS[number],
        "markersize": 4.5,
        "linewidth": 1.3,
        "capsize": 2,
    }


def over_heads(data: Data) -> Any:
    """Clusters over the number of heads: without and with projection, by family and values, one
    line per law.
    """
    cases = data["cases"]
    where = [
        (family, values)
        for family in ("synthetic", "trained")
        for values in ("identity", "own")
        if (cases["family"].values == family).any()
    ]
    figure = new_figure(3.1 * len(where), 5.8)
    grid = figure.subplots(2, len(where), sharex=True, squeeze=False)
    for row, geometry in enumerate(("euclidean", "sphere")):
        for column, (family, values) in enumerate(where):
            axes = grid[row, column]
            rows = select(cases, family=family, values=values, geometry=geometry)
            rows = select(rows, size=rows["size"].values.max(), d=rows["d"].values.min())
            done = ended(rows)
            counts = np.unique(rows["heads"].values)
            for number, law in enumerate(LAWS):
                if not (rows["law"].values == law).any():
                    continue
                groups = [
                    rows["clusters"].values[
                        done & (rows["law"].values == law) & (rows["heads"].values == count)
                    ]
                    for count in counts
                ]
                places = counts * (1 + 0.05 * (number - 1))
                said = as_shown(WORDS[law], cases.attrs["model"])
                draw_means(axes, places, groups, label=said, **look_of(number))
            axes.axhline(1, color=NOTE, linewidth=0.7, linestyle=(0, (1, 1.5)))
            axes.set(xscale="log", ylim=(0, max(3.2, axes.get_ylim()[1])))
            set_ticks(axes, counts)
            dress_flat(axes)
            axes.set_ylim(0, 1.18 * axes.get_ylim()[1])
            axes.text(
                0.02,
                0.98,
                "ended: " + _ended(done, rows["heads"].values),
                transform=axes.transAxes,
                ha="left",
                va="top",
                fontsize=7,
                color=NOTE,
            )
            if not row:
                words = "V$_h$ = I" if values == "identity" else "own V$_h$"
                axes.set_title(
                    f"{as_shown(family, cases.attrs['model'])} heads, d = {rows['d'].values[0]},"
                    f" {words}"
                )
        grid[row, 0].set_ylabel(
            "clusters, " + ("without projection" if not row else "on the sphere")
        )
    for axes in grid[-1]:
        axes.set_xlabel("heads")
    grid[0, 2 if len(where) > 2 else 1].legend(
        frameon=False, fontsize=8, loc="upper right", bbox_to_anchor=(1.0, 0.9)
    )
    title(
        figure,
        "Without projection: with V = I more heads leave one cluster, with several Gaussian V most"
        " runs reach no end",
        "Mean number of clusters (at 1 % of the largest token) at H t = 20, own V: at twelve times"
        " the time of growth, of the runs that ended (how many of how many, by number of heads:"
        " above; V = I: that reached H t = 20). Not counted, own V: runs in which leaders change"
        " without end, those with other clusters at twice the time or the step, and V whose sum has"
        " no growing direction. Under projection the normal law is the sphere. Bars: 95 % intervals"
        " over independent starts (three or more), cut at 1. Starts have the same second moment,"
        " synthetic ones size 5."
        + (
            as_shown(f" Trained: {cases.attrs['model']}.", cases.attrs["model"])
            if cases.attrs["model"]
            else ""
        ),
    )
    return figure


def _ended(done: np.ndarray, counts: np.ndarray) -> str:
    """How many runs ended, for each number of heads; once if all did."""
    if done.all():
        return f"all {len(done)}"
    return ", ".join(
        f"{done[counts == count].sum()}/{(counts == count).sum()}" for count in np.unique(counts)
    )
