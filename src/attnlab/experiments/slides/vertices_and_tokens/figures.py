"""The figures of vertices_and_tokens: phase tables, numbers against n, and several heads."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.experiments.common.heads import as_shown
from attnlab.experiments.common.panels import mark_heads, set_ticks
from attnlab.experiments.datasets import select
from attnlab.experiments.record import Data
from attnlab.render.style import (
    ATTENTION,
    HULL,
    INK,
    PALETTE,
    dress_flat,
    house_style,
    new_figure,
    title,
)

NAMES = {"cube": "square", "ball": "disc", "normal": "normal", "sphere": "circle"}

SCALES_SHOWN = ((20.0, 1, "^"), (5.0, 4, "s"), (0.5, 3, "D"))
"""(scale, number of the colour, marker) in the figure of numbers against n."""


def figures(data: Data) -> dict[str, Any]:
    """The phase tables, the counts against n, and clusters against the number of heads."""
    with house_style():
        return {
            "vertices_and_tokens": _tables(data),
            "vertices_and_tokens_against_n": _against_n(data),
            "vertices_and_tokens_heads": _heads(data),
        }


def means(rows: Any, law: str, scale: float, d: int = 2) -> dict[int, tuple[float, int]]:
    """{n: (mean number of limits, starts)} of the decided starts."""
    rows = select(rows, law=law, scale=scale, d=d)
    rows = rows.isel(row=np.isfinite(rows["limits"].values))
    every = {int(n): select(rows, n=n)["limits"].values for n in np.unique(rows["n"].values)}
    return {n: (float(counts.mean()), len(counts)) for n, counts in every.items()}


def _tables(data: Data) -> Any:
    rows, asked = data["limits"], data["certified"]
    exact = {
        (str(law), int(n), float(scale))
        for law, n, scale, grade in zip(
            *(asked[name].values for name in ("law", "n", "scale", "grade")), strict=True
        )
        if grade == "exact"
    }
    plane = rows["d"].values == 2
    scales, counts = np.unique(rows["scale"].values[plane]), np.unique(rows["n"].values[plane])
    figure = new_figure(10.2, 6.6)
    panels = figure.subplots(2, 2, sharex=True, sharey=True)
    for axes, (law, name) in zip(panels.flat, NAMES.items(), strict=True):
        cells = np.full((len(scales), len(counts)), np.nan)
        for i, scale in enumerate(scales):
            for n, (mean, _) in means(rows, law, float(scale)).items():
                cells[i, np.searchsorted(counts, n)] = mean
        axes.imshow(
            np.log(cells),
            cmap=ATTENTION,
            vmin=0.0,
            vmax=np.log(300.0),
            aspect="auto",
            origin="lower",
        )
        for i, j in zip(*np.nonzero(np.isfinite(cells)), strict=True):
            words = "1" if cells[i, j] == 1 else f"{cells[i, j]:.1f}"
            axes.text(
                j,
                i,
                words,
                ha="center",
                va="center",
                fontsize=9,
                color=INK if cells[i, j] < 14 else "white",
            )
            if (law, int(counts[j]), float(scales[i])) in exact:
                axes.plot(
                    j + 0.4,
                    i + 0.3,
                    marker="o",
                    markersize=3.2,
                    color=INK if cells[i, j] < 14 else "white",
                )
        axes.set_title(
            {"normal": "normal, deviation scale / √3", "cube": "square [−scale, scale]²"}.get(
                law, f"{name} of radius scale"
            )
        )
        axes.set_xticks(range(len(counts)), [str(n) for n in counts])
        axes.set_yticks(range(len(scales)), [f"{scale:g}" for scale in scales])
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
    for axes in panels[1]:
        axes.set_xlabel("number of tokens n")
    for axes in panels[:, 0]:
        axes.set_ylabel("scale of the start")
    title(
        figure,
        "One cluster or many? The scale of the start decides, and the law says how many",
        "Mean number of limits as t → ∞; one head, V = I, M = I, in the plane. 1: all starts end"
        " in one cluster. Leaders of every start counted here are final by the gaps of scores;"
        f" dot: al.limit certifies some of them. Starts a cell: {_starts(rows)}. White without a"
        " number: not computed, or open.",
    )
    return figure


def _starts(rows: Any) -> str:
    """How many starts a cell has, for each n, in words."""
    found: dict[int, list[int]] = {}
    for law in NAMES:
        for scale in np.unique(rows["scale"].values):
            for n, (_, starts) in means(rows, law, float(scale)).items():
                found.setdefault(n, []).append(int(starts))
    return ", ".join(
        f"{min(many)}{f' to {max(many)}' if max(many) > min(many) else ''} for n = {n}"
        for n, many in sorted(found.items())
    )


def _against_n(data: Data) -> Any:
    rows, hulls = data["limits"], data["hulls"]
    figure = new_figure(12.4, 4.6)
    panels = figure.subplots(1, 4, sharey=True)
    for axes, (law, name) in zip(panels, NAMES.items(), strict=True):
        here = select(hulls, law=law, d=2)
        n = here["n"].values
        for column, colour, dash, words in (
            ("vertices", HULL, (0, (5, 2)), "vertices of the first hull"),
            ("leaders", INK, "solid", "tokens that lead themselves at t = 0"),
        ):
            axes.loglog(
                n, here[f"expected_{column}"].values, color=colour, linestyle=dash, linewidth=1.3
            )
            axes.loglog(
                n,
                here[column].values,
                color=colour,
                linestyle="none",
                marker="o",
                markersize=4,
                fillstyle="none" if column == "vertices" else "full",
                label=words,
            )
        for scale, number, marker in SCALES_SHOWN:
            found = means(rows, law, scale)
            places, numbers = np.array(list(found)), np.array(list(found.values()))
            if len(places):
                axes.loglog(
                    places,
                    numbers[:, 0],
                    color=PALETTE[number],
                    marker=marker,
                    markersize=4.5,
                    linewidth=1.0,
                    linestyle=(0, (1, 1.2)),
                    label=f"limits, scale {scale:g}",
                )
                lone = numbers[:, 1] == 1
                axes.loglog(
                    places[lone],
                    numbers[lone, 0],
                    color=PALETTE[number],
                    marker=marker,
                    markersize=4.5,
                    markerfacecolor="white",
                    linestyle="none",
                    zorder=3,
                )
        if law == "sphere":
            ends = np.array([30.0, 1000.0])
            axes.loglog(ends, 0.7 * np.sqrt(20 * ends), color=PALETTE[1], linewidth=0.8)
            axes.text(500, 40, "slope 1/2", fontsize=8.5, color=PALETTE[1])
        axes.set(title=name, xlabel="n", xlim=(7, 4500), ylim=(0.8, 400))
        dress_flat(axes)
    panels[0].set_ylabel("number")
    panels[0].set_yticks(
        [1, 2, 5, 10, 20, 50, 100, 200], ["1", "2", "5", "10", "20", "50", "100", "200"]
    )
    panels[0].legend(frameon=False, fontsize=7.5, loc="upper left", borderaxespad=0.0)
    title(
        figure,
        "Of large starts the tokens that lead themselves mostly stay in square (about 4) and disc"
        " (about n^(1/3)), on the circle an ever smaller share",
        "Lines through circles: exact integrals of random-polytope theory (no fit); circles: means"
        f" of {hulls.attrs['draws']} draws. Coloured: mean number of limits; white inside: one"
        " start only. On the circle all n tokens are vertices and lead themselves, beyond the"
        " upper edge.",
    )
    return figure


def _heads(data: Data) -> Any:
    rows, many = data["heads"], int(data["heads"]["draw"].values.max()) + 1
    model = rows.attrs["trained"]
    draws = (
        "One draw a case."
        if many == 1
        else f"Marks: {many} draws (own $V_h$, trained: one); lines: medians."
    )
    trained = (
        f"{model}, start: its embeddings of {rows.attrs['start']}"
        if model
        else "left out, the model is not here"
    )
    figure = new_figure(7.6, 4.0)
    axes = figure.subplots()
    for number, (family, values) in enumerate(
        (f, v) for f in ("synthetic", "trained") for v in ("identity", "own")
    ):
        here = select(rows, family=family, values=values)
        if not here.sizes["row"]:
            continue
        shift = 2.0 ** (0.06 * (number - 1.5))  # equal counts must not hide each other
        words = f"{as_shown(family, model)}, " + (
            "$V_h = I$" if values == "identity" else "own $V_h$"
        )
        places, counts = here["heads"].values * shift, here["clusters"].values
        axes.plot(
            places,
            counts,
            color=PALETTE[number],
            marker="os^D"[number],
            markersize=5,
            linestyle="none",
            label=words,
        )
        medians = [(place, np.median(counts[places == place])) for place in np.unique(places)]
        axes.plot(
            *zip(*medians, strict=True),
            color=PALETTE[number],
            linewidth=1.0,
            linestyle="solid" if values == "identity" else (0, (5, 2)),
        )
        open_ones = counts != here["again"].values
        axes.plot(
            places[open_ones],
            counts[open_ones],
            color="white",
            marker=".",
            markersize=4,
            linestyle="none",
        )
    axes.set_yscale("log")
    mark_heads(axes, is_log=True, label="number of heads H")
    set_ticks(axes, y=(1, 2, 3, 5, 10, 20, 30))
    axes.set(ylabel=f"clusters, n = {rows.attrs['n']}", ylim=(0.8, 40))
    axes.legend(frameon=False, fontsize=8.5, loc="center left", bbox_to_anchor=(1.0, 0.5))
    dress_flat(axes)
    title(
        figure,
        f"{rows.attrs['n']} tokens with several heads, where double precision ends",
        "Clusters: chains of steps below 1 % of the largest token, at λ₁ t ≈ 30 (H t for V_h = I)."
        " Synthetic: Gaussian heads, d = 24, start in [−5, 5]^d."
        f" {as_shown(f'Trained: {trained}. {draws}', model)} White centre: a coarser run has"
        " another number. Marks are moved apart sideways.",
    )
    return figure
