"""Figures of trained heads: spectra in the complex plane, a map of verdicts, and shares of models
beside what chance gives.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from attnlab.analysis.intervals import wilson_interval
from attnlab.models.checkpoints.head_names import name_head
from attnlab.models.studies.judgement import verdict
from attnlab.models.studies.null import null_of
from attnlab.models.studies.shares import CLASSES, shares_of
from attnlab.models.studies.spectra_table import HasHeads, MeasuredHead, measure_heads
from attnlab.render.literal import LONGEST_NAME, escape_words
from attnlab.render.paper import SCREEN, Paper
from attnlab.render.style import (
    HULL,
    INK,
    NOTE,
    PALETTE,
    RULE,
    SMALLEST,
    dress_flat,
    house_style,
    new_figure,
    paper_figure,
    set_layout,
    title,
)

if TYPE_CHECKING:
    import pandas

LOOKS = {
    "good triple": (PALETTE[2], "o", True, "good triple"),
    "positive": (PALETTE[0], "^", False, "positive, no good triple"),
    "negative": (PALETTE[1], "v", True, "negative"),
    "complex": (PALETTE[3], "D", False, "complex pair"),
    "zero": (HULL, "_", False, "zero"),
}
"""Colour, marker, whether it is filled, and words of a verdict: the marker alone is enough."""

VALUE_MAP = "$V = W_O W_V$"
ON_A_PAGE, COLUMNS = 16, 4
CELL = 0.36
"""Inches of a head in the map, if there is room."""

NULL_DRAWS = 200


def draw_spectra(
    model: HasHeads,
    layer: int | None = None,
    head: int | None = None,
    *,
    page: int = 0,
    fold_norm: bool = True,
    offset: int = 0,
    rng: int = 0,
) -> Figure:
    """The eigenvalues of V of each head in the complex plane, sixteen heads a page; of tied layers
    the heads once.
    """
    heads = list(measure_heads(model, layer, head, fold_norm=fold_norm, offset=offset))
    pages = -(-len(heads) // ON_A_PAGE)
    if not 0 <= page < pages:
        filled = f"{len(heads)} heads fill {pages} page{'s' if pages > 1 else ''}, counted from 0"
        raise ValueError(f"{filled}; there is no page {page}.")
    shown = heads[page * ON_A_PAGE : (page + 1) * ON_A_PAGE]
    columns = min(COLUMNS, len(shown))
    rows = -(-len(shown) // columns)
    with house_style():
        figure = new_figure(max(2.3 * columns, 5.6) + 0.2, 2.4 * rows + 1.5)
        set_layout(figure, wspace=0.02, h_pad=0.06)
        grid = figure.add_gridspec(rows + 1, columns, height_ratios=[0.1, *[1.0] * rows])
        panels = np.array(
            [
                [figure.add_subplot(grid[row + 1, column]) for column in range(columns)]
                for row in range(rows)
            ]
        )
        for axes, one in zip(panels.ravel(), shown, strict=False):
            _draw_plane(axes, one, _usual_size(one, rng))
        for axes in panels.ravel()[len(shown) :]:
            axes.axis("off")
        for axes in panels[:, 0]:
            axes.set_ylabel("Im", rotation=0, labelpad=4, fontsize=8.5)
        for column in range(columns):
            lowest = max(row for row in range(rows) if row * columns + column < len(shown))
            panels[lowest, column].set_xlabel("Re", fontsize=8.5, labelpad=1)
        _legend(figure.add_subplot(grid[0, :]), [verdict(one.numbers) for one in shown])
        title(
            figure,
            _headline(model, heads, shown, pages, page),
            f"Dots: the non-zero eigenvalues of {VALUE_MAP}, each head on its own scale. Large"
            " mark: the leading one, or pair. Solid circle: its modulus; dashed: the median of it"
            f" over {NULL_DRAWS} Gaussian heads of the same shapes and norms.",
        )
    return figure


def _headline(
    model: HasHeads,
    heads: Sequence[MeasuredHead],
    shown: Sequence[MeasuredHead],
    pages: int,
    page: int,
) -> str:
    where = f"{len(shown)} head{'s' if len(shown) > 1 else ''}"
    layers = sorted({one.layer for one in shown})
    if model.config.is_tied:
        where += f", the same in all {model.config.layers} layers"
    elif len(layers) == 1:
        where += f" of layer {layers[0]}"
    else:
        where += f" of layers {layers[0]} to {layers[-1]}"
    return f"{escape_words(model.name, LONGEST_NAME)}: {where}" + (
        f" (page {page}; pages 0 to {pages - 1})" if pages > 1 else ""
    )


def _usual_size(one: MeasuredHead, rng: int) -> float:
    """The median |lambda_1| of the null of this head."""
    B, _ = one.weights.V
    null = null_of(one.weights.d, B.shape[2], one.weights.Q.shape[1], draws=NULL_DRAWS, rng=rng)
    return float(np.median(null.values["lambda1"])) * one.numbers.value_size


def _draw_plane(axes: Any, one: MeasuredHead, usual: float) -> None:
    numbers = one.numbers
    word = verdict(numbers)
    colour, marker, _, _ = LOOKS[word]
    first, values = numbers.lambda1, numbers.eigenvalues
    reach = 1.16 * max(abs(first), usual) or 1.0
    turn = np.exp(1j * np.linspace(0.0, 2 * np.pi, 241))
    axes.axhline(0.0, color=HULL, linewidth=0.7, zorder=1)
    axes.axvline(0.0, color=RULE, linewidth=0.7, zorder=1)
    axes.plot(
        abs(first) * turn.real,
        abs(first) * turn.imag,
        color=colour,
        linewidth=0.8,
        alpha=0.7,
        zorder=1.5,
    )
    axes.plot(
        usual * turn.real,
        usual * turn.imag,
        color=NOTE,
        linewidth=0.8,
        linestyle=(0, (4, 3)),
        zorder=1.5,
    )
    axes.scatter(
        values.real,
        values.imag,
        s=7,
        color=INK,
        alpha=0.55,
        linewidths=0,
        zorder=2,
        label="eigenvalues",
    )
    pair = np.array([first] if word != "complex" else [first, first.conjugate()])
    axes.scatter(
        pair.real,
        pair.imag,
        marker=marker,
        s=42,
        linewidths=1.5,
        zorder=3,
        label="leading",
        **_paint(word),
    )
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10], symmetric=True))
    axes.tick_params(labelsize=7, pad=1.5, length=2)
    axes.set_title(
        f"{name_head(one.layer, one.head)}:  {_number(first, word)}", fontsize=8.5, pad=3
    )


def _number(value: complex, word: str) -> str:
    """The leading eigenvalue, to three digits, with a true minus sign."""
    if word == "complex":
        return f"{value.real:#.3g} ± {abs(value.imag):#.3g}i".replace("-", "−")
    return f"{value.real:+#.3g}".replace("-", "−")


def draw_verdict_map(frame: pandas.DataFrame, paper: Paper = SCREEN) -> Figure:
    """Layers x heads: the kind of leading eigenvalue as a mark; beside it how many there are and
    how many chance gives.

    frame : as `al.models.spectra` returns it, with its `.attrs`.
    """
    facts = frame.attrs
    layers, heads = sorted(frame["layer"].unique()), sorted(frame["head"].unique())
    with house_style(paper):
        width = max(CELL * len(heads) + 1.6, 6.4)
        room = (width if paper.width is None else paper.width) - 0.9
        cell = min(CELL, room / len(heads))
        height, key = max(cell * len(layers), 0.6) + 0.45, 0.75 if paper.is_narrow else 0.45
        figure = paper_figure(paper, width, height + key)
        legend, axes = figure.subplots(2, 1, height_ratios=[key, height])
        size = 62 * min(1.0, (cell / CELL) ** 2)
        row_of, column_of = (
            {name: place for place, name in enumerate(names)} for names in (layers, heads)
        )
        for word, (_, marker, _, _) in LOOKS.items():
            of_word = frame[frame["verdict"] == word]
            if len(of_word):
                axes.scatter(
                    of_word["head"].map(column_of),
                    of_word["layer"].map(row_of),
                    marker=marker,
                    s=size,
                    linewidths=1.5 if cell > 0.25 else 1.0,
                    zorder=3,
                    label=word,
                    **_paint(word),
                )
        axes.set(
            xlim=(-0.5, len(heads) - 0.5),
            ylim=(len(layers) - 0.5, -0.5),
            aspect="equal",
            xlabel="head",
        )
        for set_ticks, names in ((axes.set_xticks, heads), (axes.set_yticks, layers)):
            every = max(1, round(0.22 / cell))  # so that numbers do not touch
            set_ticks(range(0, len(names), every), [str(name) for name in names[::every]])
        if facts.get("is_tied"):
            axes.set_yticks([0], [f"all {facts['layers']} layers"])
        else:
            axes.set_ylabel("layer")
        axes.tick_params(length=0)
        for place in range(len(heads) + 1):
            axes.axvline(place - 0.5, color=RULE, linewidth=0.5, zorder=1)
        for place in range(len(layers) + 1):
            axes.axhline(place - 0.5, color=RULE, linewidth=0.5, zorder=1)
        axes.spines[:].set(color=RULE, linewidth=0.5)
        _legend(legend, list(frame["verdict"]), facts.get("null_shares"))
        count = len(frame)
        name = escape_words(facts.get("model", "a model"), LONGEST_NAME)
        title(
            figure,
            f"{name}: the leading eigenvalue of {VALUE_MAP} in {count}"
            f" head{'s' if count != 1 else ''}",
            f"In brackets: what {facts.get('null_draws', 0)} Gaussian heads of the same shapes"
            " give. Good triple: the leading eigenvalue is real, positive, alone in modulus, and"
            " its eigenvector scores itself positively.",
        )
    return figure


def _paint(word: str) -> dict[str, Any]:
    """Face and edge of a mark; a dash has only a face."""
    colour, marker, is_filled, _ = LOOKS[word]
    return (
        {"color": colour}
        if marker == "_"
        else {"facecolor": colour if is_filled else "white", "edgecolor": colour}
    )


def _legend(
    axes: Any, verdicts: Sequence[str], null_shares: Mapping[str, float] | None = None
) -> None:
    """Axes of nothing but every mark that occurs, with its words and how often it does."""
    axes.axis("off")
    marks = []
    for word, (colour, marker, is_filled, says) in LOOKS.items():
        count = verdicts.count(word)
        chance = (
            f"{count / len(verdicts):.0%} [{null_shares[word]:.0%}]"
            if null_shares is not None
            else str(count)
        )
        if count or (null_shares is not None and word != "zero"):
            marks.append(
                Line2D(
                    [],
                    [],
                    linestyle="",
                    marker=marker,
                    markersize=7,
                    markeredgecolor=colour,
                    markeredgewidth=1.5,
                    markerfacecolor=colour if is_filled else "white",
                    label=f"{says}: {chance}",
                )
            )
    paper = getattr(axes.figure, "paper", SCREEN)
    columns = 2 if null_shares is not None or paper.is_narrow else len(marks)
    if paper.is_narrow and null_shares is not None:
        columns = 1
    axes.legend(
        handles=marks,
        loc="center",
        ncols=columns,
        frameon=False,
        fontsize=SMALLEST if paper.is_narrow else 8.5,
        handletextpad=0.3,
        columnspacing=1.0 if paper.is_narrow else 1.6,
        borderpad=0.0,
    )


def _draws_of(frames: Sequence[pandas.DataFrame]) -> str:
    """How many random heads chance is from: one number, or a range where tables differ."""
    draws = sorted({int(frame.attrs["null_draws"]) for frame in frames})
    return str(draws[0]) if len(draws) == 1 else f"{draws[0]} to {draws[-1]}"


def draw_shares(frames: Sequence[pandas.DataFrame]) -> Figure:
    """Several models side by side: the share of heads of each kind, its 95 % interval, and the
    share that chance gives.
    """
    with house_style():
        figure = new_figure(8.6, 0.36 * len(frames) + 2.0)
        panels = figure.subplots(1, len(CLASSES), sharey=True, sharex=True)
        for axes, (name, says) in zip(panels, CLASSES.items(), strict=True):
            colour = LOOKS[{"positive leader": "positive"}.get(name, name)][0]
            for row, frame in enumerate(frames):
                count, total = shares_of(frame)[name], len(frame)
                low, high = wilson_interval(count, total)
                chance = frame.attrs["null_shares"][name]
                axes.hlines(row, low, high, color=colour, linewidth=3.0, alpha=0.4)
                axes.scatter(
                    [count / total], [row], s=30, color=colour, zorder=3, label=frame.attrs["model"]
                )
                axes.vlines(chance, row - 0.3, row + 0.3, color=INK, linewidth=1.4, zorder=2)
                axes.axhline(row + 0.5, color=RULE, linewidth=0.5)
            axes.set_title(textwrap.fill(says, 18), fontsize=9.5)
            dress_flat(axes)
            axes.spines["left"].set_visible(False)
            axes.tick_params(axis="y", length=0)
            axes.set(xlim=(0.0, 1.0), ylim=(len(frames) - 0.5, -0.5))
            axes.set_xticks([0.0, 0.5, 1.0], ["0", "50 %", "100 %"])
        panels[0].set_yticks(
            range(len(frames)),
            [escape_words(frame.attrs["model"], LONGEST_NAME) for frame in frames],
        )
        title(
            figure,
            f"The leading eigenvalue of {VALUE_MAP}, as a share of heads",
            "Dot and bar: the share and its 95 % interval (Wilson; heads taken as independent)."
            f" Upright line: the share of {_draws_of(frames)} Gaussian heads of the same shapes.",
        )
    return figure
