"""The figures of neural_collapse."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.analysis.collapse import least_angles
from attnlab.experiments.common.heads import HEADS, STAND_INS, as_shown
from attnlab.experiments.common.panels import mark_heads
from attnlab.experiments.datasets import rows_where, select
from attnlab.experiments.record import Data
from attnlab.render.style import (
    HULL,
    INK,
    MARKERS,
    NOTE,
    PALETTE,
    dress_flat,
    house_style,
    new_figure,
    title,
)

from .claims import compared, runs_by_heads
from .experiment import KINDS


def figures(data: Data) -> dict[str, Any]:
    """Curves of NC1 and NC2; how many clusters there are, and NC2 in the end beside chance."""
    with house_style():
        return {"neural_collapse": draw_curves(data), "neural_collapse_simplex": draw_simplex(data)}


SHUFFLED, OPEN = "#B8B8B8", "#9A9A9A"

LARGEST_SHUFFLED = 1e3

OFFSETS = (-0.22, 0.0, 0.22)
"""Of the KINDS beside each other."""


def kind_title(family: str, start: str, model: str) -> str:
    """A family and its start, short."""
    if family == "synthetic":
        return "synthetic, cube"
    return (
        f"{model or 'trained'},"
        f" {'cube' if start == 'cube' else 'random ids' if model in STAND_INS else 'text'}"
    )


def draw_curves(data: Data) -> Any:
    """Scatter and NC1 over τ for V = I, NC1 for own values; and NC2 over τ beside the simplex and
    chance.
    """
    cases = data["cases"]
    still = more_than(1, select(cases, values="identity"))
    figure = new_figure(12.4, 7.8)
    panels = figure.subplots(2, 3)
    _draw_identity(panels[0, :2], still)
    _draw_own(panels[0, 2], cases)
    for axes, kind in zip(panels[1], KINDS, strict=True):
        _draw_angles(axes, cases, kind)
    panels[1, 0].set_ylabel("NC2: mean |cos + 1/(C−1)|")
    title(
        figure,
        "Clusters become points at a known rate, but no simplex: NC2 stays where chance is, or"
        " above",
        "Above: clusters shrink like e^(−τ) once attention no longer changes (V = I,"
        f" {runs_by_heads(still)}). NC1 sees it only where the middles of the C clusters keep"
        " spanning C − 1 dimensions; with several heads a cluster may end on the line between two"
        " others (orange). Right: directions of x, heads' own V, runs with two clusters or more;"
        " grey runs have other clusters with twice the step, or end early; a slope other than −2"
        " is that of tokens that grow faster or slower than e^τ. Below: runs with three clusters"
        " or more, with V = I but for those that are dotted. The band holds 90 % of as many tokens"
        " drawn from the same start (mean over the runs); 0 is a simplex.",
    )
    return figure


def more_than(count: int, rows: Any) -> Any:
    """The rows with more clusters."""
    return rows.isel(row=rows["clusters"].values > count)


def is_between(rows: Any) -> np.ndarray:
    """Where a cluster ends between others, so that the middles span less than C - 1 dimensions."""
    return np.asarray(rows["rank"].values < rows["clusters"].values - 1)


def _draw_identity(panels: Any, still: Any) -> None:
    tau, mixed = still["tau"].values, is_between(still)
    for axes, name in zip(panels, ("scatter", "nc1"), strict=True):
        if name == "nc1":
            shuffled = still["shuffled"].values.T
            # where shuffled means are nearly on a line the pseudo-inverse leaps: not drawn
            seen = np.where(shuffled < LARGEST_SHUFFLED, shuffled, np.nan)
            axes.plot(tau, seen, color=SHUFFLED, linewidth=0.6, zorder=1)
        for k in np.argsort(mixed, kind="stable"):
            axes.plot(
                tau,
                still[name].values[k],
                color=PALETTE[1] if mixed[k] else PALETTE[0],
                linewidth=0.8,
                alpha=0.7,
                zorder=2 + mixed[k],
            )
        _draw_guide(axes, tau, "natural time τ = Ht")
    panels[0].set_title("V = I: scatter inside clusters over all scatter")
    panels[1].set_title("V = I: NC1 = tr(Σ_W Σ_B⁺) / C")
    _legend(
        panels[1],
        [
            ("middles span C − 1 dimensions", PALETTE[0], "solid"),
            ("a cluster ends between others", PALETTE[1], "solid"),
            ("labels shuffled (median)", SHUFFLED, "solid"),
            ("slope −2", INK, (0, (4, 2))),
        ],
    )


def _draw_guide(axes: Any, tau: np.ndarray, label: str) -> None:
    """The slope −2, and the axes of curves that decay."""
    late = tau[tau >= 8]
    axes.plot(
        late, np.exp(-2 * late) * 1e8, color=INK, linewidth=1.4, linestyle=(0, (4, 2)), zorder=4
    )
    axes.set(yscale="log", xlabel=label, xlim=(0, tau[-1]), ylim=(1e-24, 1e5))
    dress_flat(axes)


def _draw_own(axes: Any, cases: Any) -> None:
    """NC1 of directions over τ = λt."""
    own = more_than(1, select(cases, values="own"))
    tau, is_one = own["tau"].values, own["heads"].values == 1
    decided = own["is_decided"].values == 1
    for k in range(own.sizes["row"]):
        colour = PALETTE[2 if is_one[k] else 3] if decided[k] else OPEN
        axes.plot(
            tau,
            own["nc1"].values[k],
            color=colour,
            linewidth=0.9,
            alpha=0.8,
            zorder=1 + 2 * decided[k],
        )
    _draw_guide(axes, tau, "natural time τ = λt")
    axes.set_title("Own V: NC1 of directions")
    _legend(
        axes,
        [
            (f"one head ({int(np.sum(is_one & decided))} runs)", PALETTE[2], "solid"),
            (f"several heads ({int(np.sum(~is_one & decided))})", PALETTE[3], "solid"),
            (f"not decided ({int(np.sum(~decided))})", OPEN, "solid"),
            ("slope −2", INK, (0, (4, 2))),
        ],
    )


def _legend(axes: Any, entries: list[tuple[str, str, Any]], place: str = "lower left") -> None:
    for words, colour, dashes in entries:
        axes.plot([], [], color=colour, linestyle=dashes, linewidth=1.4, label=words)
    axes.legend(
        loc=place, frameon=True, facecolor="white", edgecolor="none", framealpha=0.85, fontsize=7.5
    ).set_zorder(9)


def _draw_angles(axes: Any, cases: Any, kind: tuple[str, str]) -> None:
    """NC2 over τ of the runs with three clusters or more, beside the simplex and chance."""
    family, start = kind
    here = more_than(2, select(cases, family=family, start=start))
    tau, mixed = cases["tau"].values, is_between(here)
    identity, decided = here["values"].values == "identity", here["is_decided"].values == 1
    if identity.any():
        low, high = (
            float(np.mean(here[name].values[identity])) for name in ("null_low", "null_high")
        )
        axes.fill_between(tau, low, high, color=HULL, alpha=0.28, linewidth=0, zorder=0)
    for k in range(here.sizes["row"]):
        colour = OPEN if not decided[k] else PALETTE[1] if mixed[k] else PALETTE[0]
        dashes = "solid" if identity[k] else (0, (1, 1.2))
        axes.plot(
            tau,
            here["angles"].values[k],
            color=colour,
            linewidth=0.9,
            alpha=0.8,
            linestyle=dashes,
            zorder=1 + decided[k],
        )
    axes.axhline(0.0, color=INK, linewidth=2.0, zorder=4)
    dress_flat(axes)
    axes.set(xlabel="natural time τ", xlim=(0, tau[-1]), ylim=(-0.02, 1.3))
    words = kind_title(family, start, cases.attrs["model"])
    axes.set_title(f"NC2, {words} ({here.sizes['row']} run{'s' * (here.sizes['row'] != 1)})")
    entries: list[tuple[str, str, Any]] = []
    if (identity & ~mixed).any():
        entries.append(("middles span C − 1 dimensions", PALETTE[0], "solid"))
    if (mixed & decided).any():
        entries.append(("a cluster ends between others", PALETTE[1], "solid"))
    if not decided.all():
        entries.append(("own V, not decided", OPEN, (0, (1, 1.2))))
    if entries:
        _legend(axes, entries, "upper right")


def draw_simplex(data: Data) -> Any:
    """NC2 in the end over chance for each number of heads, the number of clusters, and the
    plane.
    """
    plane = data["plane"]
    figure = new_figure(13.0, 4.9)
    left, middle, right = figure.subplots(1, 3)
    _draw_ratios(left, data["cases"])
    _draw_counts(middle, data["cases"])
    _draw_plane(right, plane)
    near = int(np.sum(plane["place_angles"].values < 0.5))
    title(
        figure,
        as_shown(
            "No simplex: farther from one than chance with Gaussian and trained scores, nearer with"
            " M = I in the plane",
            data["cases"].attrs["model"],
        ),
        "Left: each mark a certified limit with V = I and three clusters or more: how far its"
        " angles are from those of a simplex (0 would be one), over the median of as many tokens"
        " drawn from the same start; bars are medians. Middle: share of starts by their number of"
        " clusters of two tokens or more: certified limits for V = I, decided runs for own V."
        " Right: certified limits of one head with V"
        f" = M = I in the plane, {near} of {plane.sizes['row']} nearer to a simplex than chance in"
        " the median; more than three points of a plane cannot be a simplex, and the grey part is"
        " excluded by the rank of cosines.",
    )
    return figure


def _draw_ratios(axes: Any, cases: Any) -> None:
    rows = compared(cases)
    ratio = rows["end_angles"].values / rows["null_angles"].values
    generator = np.random.default_rng(0)
    for which, (family, start) in enumerate(KINDS):
        mine = rows_where(rows, family=family, start=start)
        axes.scatter(
            [],
            [],
            s=22,
            color=PALETTE[which],
            marker=MARKERS[which],
            linewidths=0,
            label=kind_title(family, start, cases.attrs["model"]),
        )
        for place, count in enumerate(HEADS):
            here = ratio[mine & (rows["heads"].values == count)]
            at = place + OFFSETS[which]
            axes.scatter(
                at + generator.uniform(-0.07, 0.07, len(here)),
                here,
                s=18,
                color=PALETTE[which],
                marker=MARKERS[which],
                linewidths=0,
                alpha=0.8,
                zorder=3,
            )
            if len(here):
                axes.plot(
                    [at - 0.1, at + 0.1], [np.median(here)] * 2, color=INK, linewidth=1.6, zorder=4
                )
    axes.axhline(1.0, color=INK, linewidth=1.0, linestyle=(0, (4, 2)), zorder=1)
    axes.text(len(HEADS) - 0.5, 1.06, "chance", fontsize=8.5, ha="right", va="bottom")
    dress_flat(axes)
    axes.set(yscale="log", xlim=(-0.5, len(HEADS) - 0.5), ylim=(0.15, 200))
    mark_heads(axes)
    axes.set_title("V = I: NC2 of angles over that of chance")
    axes.legend(loc="upper right", frameon=False, fontsize=8)


def _draw_counts(axes: Any, cases: Any) -> None:
    """Stacked shares of one, two, and three or more clusters, for V = I and own values."""
    for values, offset in (("identity", -0.2), ("own", 0.2)):
        for place, count in enumerate(HEADS):
            clusters = cases["clusters"].values[
                rows_where(cases, values=values, heads=count, is_decided=1)
            ]
            bottom = 0.0
            if not len(clusters):
                continue
            for which, share in enumerate(
                (np.mean(clusters < 2), np.mean(clusters == 2), np.mean(clusters > 2))
            ):
                if not share > 0:
                    continue
                axes.bar(
                    place + offset,
                    share,
                    0.36,
                    bottom,
                    color=PALETTE[which] if values == "identity" else "white",
                    edgecolor=PALETTE[which],
                    hatch=None if values == "identity" else "////",
                    linewidth=0.8,
                )
                bottom += float(share)
            axes.text(
                place + offset,
                1.01,
                str(len(clusters)),
                fontsize=7.5,
                ha="center",
                va="bottom",
                color=INK,
            )
    for which, words in enumerate(("1 cluster", "2", "3 or more")):
        axes.bar([0], [0], color=PALETTE[which], label=words)
    axes.bar([0], [0], color="white", edgecolor=INK, hatch="////", label="own V (solid: V = I)")
    dress_flat(axes)
    mark_heads(axes)
    axes.set(ylim=(0, 1.36), ylabel="share of starts (their number on top)", yticks=[0, 0.5, 1])
    axes.set_title("How many clusters are left")
    axes.legend(
        loc="upper center", frameon=False, fontsize=8, ncols=4, columnspacing=0.9, handlelength=1.2
    )


def _draw_plane(axes: Any, plane: Any) -> None:
    clusters, d = plane["clusters"].values, int(plane["d"].values[0])
    counts = np.arange(2, int(clusters.max()) + 2)
    bound = least_angles(counts, d)
    axes.fill_between(counts, 0, bound, color=HULL, alpha=0.3, linewidth=0)
    axes.text(
        counts[-1],
        0.4 * bound[-1],
        "impossible ",
        fontsize=8.5,
        color=NOTE,
        ha="right",
        va="center",
    )
    jitter = np.random.default_rng(0).uniform(-0.14, 0.14, len(clusters))
    axes.scatter(
        clusters + jitter,
        plane["angles"].values,
        s=22,
        color=PALETTE[0],
        linewidths=0,
        zorder=3,
        label="limits",
    )
    for count in np.unique(clusters):
        chance = float(np.median(plane["null_angles"].values[clusters == count]))
        axes.plot(
            [count - 0.28, count + 0.28],
            [chance, chance],
            color=PALETTE[1],
            linewidth=2.0,
            zorder=2,
        )
    axes.plot([], [], color=PALETTE[1], linewidth=2.0, label="chance, median")
    dress_flat(axes)
    axes.set(
        xlabel="clusters C",
        ylim=(0, 0.8),
        xlim=(2.5, counts[-1]),
        ylabel="NC2: mean |cos + 1/(C−1)|",
    )
    axes.set_xticks(counts[1:])
    axes.set_title("One head, V = M = I, in the plane")
    axes.legend(frameon=False, fontsize=8, loc="upper left", ncols=2)
