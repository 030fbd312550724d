"""The figures of master_equation: what clusters are made of, the frozen generator's error, and
everything against H.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.analysis.intervals import exact_interval
from attnlab.experiments.common.certified import certified_in_words, decided
from attnlab.experiments.common.heads import as_shown
from attnlab.experiments.common.panels import draw_means, mark_heads, span_of
from attnlab.experiments.datasets import rows_where
from attnlab.experiments.record import Data
from attnlab.render.heat_maps import draw_matrices, draw_weight_bar
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

HEAD_LOOKS = {1: "solid", 16: (0, (5, 2))}
KINDS = {"square": "[−5, 5]²", "smaller square": "[−1.5, 1.5]²", "trained": "trained head"}


def figures(data: Data) -> dict[str, Any]:
    """The mixtures, errors of the frozen expansion, numbers against the heads."""
    with house_style():
        return {
            "master_equation": _mixtures(data),
            "master_equation_frozen": _errors(data),
            "master_equation_heads": _heads(data),
        }


def _mixtures(data: Data) -> Any:
    figure = new_figure(14.2, 4.1)
    panels = figure.subplots(1, 5, width_ratios=[1.1, 1, 1.1, 1, 1.25])
    image = None
    for first, second, plane in (
        (*panels[:2], data["plane"]),
        (*panels[2:4], data["plane_smaller"]),
    ):
        _draw_mixtures(first, plane)
        labels, leaders = plane["labels"].values, plane["leaders"].values
        order = np.lexsort((np.arange(len(labels)) != leaders, labels))
        image = draw_matrices(
            figure, [second], [plane["U_end"].values[np.ix_(order, order)]], ["U(∞)"]
        )
        second.hlines(
            np.flatnonzero(np.diff(labels[order])) + 0.5,
            -0.5,
            len(labels) - 0.5,
            color=INK,
            linewidth=0.5,
        )
        second.set(xlabel="first token", ylabel="token, by cluster")
    draw_weight_bar(figure, image, panels[3], shrink=0.75)
    figure.axes[-1].set_ylabel("weight $U_{ij}$")
    _draw_leaders(panels[4], data["mixtures"], data["heads"].attrs["trained"])
    starts = data["certified"]
    known = starts["clusters"].values > 0
    largest = data["mixtures"]["is_largest"].values
    title(
        figure,
        "Every cluster is a fixed mixture of first tokens; its leader has the largest weight in"
        f" {largest.sum()} of {len(largest)}",
        "One head, V = I; U(∞) certified. Left, two starts, M = I: dots are first tokens, coloured"
        " by the cluster they end in, stars the limits; a line joins a limit with each first token"
        " in it, the thicker the larger its weight (from 0.5 %). Right: the leader's weight in all"
        f" clusters of {known.sum()} starts, above its lower bound (line); hollow: another token"
        " weighs more.",
    )
    return figure


def _draw_mixtures(axes: Any, plane: Any) -> None:
    """First tokens, limits, and lines from each limit to the tokens that it is made of."""
    x0, labels, U, ends = (plane[name].values for name in ("x0", "labels", "U_end", "z_end"))
    for k in range(labels.max() + 1):
        member = int(np.flatnonzero(labels == k)[0])
        colour, marker = PALETTE[k % len(PALETTE)], MARKERS[k // len(PALETTE) % len(MARKERS)]
        for j in np.flatnonzero(U[member] > 0.005):
            axes.plot(
                *np.stack([x0[j], ends[member]]).T,
                color=colour,
                linewidth=0.4 + 6 * U[member, j],
                alpha=0.6,
                zorder=2,
            )
        axes.scatter(*x0[labels == k].T, s=20, color=colour, marker=marker, linewidths=0, zorder=3)
        axes.scatter(
            *ends[member], s=110, marker="*", color=colour, edgecolors=INK, linewidths=0.8, zorder=4
        )
    width = plane.attrs["half_width"]
    axes.set(
        aspect="equal",
        xlabel="coordinate 1",
        ylabel="coordinate 2",
        title=f"start in [−{width:g}, {width:g}]²",
    )
    dress_flat(axes)


def _draw_leaders(axes: Any, clusters: Any, model: str) -> None:
    """The leader's weight against its lower bound, one mark per cluster."""
    axes.plot([0, 1], [0, 1], color=INK, linewidth=0.8)
    for number, (kind, words) in enumerate(KINDS.items()):
        fit = clusters["kind"].values == kind
        is_largest = clusters["is_largest"].values[fit] == 1
        if fit.any():
            axes.scatter(
                clusters["promised"].values[fit],
                clusters["weight"].values[fit],
                s=22,
                linewidths=1.0,
                edgecolors=PALETTE[number],
                label=as_shown(words, model),
                marker="os^"[number],
                facecolors=[PALETTE[number] if one else "none" for one in is_largest],
            )
    axes.set(
        xlabel=r"$\exp(-\int (1 - P_{ll})\,dt)$",
        ylabel="leader's weight $U_{ll}(\\infty)$",
        xlim=(-0.03, 1.03),
        ylim=(-0.03, 1.03),
        aspect="equal",
        title="all clusters",
    )
    axes.legend(frameon=False, fontsize=8, loc="lower right", handletextpad=0.1)
    dress_flat(axes)


