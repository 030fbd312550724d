"""The pictures of the experiment rates: which law holds where, and the laws in single runs."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.analysis.intervals import bootstrap_interval
from attnlab.experiments.common.heads import as_shown
from attnlab.experiments.datasets import select
from attnlab.experiments.record import Data
from attnlab.render.style import INK, PALETTE, dress_flat, house_style, new_figure, title


def figures(data: Data) -> dict[str, Any]:
    """The three laws in single runs, and which law holds where."""
    with house_style():
        return {"rates": three_laws(data), "rates_which_law": law_map(data)}


ROWS = (("identity", "V$_h$ = I"), ("own", "own V$_h$"), ("negative", "V$_h$ = −I"))
FAMILIES = (
    ("plain", "Q = K = I"),
    ("symmetric", "symmetric, positive"),
    ("synthetic", "Gaussian"),
    ("trained", "trained"),
)
TITLES = {
    "tokens": "Tokens: radius of clusters over the largest token; V = −I: norm",
    "attention": "Attention: 1 − max P of the slowest row; where uniform: max |nP − 1|",
}


def law_map(data: Data) -> Any:
    """A square for each case: its colour the law of most runs, in it the exponent with its
    interval.
    """
    fits = data["fits"]
    colours = {
        "exponential": PALETTE[0],
        "double exponential": PALETTE[3],
        "power law": PALETTE[4],
        "no law": "#8C8C8C",
        "runs away": PALETTE[1],
        "not settled": "#CFCFCF",
    }
    families = [one for one in FAMILIES if (fits["family"].values == one[0]).any()]
    counts = np.unique(fits["heads"].values)
    figure = new_figure(13.0, 6.6)
    upper, lower = figure.subplots(2, 1)
    for axes, quantity in ((upper, "tokens"), (lower, "attention")):
        for row, (values, _) in enumerate(ROWS):
            for column, (family, _) in enumerate(families):
                for place, count in enumerate(counts):
                    some = select(
                        fits, quantity=quantity, values=values, family=family, heads=count
                    )
                    if some.sizes["row"]:
                        name, text = _square(some, quantity)
                        x = column * (len(counts) + 0.6) + place
                        axes.broken_barh([(x, 0.96)], (row, 0.92), facecolors=colours[name])
                        axes.text(
                            x + 0.48,
                            row + 0.46,
                            text,
                            ha="center",
                            va="center",
                            fontsize=7.5,
                            color="white",
                        )
        width = len(families) * (len(counts) + 0.6)
        axes.set(xlim=(-0.1, width), ylim=(3.0, -0.05), title=TITLES[quantity])
        axes.set_yticks(np.arange(3) + 0.46, [words for _, words in ROWS])
        ticks = [
            column * (len(counts) + 0.6) + place + 0.48
            for column in range(len(families))
            for place in range(len(counts))
        ]
        axes.set_xticks(ticks, [str(count) for _ in families for count in counts])
        for column, (_, words) in enumerate(families):
            middle = column * (len(counts) + 0.6) + len(counts) / 2
            axes.text(
                middle,
                3.62,
                f"heads, {as_shown(words, fits.attrs['model'])}",
                ha="center",
                va="center",
                fontsize=9,
            )
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0)
    marks = [
        upper.scatter([], [], marker="s", s=70, color=colour, label=name)
        for name, colour in colours.items()
    ]
    upper.legend(
        handles=marks,
        loc="center",
        bbox_to_anchor=(len(counts) + 0.3, 1.46),
        bbox_transform=upper.transData,
        ncols=3,
        frameon=False,
        fontsize=9,
    )  # where there is no case: Q = K = I has no own V
    title(
        figure,
        "With V = I the same rates for all heads; several own V often do not settle; V = −I needs"
        " positive scores",
        "Colour: the law that most starts obey, judged by prediction outside the fitted window;"
        " dark grey: no single law in more than half; light grey: half of the runs or more do not"
        " settle. Numbers: mean exponent in units of H t (own V: of the largest real part of an"
        " eigenvalue of Σ V), below it half the width of its 95 % interval over starts. Power law:"
        " the power of t. Runs away: it grows, exponentially.",
    )
    return figure


def _square(rows: Any, quantity: str) -> tuple[str, str]:
    """(the law of most runs, its exponent in words)."""
    settled = rows.isel(row=rows["is_settled"].values == 1)
    laws, numbers = np.unique(settled["law"].values, return_counts=True)
    if settled.sizes["row"] <= rows.sizes["row"] / 2:
        return "not settled", "–"
    if numbers.max() <= rows.sizes["row"] / 2 or laws[numbers.argmax()] == "none":
        return "no law", "–"
    law = str(laws[numbers.argmax()])
    slopes = settled["slope"].values[settled["law"].values == law]
    low, high = bootstrap_interval(slopes)
    name = "runs away" if quantity == "tokens" and slopes.mean() > 0 else law
    half = (high - low) / 2
    spread = "" if not np.isfinite(half) else f"\n±{half:.2f}" if half >= 0.005 else "\n± < .01"
    return name, f"{slopes.mean():+.2f}{spread}"


def three_laws(data: Data) -> Any:
    """Clusters and attention of V = I for 1 to 16 heads in the clock H t; norms of V = -I."""
    curves = data["curves"]
    figure = new_figure(12.6, 4.2)
    left, middle, right = figure.subplots(1, 3)
    shown = "trained" if "trained_identity_1" in curves else "plain"
    said = as_shown(shown, data["fits"].attrs["model"])
    for number, count in enumerate((1, 2, 4, 8, 16)):
        colour = PALETTE[number]
        if f"{shown}_identity_{count}" in curves:
            clock, tokens, attention, fastest = curves[f"{shown}_identity_{count}"].values
            left.semilogy(
                clock,
                np.exp(tokens),
                color=colour,
                linewidth=1.6,
                label=f"{count} head{'s' if count > 1 else ''}",
            )
            middle.semilogy(clock, -attention, color=colour, linewidth=1.6)
            middle.semilogy(clock, -fastest, color=colour, linewidth=1.0, linestyle=(0, (1, 1.2)))
        for family, style in (("plain", "solid"), ("synthetic", (0, (4, 2)))):
            clock, tokens = curves[f"{family}_negative_{count}"].values[:2]
            late = (clock > 0) & (tokens < 7)
            right.loglog(
                clock[late], np.exp(tokens[late]), color=colour, linewidth=1.5, linestyle=style
            )
    t = np.array([4.0, 22.0])
    left.semilogy(
        t, 3.0 * np.exp(-t), color=INK, linewidth=1.0, linestyle=(0, (1, 1.2)), label="e$^{−Ht}$"
    )
    middle.semilogy(t, 30 * np.exp(t), color=INK, linewidth=1.0, linestyle=(0, (4, 2)))
    middle.text(14.0, 4000 * np.exp(14.0), "e$^{Ht}$", ha="right", fontsize=9)
    t = np.array([5.0, 900.0])
    right.loglog(t, np.sqrt(2 / t) / 3, color=INK, linewidth=1.0, linestyle=(0, (1, 1.2)))
    right.text(30.0, 0.028, "t$^{−1/2}$", ha="right", fontsize=9)
    left.set(
        xlabel="H t",
        ylabel="largest radius of a cluster",
        title="V$_h$ = I: clusters, exponential",
        xlim=(0, 24),
    )
    middle.set(
        xlabel="H t",
        ylabel="−log(1 − max P)",
        title="V$_h$ = I: attention, double exponential",
        xlim=(0, 24),
    )
    right.set(
        xlabel="H t",
        ylabel="root mean square norm",
        title="V$_h$ = −I: t$^{−1/2}$, or running away",
        ylim=(0.01, 1500),
    )
    left.legend(frameon=False, fontsize=8, loc="lower left")
    for axes in (left, middle, right):
        dress_flat(axes)
    title(
        figure,
        "Three laws, one clock: with H heads everything runs in the time H t",
        f"One start each, colour: number of heads; left and middle {said} heads. Middle: solid the"
        " slowest row, dotted the fastest; a straight line is a double exponential. Right: solid Q"
        " = K = I, where the theorem holds, dashed Gaussian scores, whose symmetric part is not"
        " positive.",
    )
    return figure
