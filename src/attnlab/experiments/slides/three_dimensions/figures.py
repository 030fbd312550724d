"""Pictures of three_dimensions: hulls in space for several numbers of heads, and what is left of
their corners.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.displayed import count_words
from attnlab.experiments.common.certified import certified_in_words, decided
from attnlab.experiments.common.heads import HEADS, as_shown
from attnlab.experiments.common.panels import draw_means, mark_heads
from attnlab.experiments.datasets import rows_where
from attnlab.experiments.record import Data
from attnlab.render.hulls import outline
from attnlab.render.style import (
    HULL,
    INK,
    LINES,
    MARKERS,
    PALETTE,
    dress_flat,
    dress_space,
    house_style,
    new_figure,
    set_layout,
    title,
)

PICTURED = (0.0, 1.0, 2.0, 4.0, 12.0)
"""The tau of the panels."""
ROWS = (1, 4, 16)
FAMILIES = {
    "near": "Q = K near the identity",
    "synthetic": "Gaussian heads",
    "trained": "trained heads",
}


def figures(data: Data) -> dict[str, Any]:
    """Hulls, numbers, and trained heads where they are there."""
    with house_style():
        found = {"three_dimensions": _hulls(data), "three_dimensions_numbers": _numbers(data)}
        return found | ({"three_dimensions_trained": _trained(data)} if "trained" in data else {})


def _hulls(data: Data) -> Any:
    shown = data["shown"]
    at = [int(np.argmin(np.abs(shown["tau"].values - one))) for one in PICTURED]
    figure = _grid(shown["z"].values[:, at], shown["labels"].values, "z")
    n = shown.sizes["token"]
    title(
        figure,
        f"V = I in space: {n} tokens, their hull shrinks to a polytope; further heads take its"
        " corners away",
        "Rows: 1, 4 and 16 heads with Q = K = I plus a random matrix each. z = exp(−τ) x, τ = Ht."
        " Colour and marker: the certified limit of a token; grey: the convex hull now; dotted:"
        " that of the start, the same for all. Upwards: z₃.",
    )
    return figure


def _trained(data: Data) -> Any:
    shown = data["trained"]
    at = [int(np.argmin(np.abs(shown["tau"].values - one))) for one in PICTURED]
    figure = _grid(shown["z"].values[:, at], shown["labels"].values, "PC")
    facts = shown.attrs
    left = ", ".join(_limits_in_words(shown["labels"].values[HEADS.index(count)]) for count in ROWS)
    n = shown.sizes["token"]
    read = as_shown(f"a paragraph of {n} tokens", facts["model"])
    title(
        figure,
        f"{facts['model']}, V = I: {read}; 1, 4 and 16 heads have {left}",
        f"The flow in {facts['d']} dimensions, seen in the three principal components of the first"
        f" tokens, which hold {100 * facts['share']:.0f} % of their variance. Colour and marker:"
        " the certified limit of a token; grey: the hull of what is seen; dotted: that of the"
        " start. Upwards: PC₃.",
    )
    return figure


def _grid(z: np.ndarray, labels: np.ndarray, name: str) -> Any:
    """Panels for ROWS numbers of heads and the times PICTURED of z (head count, panel, n, 3)."""
    figure = new_figure(2.5 * len(PICTURED) + 0.4, 2.6 * len(ROWS) + 1.1)
    set_layout(figure, w_pad=0.02, h_pad=0.05, wspace=0.0, hspace=0.0)
    for row, count in enumerate(ROWS):
        k = HEADS.index(count)
        for column, tau in enumerate(PICTURED):
            axes: Any = figure.add_subplot(
                len(ROWS), len(PICTURED), row * len(PICTURED) + column + 1, projection="3d"
            )
            _draw_hull(axes, z[k, column], z[k, 0], labels[k])
            if row == 0:
                axes.set_title(f"τ = {tau:g}")
            if column == 0:
                axes.text2D(
                    -0.04,
                    0.5,
                    f"{count} head{'s' if count > 1 else ''}",
                    transform=axes.transAxes,
                    rotation=90,
                    va="center",
                    ha="center",
                    fontsize=10.5,
                )
                axes.set_xlabel(f"{name}₁", labelpad=-9, fontsize=8)
                axes.set_ylabel(f"{name}₂", labelpad=-9, fontsize=8)
            if tau == PICTURED[-1]:
                axes.text2D(
                    0.95,
                    0.9,
                    _limits_in_words(labels[k]),
                    transform=axes.transAxes,
                    ha="right",
                    va="top",
                    fontsize=9,
                )
    return figure


def _limits_in_words(labels: np.ndarray) -> str:
    if labels.min() < 0:
        return "undecided"
    return count_words(int(labels.max()) + 1, "limit")


def _draw_hull(axes: Any, now: np.ndarray, first: np.ndarray, labels: np.ndarray) -> None:
    looks: tuple[dict[str, Any], ...] = (
        {"linewidth": 0.4, "linestyle": (0, (1, 2))},
        {"linewidth": 0.9},
    )
    for points, look in zip((first, now), looks, strict=True):
        edges = outline(points).edges
        broken = np.concatenate(
            [edges, np.full((len(edges), 1, 3), np.nan)], axis=1
        )  # one line: 3-d artists are slow
        axes.plot(*broken.reshape(-1, 3).T, color=HULL, **look)
    names, sizes = np.unique(labels, return_counts=True)
    for k, label in enumerate(names[np.argsort(-sizes, kind="stable")]):
        axes.scatter(
            *now[labels == label].T,
            s=16,
            color=PALETTE[k % 6],
            marker=MARKERS[(k // 6) % 4],
            linewidths=0,
            depthshade=False,
            alpha=0.9,
        )
    low, high = first.min(axis=0), first.max(axis=0)
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), zlim=(low[2], high[2]))
    dress_space(axes)
    axes.set_xticklabels([])
    axes.set_yticklabels([])
    axes.set_zticklabels([])
    axes.set_box_aspect((1, 1, 0.9), zoom=1.22)
    axes.view_init(22, -58)


def _numbers(data: Data) -> Any:
    cases, found = decided(data["ends"]), data["polytopes"]
    model = data["trained"].attrs["model"] if "trained" in data else ""
    paragraph = as_shown("trained: one paragraph", model)
    figure = new_figure(11.4, 3.9)
    left, middle, right = figure.subplots(1, 3)
    styles: list[dict[str, Any]] = [
        {"color": PALETTE[k], "marker": MARKERS[k], "linestyle": LINES[k], "linewidth": 1.4}
        for k in range(3)
    ]
    for style, (family, words) in zip(styles, FAMILIES.items(), strict=True):
        mine = rows_where(cases, family=family)
        if mine.any():
            _errorbars(
                left, cases, mine, "corners", label=as_shown(words, model), capsize=2, **style
            )
            if family != "trained":
                _errorbars(middle, cases, mine, "volume", label=words, capsize=2, **style)
    for axes, words in (
        (left, "Corners that are left, V = I"),
        (middle, "Volume of the limit polytope over the first hull"),
    ):
        dress_flat(axes)
        mark_heads(axes)
        axes.set_title(words)
        axes.legend(frameon=False, fontsize=8, loc="upper right")
    left.set_ylim(0, None)
    middle.set_ylim(0, None)
    solid = found["rank"].values == 3
    V = found["V"].values[solid]
    most = max(V.max(initial=5), 5)
    law: dict[str, Any] = {"color": INK, "linewidth": 1.0, "linestyle": LINES[2]}
    right.plot([4, most], [6, 3 * most - 6], label="3V − 6 and 2V − 4", **law)
    right.plot([4, most], [4, 2 * most - 4], **law)
    for k, (name, words) in enumerate((("E", "edges"), ("F", "facets"))):
        right.scatter(
            V,
            found[name].values[solid],
            s=26,
            color=PALETTE[k],
            marker=MARKERS[k],
            linewidths=0,
            label=words,
        )
    right.set(xlabel="corners V", title="One head: certified limit polytopes")
    dress_flat(right)
    right.legend(frameon=False, fontsize=8, loc="upper left")
    draws = int(cases["seed"].values.max())
    title(
        figure,
        "Each further head takes corners away; what one head leaves obeys Euler's formula V − E +"
        " F = 2",
        f"Left and middle: means over {draws} draws of heads and {cases.attrs['n']} tokens"
        f" ({paragraph}, corners in all its dimensions), bars 95 % bootstrap intervals;"
        f" {certified_in_words(data['ends'])}. Right: dotted, what Euler's formula gives where all facets"
        " are triangles.",
    )
    return figure


def _errorbars(axes: Any, cases: Any, mine: np.ndarray, column: str, **look: Any) -> None:
    """Means of a column against the number of heads, with bootstrap intervals."""
    generator = np.random.default_rng(0)

    def ends(sample: np.ndarray) -> tuple[float, float]:
        if not len(sample):
            return np.nan, np.nan
        resampled = sample[generator.integers(0, len(sample), (2000, len(sample)))].mean(axis=1)
        return np.quantile(resampled, 0.025), np.quantile(resampled, 0.975)

    samples = [
        cases[column].values[mine & (cases["heads"].values == count)].astype(float)
        for count in HEADS
    ]
    draw_means(axes, np.arange(len(HEADS)), samples, ends, markersize=4.5, elinewidth=0.9, **look)


film_options = {"kind": "tokens", "frames": 100}