def _errors(data: Data) -> Any:
    families = [
        name for name in ("synthetic", "trained") if (data["heads"]["family"].values == name).any()
    ]
    figure = new_figure(5.2 * len(families) + 0.8, 7.2)
    panels = figure.subplots(2, len(families), sharey=True, squeeze=False)
    names = (
        ("heads", "errors", "$V_h = I$", "τ = H t"),
        ("own", "own_errors", "own $V_h$", "τ = t ρ(Σ $V_h$)"),
    )
    for line, (rows_name, errors_name, words, unit) in zip(panels, names, strict=True):
        for axes, family in zip(line, families, strict=True):
            _draw_errors(axes, data[rows_name], data[errors_name], family)
            guide = np.array([1e-3, 1e-1])
            axes.loglog(guide, 30 * guide**2, color=INK, linewidth=0.9, linestyle=(0, (1, 1.2)))
            axes.text(1.1e-3, 2e-3, "slope 2", fontsize=8.5, color=NOTE)
            axes.set(title=f"{_family_words(data, family)}, {words}", xlabel=unit, ylim=(1e-12, 5))
            dress_flat(axes)
        line[0].set_ylabel("error of the frozen expansion")
    panels[0, -1].legend(frameon=False, fontsize=8.5, loc="center left", bbox_to_anchor=(1.0, 0.5))
    title(
        figure,
        "Freezing P at t = 0: right to first order; later good from small starts, wrong from large"
        " ones",
        "Largest distance of a token of exp(tA) x(0) from the flow. Top: A = P(0) − I, in z, over"
        " the largest first token. Bottom: A = Σ P_h(0) ⊗ V_h in all dimensions, over the largest"
        " token by then; lines end where two runs of the flow no longer agree to 1 %. Lines:"
        " medians of the draws; bands: from the least to the largest. Starts: the cube [−1, 1]³ "
        + as_shown(
            "(synthetic) or embedded prose (trained), times a factor.",
            data["heads"].attrs["trained"],
        ),
    )
    return figure


def _family_words(data: Data, family: str) -> str:
    """The family of a panel; of trained heads the model that was used."""
    return (
        "synthetic heads" if family == "synthetic" else f"heads of {data['heads'].attrs['trained']}"
    )


def _draw_errors(axes: Any, rows: Any, errors: Any, family: str) -> None:
    """Medians and ranges over draws of the error in time, for each factor of the start, for one
    head and for 16.
    """
    tau = errors["tau"].values
    for number, scale in enumerate(np.unique(rows["scale"].values)):
        for count, dash in HEAD_LOOKS.items():
            some = errors["error"].values[rows_where(rows, family=family, scale=scale, heads=count)]
            known = np.isfinite(some).all(axis=0) & (tau > 0)
            axes.loglog(
                tau[known],
                np.median(some[:, known], axis=0),
                color=PALETTE[number],
                linestyle=dash,
                linewidth=1.5,
                label=f"start × {scale:g}, H = {count}",
            )
            axes.fill_between(
                tau[known],
                some[:, known].min(axis=0),
                some[:, known].max(axis=0),
                color=PALETTE[number],
                alpha=0.13,
                linewidth=0,
            )


