"""The figures of attention_eigenvalues."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.experiments.common.heads import HEADS, as_shown
from attnlab.experiments.common.panels import draw_means, mark_heads, span_of
from attnlab.experiments.datasets import select
from attnlab.experiments.record import Data
from attnlab.render.style import (
    ATTENTION,
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

from .experiment import KINDS, MOMENTS, WORK


def figures(data: Data) -> dict[str, Any]:
    """Moduli over time and what is left of them; gap and rank against the number of heads; single
    heads one by one.
    """
    with house_style():
        return {
            "attention_eigenvalues": over_time(data),
            "attention_gap_and_rank": gap_and_rank(data),
            "attention_survivors": single_heads(data),
        }


PANELS = (
    ("synthetic", "identity"),
    ("synthetic", "own"),
    ("trained", "identity"),
    ("trained", "own"),
)
LEFT_OUT = "undecided"


def _panels(data: Data) -> list[tuple[str, str]]:
    """The families and values that are there."""
    return [one for one in PANELS if one[0] in data["cases"]["family"].values]


def _named(data: Data, family: str, values: str) -> str:
    return as_shown(family, data["cases"].attrs["model"]) + (
        ", V_h = I" if values == "identity" else ", V_h of the head"
    )


def _model_words(data: Data) -> str:
    """Where the heads that are not synthetic are from."""
    model = data["cases"].attrs["model"]
    return as_shown(f"Trained: {model}.", model) if model else ""


def _lines(axes: Any, ends: Any, column: str, share_of: str = "") -> None:
    """Means over draws and their range, a line for each number of tokens; hollow where some late
    matrix is not Boolean yet.
    """
    for look, n in enumerate(np.unique(ends["n"].values)):
        groups = [select(ends, n=n, heads=heads) for heads in HEADS]
        values = [
            rows[column].values / (rows[share_of].values if share_of else 1.0) for rows in groups
        ]
        places, means = (
            np.array(HEADS) * 1.07 ** (look - 1),
            np.array([some.mean() for some in values]),
        )
        draw_means(
            axes,
            places,
            values,
            span_of,
            color=PALETTE[look],
            marker=MARKERS[look],
            linestyle=LINES[look],
            linewidth=1.3,
            markersize=5,
            capsize=2,
            elinewidth=1.0,
            label=f"n = {n}",
        )
        open_ones = np.array(
            [
                (rows["is_decided"].values == 0).any() and rows["moment"].values[0] > 0
                for rows in groups
            ]
        )
        axes.plot(
            places[open_ones],
            means[open_ones],
            color=PALETTE[look],
            marker=MARKERS[look],
            linestyle="none",
            markersize=5,
            markerfacecolor="white",
            zorder=3,
        )


def _draws_words(data: Data) -> str:
    """How many draws a mark has, in words."""
    draws = {
        n: select(data["cases"], n=n)["draw"].values.max() + 1
        for n in np.unique(data["cases"]["n"].values)
    }
    return ", ".join(f"{many} (n = {n})" for n, many in draws.items())


def over_time(data: Data) -> Any:
    """Above: moduli along three runs. Below: how many of them are H in the end, against H."""
    ends, panels = select(data["cases"], moment=MOMENTS[-1]), _panels(data)
    shown = data["shown"]
    heads = f"{as_shown(str(shown.attrs['family']), shown.attrs['model'])} head"
    names = (
        "one head, Q = K = V = I, d = 2",
        f"one {heads}, V = I",
        f"sum of {max(HEADS)} {heads}s, V_h = I",
    )
    figure: Any = new_figure(11.0, 7.0)
    above, below = figure.subfigures(2, 1, height_ratios=[1.05, 1])
    for axes, name, moduli in zip(
        above.subplots(1, 3, sharey=True), names, shown["modulus"].values, strict=True
    ):
        left = int((moduli[-1] > 0.5).sum())  # at the end they are near 1 or near 0
        axes.plot(shown["moment"].values, moduli, color=PALETTE[0], linewidth=0.9, alpha=0.55)
        axes.axhline(1.0, color=INK, linewidth=1.2, linestyle=(0, (4, 2)))
        axes.set_title(f"{name}\n{left} of {moduli.shape[1]} survive{'s' if left == 1 else ''}")
        axes.set(xlabel="natural time Ht", ylim=(-0.03, 1.08))
        dress_flat(axes)
    above.axes[0].set_ylabel("|λ| / H")
    row = below.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    most = max(int(ends["survivors"].values.max()), 2)
    for axes, (family, values) in zip(row, panels, strict=True):
        _lines(axes, select(ends, family=family, values=values), "survivors")
        dress_flat(axes)
        mark_heads(axes, is_log=True, label="number of heads H")
        axes.set(title=_named(data, family, values), ylim=(0, most + 0.6))
        axes.set_yticks(range(0, most + 1, 1 if most < 8 else 2))
    row[0].set_ylabel("eigenvalues of modulus H")
    row[-1].legend(frameon=False, loc="upper right", fontsize=8.5)
    title(
        figure,
        "How many eigenvalues of attention survive: one for each leader of a head, and few that all"
        " heads agree on",
        "Above: moduli of all eigenvalues of ΣP_h over H along the flow; dashed, the Perron value."
        f" Below: how many have modulus H at natural time {MOMENTS[-1]:g}: mean and range over"
        f" draws, {_draws_words(data)}, set beside each other; hollow: not all Boolean yet. "
        + (_model_words(data) or "No trained model is here."),
    )
    return figure


def gap_and_rank(data: Data) -> Any:
    """Second eigenvalue and effective rank of the sum at the first, a middle and the last moment,
    against the number of heads.
    """
    panels = _panels(data)
    names = {"second": "|λ₂| / H ", "effective": "effective rank / n\n"}
    rows = [
        (column, moment, f"{words}at {when}")
        for column, words in names.items()
        for moment, when in ((MOMENTS[0], "t = 0"), (MOMENTS[-1], f"{MOMENTS[-1]:g}"))
    ]
    figure = new_figure(11.0, 8.6)
    grid = figure.subplots(len(rows), len(panels), sharex=True, sharey=True, squeeze=False)
    for line, (column, moment, label) in zip(grid, rows, strict=True):
        for axes, (family, values) in zip(line, panels, strict=True):
            there = select(data["cases"], family=family, values=values, moment=moment)
            _lines(axes, there, column, "n" if column == "effective" else "")
            if column == "second":
                axes.plot(HEADS, 1 / np.sqrt(HEADS), color=NOTE, linewidth=1.0, zorder=1)
            dress_flat(axes)
            axes.set_ylim(-0.04, 1.06)
        line[0].set_ylabel(label)
    for axes, (family, values) in zip(grid[0], panels, strict=True):
        axes.set_title(_named(data, family, values))
    for axes in grid[-1]:
        mark_heads(axes, is_log=True, label="number of heads H")
    grid[0, -1].legend(frameon=False, loc="upper right", fontsize=8.5)
    title(
        figure,
        "V_h = I: no gap with one head, nearly a full one with sixteen. Own V_h: a gap, but no"
        " single eigenvalue",
        "Second largest modulus over H (1: no gap) and effective rank exp(entropy of the singular"
        f" values) over n, of the sum over heads, at the start and at natural time {MOMENTS[-1]:g}:"
        f" mean and range over {_draws_words(data)} draws; hollow where not all late ones are"
        " Boolean yet. Grey: 1 / √H, unrelated random maps. At t = 0 V does not matter. "
        + _model_words(data),
    )
    return figure


def single_heads(data: Data) -> Any:
    """How many single heads of each kind keep 1, 2, 3, ... eigenvalues."""
    every = data["draws"]
    kinds = [kind for kind in KINDS if kind in every["kind"].values]
    most = int(every["survivors"].values[every["is_known"].values == 1].max())
    counts = np.zeros((len(kinds), most + 1), dtype=int)
    for row, kind in enumerate(kinds):
        of_kind = select(every, kind=kind)
        kept = of_kind["survivors"].values[of_kind["is_known"].values == 1]
        counts[row] = [
            *np.bincount(kept, minlength=most + 1)[1:],
            of_kind.sizes["draw"] - len(kept),
        ]
    figure = new_figure(9.6, 3.6)
    axes = figure.subplots()
    shares = counts / counts.sum(axis=1, keepdims=True)
    axes.imshow(0.75 * shares, cmap=ATTENTION, vmin=0, vmax=1, aspect="auto")
    for (row, column), count in np.ndenumerate(counts):
        if count:
            axes.text(
                column,
                row,
                str(count),
                ha="center",
                va="center",
                color="white" if shares[row, column] > 0.55 else INK,
            )
    axes.axvline(most - 0.5, color="white", linewidth=3)
    axes.set_xticks(range(most + 1), [*map(str, range(1, most + 1)), LEFT_OUT])
    said = [as_shown(KINDS[kind], every.attrs["model"]) for kind in kinds]
    axes.set_yticks(range(len(kinds)), [words.replace(", ", ",\n", 1) for words in said])
    axes.set_xlabel("eigenvalues that survive = leaders = clusters at infinity")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    title(
        figure,
        "One head: how many eigenvalues of P survive depends on its matrices",
        f"Number of single heads, {every.sizes['draw']} in all, each with 20 tokens; darker, a"
        " larger share of the row. The numbers from the eigenvalues of P(12), from the certified"
        " leaders at infinity and from singular values agree in each. Undecided: not certified"
        f" with {WORK:,.0f} units of work, or later than t = 12.",
    )
    return figure
