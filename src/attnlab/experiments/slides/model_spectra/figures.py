"""The figure of model_spectra."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.analysis.intervals import wilson_interval
from attnlab.experiments.common.leading_eigenvalues import mark_eigenvalue
from attnlab.experiments.common.panels import set_ticks
from attnlab.experiments.datasets import select
from attnlab.experiments.record import Data
from attnlab.render.spectra_figure import LOOKS
from attnlab.render.style import HULL, INK, PALETTE, dress_flat, house_style, new_figure, title

from .claims import answer


def figures(data: Data) -> dict[str, Any]:
    """The sizes of leading eigenvalues by model and layer, and shares against chance."""
    with house_style():
        return {"model_spectra": sizes_and_shares(data)}


SHARES = {
    "good": "good triples",
    "positive": "positive\nleading eigenvalues",
    "complex": "complex\nleading pairs",
    "score": "⟨Qφ₁, Kφ₁⟩ > 0",
}


def sizes_and_shares(data: Data) -> Any:
    """Above: the size of each leading eigenvalue, model by model and layer by layer. Below: four
    shares, each model and all.
    """
    models = data["models"]
    figure: Any = new_figure(11.0, 7.4)
    above, below = figure.subfigures(2, 1, height_ratios=[1.15, 1])
    _draw_sizes(above, data)
    _draw_shares(below, data)
    missing = data["heads"].attrs["without"]
    title(
        figure,
        f"{data['heads'].sizes['head']} heads of {models.sizes['model']} models: leading"
        " eigenvalues are large; good triples are not told apart from chance",
        "Above: |λ₁| over |B| |C| / √(dr), where random factors end (dashed; grey: 95 % of random"
        " heads); bars: medians of a layer; tied layers once. Below: share of heads (mark), its 95"
        f" % interval (bar), and chance (upright line, {models.attrs['draws']} random heads for"
        " each model); heads of one model are not independent, so intervals are too short."
        + (f" Not here: {missing}." if missing else ""),
    )
    return figure


def _draw_sizes(figure: Any, data: Data) -> None:
    heads, models = data["heads"], data["models"]
    names = models["name"].values.tolist()
    layers = [
        1 if tied else int(many)
        for tied, many in zip(models["is_tied"].values, models["layers"].values, strict=True)
    ]
    row = figure.subplots(
        1, len(names), sharey=True, width_ratios=[1.2 + many for many in layers], squeeze=False
    )[0]
    for axes, name, many in zip(row, names, layers, strict=True):
        fact = models.isel(model=names.index(name))
        axes.axhspan(float(fact["low"]), float(fact["high"]), color=HULL, alpha=0.3, linewidth=0)
        axes.axhline(1.0, color=HULL, linewidth=1.0, linestyle=(0, (4, 3)))
        for layer in range(many):
            of_layer = select(heads, name=name, layer=layer)
            ratios = of_layer["ratio"].values
            places = (
                layer + np.linspace(-0.33, 0.33, len(ratios))
                if len(ratios) > 1
                else np.array([layer])
            )
            for place, ratio, word in zip(places, ratios, of_layer["verdict"].values, strict=True):
                mark_eigenvalue(axes, [place], [ratio], str(word))
            axes.hlines(
                np.median(ratios), layer - 0.4, layer + 0.4, color=INK, linewidth=1.6, zorder=4
            )
        axes.set_yscale("log")
        dress_flat(axes)
        axes.set_xlim(-0.6, many - 0.4)
        axes.set_xticks(
            range(many), ["all"] if many == 1 else [str(layer) for layer in range(many)]
        )
        axes.set(title=name, xlabel="layer" if many > 1 else "layers")
    row[0].set_ylabel("|λ₁|, random factors = 1")
    set_ticks(row[0], y=(1, 2, 4, 8))
    row[0].set_ylim(0.8, 1.15 * float(heads["ratio"].values.max()))
    marks = []
    for word in ("good triple", "positive", "negative", "complex"):
        colour, marker, is_filled, says = LOOKS[word]
        marks += row[0].plot(
            [],
            [],
            linestyle="none",
            marker=marker,
            markersize=6.5,
            markeredgewidth=1.6,
            markeredgecolor=colour,
            markerfacecolor=colour if is_filled else "white",
            label=says,
        )
    figure.legend(
        handles=marks,
        loc="outside upper center",
        ncols=4,
        frameon=False,
        fontsize=8.5,
        title="leading eigenvalue of V",
        title_fontsize=8.5,
    )


def _draw_shares(figure: Any, data: Data) -> None:
    names = ["", *data["models"]["name"].values.tolist()]
    row = figure.subplots(1, len(SHARES), sharey=True)
    for axes, (question, says) in zip(row, SHARES.items(), strict=True):
        for place, name in enumerate(names):
            yes, total, chance, _ = answer(data, question, name)
            colour = INK if not name else PALETTE[0]
            axes.hlines(place, *wilson_interval(yes, total), color=colour, linewidth=3.2, alpha=0.4)
            axes.plot(
                [yes / total],
                [place],
                marker="o" if name else "s",
                markersize=6.5,
                color=colour,
                linestyle="none",
            )
            axes.vlines(
                chance, place - 0.32, place + 0.32, color=PALETTE[1], linewidth=2.0, zorder=3
            )
        dress_flat(axes)
        axes.set(xlim=(0, 1), ylim=(len(names) - 0.5, -0.5), title=says, xlabel="share of heads")
        axes.set_xticks([0, 0.5, 1.0], ["0", "50 %", "100 %"])
    counts = [answer(data, "score", name)[1] for name in names]
    row[0].set_yticks(
        range(len(names)),
        [f"{name or 'all'} ({count})" for name, count in zip(names, counts, strict=True)],
    )