def _heads(data: Data) -> Any:
    rows = decided(data["heads"])
    model = rows.attrs["trained"]
    figure = new_figure(13.6, 4.3)
    panels = figure.subplots(1, 4)
    for number, scale in enumerate(np.unique(rows["scale"].values)):
        for family, dash, marker in (("synthetic", "solid", "o"), ("trained", (0, (5, 2)), "s")):
            if not rows_where(rows, family=family).any():
                continue
            counts = np.unique(rows["heads"].values)
            # equal numbers must not hide each other
            shift = 2.0 ** (0.09 * (number - 1) + (0.04 if family == "trained" else 0.0))
            for axes, column in zip(panels, ("clusters", "weight", "nearest"), strict=False):
                some = [
                    rows[column].values[rows_where(rows, family=family, scale=scale, heads=count)]
                    for count in counts
                ]
                draw_means(
                    axes,
                    counts * shift,
                    some,
                    span_of,
                    color=PALETTE[number],
                    marker=marker,
                    markersize=4,
                    linestyle=dash,
                    linewidth=1.1,
                    elinewidth=0.8,
                    label=f"{as_shown(family, model)}, start × {scale:g}",
                )
    _draw_directions(panels[3], data["ends"])
    words = (
        "certified limits",
        "largest weight of a first token",
        "distance to a first token",
        "own V: several directions",
    )
    for axes, name in zip(panels, words, strict=True):
        mark_heads(axes, is_log=True, label="number of heads H")
        axes.set(title=name, ylim=(0, None))
        dress_flat(axes)
    panels[3].set_ylim(0, 1.02)
    every = [axes.get_legend_handles_labels() for axes in (panels[0], panels[3])]
    panels[3].legend(
        [*every[0][0], *every[1][0]],
        [*every[0][1], *(f"fourth: {words}" for words in every[1][1])],
        frameon=False,
        fontsize=8,
        loc="center left",
        bbox_to_anchor=(1.0, 0.5),
    )
    title(
        figure,
        as_shown(
            "With more heads fewer limits; largest weights fall with synthetic heads, not in"
            " every draw of trained ones",
            model,
        ),
        f"First three: V_h = I, n = {rows.attrs['n']}, t = ∞, {certified_in_words(data['heads'])};"
        " marks are means, bars reach from the least to the largest draw. Second: the largest entry"
        " in a row of U(∞), in the row where it is smallest. Third: of the limit farthest from all"
        " first tokens, over the largest one."
        f" {as_shown('Trained', model)}: {model or 'left out, the model is not here'}. Fourth:"
        " synthetic, share of draws with several directions at tρ = 25 where one is predicted,"
        " with 95 % intervals.",
    )
    return figure


def _draw_directions(axes: Any, late: Any) -> None:
    """Shares of draws with more than one direction: of the flow, of the frozen expansion by then;
    good triples apart.
    """
    counts = np.unique(late["heads"].values)
    looks = (
        ("directions", "flow", PALETTE[3], "o", 0, counts),
        ("frozen_directions", "frozen, by then", INK, "x", 0, counts),
        ("directions", "flow, good triples", PALETTE[4], "D", 1, counts[:1]),
    )
    for number, (column, words, colour, marker, good, some) in enumerate(looks):
        for place, count in enumerate(some):
            fit = rows_where(late, heads=count, is_good=good, ended=1) & (
                late["excess"].values < 1e-8
            )
            if not fit.any():
                continue
            many, total = int((late[column].values[fit] > 1).sum()), int(fit.sum())
            low, high = exact_interval(many, total)
            axes.errorbar(
                [count * 2.0 ** (0.2 * (number - 1))],
                [many / total],
                [[many / total - low], [high - many / total]],
                color=colour,
                marker=marker,
                markersize=5,
                elinewidth=0.8,
                linestyle="none",
                label=words if place == 0 else None,
            )
