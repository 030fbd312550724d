"""Pictures of heads_and_clusters: how many clusters at the end, on the way there, and where those
of paragraphs are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.analysis.intervals import bootstrap_interval
from attnlab.experiments.common.certified import decided
from attnlab.experiments.common.heads import HEADS, as_shown
from attnlab.experiments.common.panels import draw_means, mark_heads, set_ticks
from attnlab.experiments.datasets import rows_where, select
from attnlab.experiments.record import Data
from attnlab.render.style import (
    INK,
    LINES,
    MARKERS,
    NOTE,
    PALETTE,
    dress_flat,
    house_style,
    new_figure,
    title,
)

from .flows import CLOCK, END

FAMILIES = {
    "synthetic": "Gaussian heads, d = 3",
    "alike": "Gaussian heads with K = Q, d = 3",
    "trained": "heads of {model}",
}


def figures(data: Data) -> dict[str, Any]:
    """Numbers at the end against the number of heads; numbers over time; places of clusters."""
    with house_style():
        found = {
            "heads_and_clusters": _at_the_end(data),
            "heads_and_clusters_over_time": _over_time(data),
        }
        return found | ({"heads_and_clusters_places": _places(data)} if "places" in data else {})


def rows_of(data: Data, **where: Any) -> np.ndarray:
    """The numbers of the cases with these entries."""
    return np.flatnonzero(rows_where(data["cases"], **where))


def name_of(data: Data, family: str) -> str:
    """The family in words."""
    return FAMILIES[family].format(model=data["cases"].attrs["model"])


def families_of(data: Data) -> list[str]:
    """The families that are there."""
    return [family for family in FAMILIES if family in data["cases"]["family"].values]


def _panels(data: Data, row: int, family: str) -> list[tuple[str, dict[str, Any]]]:
    """(words, columns to select) of the lines of a panel."""
    values = ("identity", "own")[row]
    sizes = sorted(
        set(
            data["cases"]["n"]
            .values[rows_of(data, family=family, values=values, start="cube")]
            .tolist()
        )
    )
    lines = [(f"n = {n}", {"n": n, "start": "cube"}) for n in sizes]
    if family == "trained":
        sizes = sorted(
            set(
                data["cases"]["n"]
                .values[rows_of(data, family=family, values=values, start="paragraph")]
                .tolist()
            )
        )
        read = as_shown("paragraph", data["cases"].attrs["model"])
        lines += [(f"{read}, n = {n}", {"n": n, "start": "paragraph"}) for n in sizes[-2:]]
    return [(words, {**where, "family": family, "values": values}) for words, where in lines]


def _at_the_end(data: Data) -> Any:
    families, identity = families_of(data), select(data["cases"], values="identity")
    figure = new_figure(3.6 * len(families) + 0.6, 6.6)
    grid = figure.subplots(2, len(families), sharex=True, sharey="row", squeeze=False)
    counts = data["cases"]["count"].values
    for row, words in enumerate(("V = I for every head", "each head its own V")):
        for axes, family in zip(grid[row], families, strict=True):
            for k, (label, where) in enumerate(_panels(data, row, family)):
                every = [
                    counts[rows_of(data, heads=count, **where)].astype(float) for count in HEADS
                ]
                known = [place for place, sample in enumerate(every) if len(sample)]
                places, samples = (
                    np.array(known) + 0.09 * (k - 1),
                    [every[place] for place in known],
                )
                draw_means(
                    axes,
                    places,
                    samples,
                    bootstrap_interval,
                    least=1.0,
                    color=PALETTE[k],
                    marker=MARKERS[k % 4],
                    linestyle=LINES[k % 4],
                    markersize=4.5,
                    linewidth=1.3,
                    elinewidth=0.9,
                    capsize=2,
                    label=f"{label} ({len(samples[0])})",
                )
            axes.axhline(1.0, color=INK, linewidth=0.6, linestyle=(0, (4, 3)), zorder=1)
            axes.set_yscale("log")
            axes.set_title(f"{name_of(data, family)}\n{words}")
            dress_flat(axes)
            mark_heads(axes, label="heads H" if row else "")
            set_ticks(axes, y=(1, 2, 5, 10, 20, 50))
            axes.set_ylim(0.8, (250, 400)[row])
            axes.legend(
                frameon=False, fontsize=8, loc="upper right", title="n (runs)", title_fontsize=8
            )
        grid[row, 0].set_ylabel(("limits", "clusters at the end")[row])
    title(
        figure,
        "More heads, fewer clusters: where heads disagree no token stands still, and with V = I 16"
        " leave one or two",
        f"V = I: mean number of limits. {len(decided(identity)['grade'])} of"
        f" {len(identity['grade'])} are certified; the others count by their clusters at τ = Ht ="
        f" {END:g}. Clusters are tokens joined by steps below 1 % of the first diameter. Bars: 95 %"
        " intervals over draws (their number in brackets), cut at 1. Own V: no certificate;"
        f" clusters of x over its size at τ = ρt = {END:g}, ρ the spectral radius of ΣV; these runs"
        " need not come to rest.",
    )
    return figure


def _over_time(data: Data) -> Any:
    families, cases = families_of(data), data["cases"]
    figure = new_figure(3.6 * len(families) + 0.6, 3.9)
    panels = figure.subplots(1, len(families), sharey=True, squeeze=False)[0]
    for axes, family in zip(panels, families, strict=True):
        where = {"family": family, "values": "identity", "start": "cube"}
        sizes = sorted(set(cases["n"].values[rows_of(data, **where)].tolist()))
        for k, n in enumerate(sizes):
            for count, style in ((1, LINES[2]), (max(HEADS), LINES[0])):
                rows = rows_of(data, heads=count, n=n, **where)
                if not len(rows):
                    continue
                mean = cases["counts"].values[rows].mean(axis=0)
                axes.plot(
                    CLOCK,
                    mean,
                    color=PALETTE[k],
                    linestyle=style,
                    linewidth=1.5,
                    label=f"n = {n}" if count > 1 else None,
                )
        axes.axvline(max(HEADS) * 1.0, color=NOTE, linewidth=0.8, linestyle=(0, (4, 3)))
        axes.text(
            max(HEADS) + 0.3,
            0.97,
            "t = 1, 16 heads",
            rotation=90,
            fontsize=8,
            color=NOTE,
            va="top",
            transform=axes.get_xaxis_transform(),
        )
        axes.set(
            yscale="log",
            xlabel="τ = Ht",
            title=name_of(data, family),
            xlim=(0, END),
            ylim=(0.8, None),
        )
        set_ticks(axes, y=(1, 2, 5, 10, 20, 50, 100, 200))
        dress_flat(axes)
        axes.legend(frameon=False, fontsize=8, loc="upper right")
    panels[0].set_ylabel("clusters, mean")
    title(
        figure,
        "V = I: sixteen heads (solid) merge what one head (dotted) keeps; with K = Q it takes"
        " longest",
        "Number of clusters of z over the clock τ = Ht. The slides show t = 1 (dashed) and then t ="
        " 7 to 20, that is τ = 112 to 320: double precision cannot order the scores beyond τ = 37.",
    )
    return figure


def _places(data: Data) -> Any:
    places = data["places"]
    sizes = sorted(set(places["n"].values.tolist()))
    figure = new_figure(10.2, 4.4)
    panels = figure.subplots(1, 2, sharey=True)
    wide = 0.8 / len(sizes)
    for axes, values, words in zip(
        panels, ("identity", "own"), ("V = I for every head", "each head its own V"), strict=True
    ):
        here = places["values"].values == values
        for k, n in enumerate(sizes):
            chosen = here & (places["n"].values == n)
            if not chosen.any():
                continue
            middle = wide * (k - (len(sizes) - 1) / 2)
            shift = np.linspace(-0.3 * wide, 0.3 * wide, max(int(chosen.sum()), 2))[
                : int(chosen.sum())
            ]
            place = np.searchsorted(HEADS, places["heads"].values[chosen]) + middle + shift
            half, high = (np.median(places[name].values[chosen]) for name in ("half", "high"))
            there = np.searchsorted(HEADS, np.unique(places["heads"].values[chosen]))
            axes.bar(
                there + middle,
                high - half,
                0.9 * wide,
                half,
                color=PALETTE[k],
                alpha=0.22,
                linewidth=0,
            )
            axes.scatter(
                place,
                places["cosine"].values[chosen],
                s=22,
                color=PALETTE[k],
                marker=MARKERS[k % 4],
                linewidths=0,
                alpha=0.85,
                label=f"clusters, n = {n}",
            )
        dress_flat(axes)
        mark_heads(axes)
        axes.set(title=words, ylim=(-0.15, 1.05))
        axes.axhline(1.0, color=INK, linewidth=0.6, linestyle=(0, (4, 3)), zorder=1)
    panels[0].set_ylabel("cosine to the nearest first token")
    panels[0].legend(frameon=False, fontsize=8, loc="lower left")
    model = places.attrs["model"]
    title(
        figure,
        as_shown("Paragraphs", model)
        + ": with one head a cluster sits near a first token; with sixteen it is a mixture like"
        " others",
        as_shown(
            "Each mark is a limit of an embedded paragraph (own V, and more than 30 tokens under"
            f" several heads: a cluster at τ = {END:g}); dashed: a first token itself. ",
            model,
        )
        + "Bars: the same cosine for random convex combinations of the tokens, from the median to"
        " the 95 % quantile.",
    )
    return figure
