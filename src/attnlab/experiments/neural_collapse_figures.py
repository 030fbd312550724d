"""The figures of neural_collapse."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.experiments.heads import HEADS
from attnlab.experiments.intervals import share_interval
from attnlab.experiments.record import Data

WORDS = {"identity": "V = I", "own": "own V"}
OFFSETS = {("synthetic", "identity"): -0.27, ("synthetic", "own"): -0.09, ("trained", "identity"): 0.09, ("trained", "own"): 0.27}


def share_words(count: int, total: int) -> str:
    """The 95 % interval (Clopper and Pearson) of a share, and whether it tells it from a half."""
    low, high = share_interval(count, total)
    return f"{low:.2f} to {high:.2f}" + (", too wide to tell it from a half" if low <= 0.5 <= high else "")


def runs_by_heads(rows: Any) -> str:
    """How many runs there are for each number of heads."""
    return "runs " + ", ".join(f"H = {count}: {int(np.sum(rows['heads'].values == count))}" for count in HEADS)


def draw_curves(data: Data) -> Any:
    """NC1 and the scatter over τ for V = I, angles over τ, and how many clusters there are for each number of heads."""
    from attnlab.render.style import INK, PALETTE, dress_flat, house_style, new_figure, title

    cases = data["cases"]
    tau = cases["tau"].values
    with house_style():
        figure = new_figure(10.4, 7.4)
        panels = figure.subplots(2, 2)
        still = cases.isel(row=(cases["values"].values == "identity") & (cases["clusters"].values > 1))
        is_mixed = still["rank"].values < still["clusters"].values - 1
        for axes, name in zip(panels[0], ("scatter", "nc1"), strict=True):
            if name == "nc1":
                axes.plot(tau, still["shuffled"].values.T, color="#B8B8B8", linewidth=0.7, zorder=1)
            for k in range(still.sizes["row"]):
                axes.plot(tau, still[name].values[k], color=PALETTE[1] if is_mixed[k] else PALETTE[0], linewidth=1.0, alpha=0.8,
                          zorder=2 + is_mixed[k])
            base = np.exp(-2 * tau)
            axes.plot(tau[tau >= 8], (base * 1e6)[tau >= 8], color=INK, linewidth=1.4, linestyle=(0, (4, 2)), zorder=4)
            axes.set(yscale="log", xlabel="natural time τ = Ht", xlim=(0, tau[-1]), ylim=(1e-24, 1e4))
            dress_flat(axes)
        panels[0, 0].set_title("V = I: scatter inside clusters over all scatter")
        panels[0, 1].set_title("V = I: NC1 = tr(Σ_W Σ_B⁺) / C")
        _legend(panels[0, 1], [("middles of clusters span C − 1 dimensions", PALETTE[0], "solid"),
                               ("a cluster ends between others", PALETTE[1], "solid"),
                               ("labels shuffled (median)", "#B8B8B8", "solid"), ("slope −2", INK, (0, (4, 2)))])
        _draw_angles(panels[1, 0], still, tau, is_mixed)
        _draw_counts(panels[1, 1], cases)
        title(figure, "Clusters become points at a known rate, but no simplex; with V = I fewer of them the more heads",
              f"Top left: clusters shrink like e^(−τ) once attention no longer changes ({runs_by_heads(still)}). Top right: NC1 "
              "sees it only where the middles of the clusters keep spanning C − 1 dimensions; with several heads a cluster may "
              "end on the line between two others (orange). Bottom left: NC2, how far cosines between centred middles are from "
              "−1/(C−1), runs with C ≥ 3; it does not fall to 0. Bottom right: a mark a start; clusters of one token are not "
              "counted.")
    return figure


def _legend(axes: Any, entries: list[tuple[str, str, Any]]) -> None:
    for words, colour, dashes in entries:
        axes.plot([], [], color=colour, linestyle=dashes, linewidth=1.4, label=words)
    axes.legend(loc="lower left", frameon=False, fontsize=7.5)


def _draw_angles(axes: Any, still: Any, tau: np.ndarray, is_mixed: np.ndarray) -> None:
    """NC2 of the runs with three clusters or more."""
    from attnlab.render.style import PALETTE, dress_flat

    for k in np.flatnonzero(still["clusters"].values > 2):
        dashes = "solid" if still["family"].values[k] == "synthetic" else (0, (1, 1.2))
        axes.plot(tau, still["angles"].values[k], color=PALETTE[1 if is_mixed[k] else 0], linewidth=1.1, linestyle=dashes)
    axes.set(xlabel="natural time τ = Ht", xlim=(0, tau[-1]), ylim=(0, 1.12))
    axes.set_title("V = I: mean |cos + 1/(C−1)|, 0 for a simplex")
    dress_flat(axes)
    axes.plot([], [], color=PALETTE[0], label="synthetic heads")
    axes.plot([], [], color=PALETTE[0], linestyle=(0, (1, 1.2)), label="trained heads")
    if (is_mixed & (still["clusters"].values > 2)).any():
        axes.plot([], [], color=PALETTE[1], label="a cluster ends between others")
    axes.legend(loc="upper right", frameon=False, fontsize=7.5, ncols=3, columnspacing=1.0, handlelength=1.6)


def _draw_counts(axes: Any, cases: Any) -> None:
    """The number of clusters of two tokens or more against the number of heads."""
    from attnlab.render.style import PALETTE, dress_flat

    for (family, values), offset in OFFSETS.items():
        rows = cases.isel(row=(cases["family"].values == family) & (cases["values"].values == values))
        if not rows.sizes["row"]:
            continue
        colour = PALETTE[0 if values == "identity" else 2]
        for place, count in enumerate(HEADS):
            numbers = rows["clusters"].values[rows["heads"].values == count]
            found, times = np.unique(numbers, return_counts=True)
            axes.scatter(np.full(len(found), place + offset), found, s=16 + 14 * times, edgecolors=colour, linewidths=1.2,
                         color=colour if family == "synthetic" else "white", zorder=3,
                         label=f"{family}, {WORDS[values]}" if place == 0 else None)
    dress_flat(axes)
    axes.set_xticks(range(len(HEADS)), [str(count) for count in HEADS])
    axes.set(xlabel="heads H", ylim=(0.4, 1.5 * float(cases["clusters"].values.max())))
    axes.set_title("Clusters of two tokens or more")
    legend = axes.legend(loc="upper right", frameon=False, fontsize=8, ncols=2)
    for handle in legend.legend_handles:
        handle.set_sizes([36])


def draw_simplex(data: Data) -> Any:
    """NC2 of certified limits beside random points, and what the dimension allows."""
    from attnlab.render.style import HULL, NOTE, PALETTE, dress_flat, house_style, new_figure, title

    with house_style():
        figure = new_figure(9.6, 4.4)
        for axes, name, words in zip(figure.subplots(1, 2, sharey=True), ("many", "plane"),
                                     ("One synthetic head, V = I, d = 8", "One head, V = M = I, in the plane"), strict=True):
            limits = data[name]
            clusters, d = limits["clusters"].values, int(limits["d"].values[0])
            counts = np.arange(2, int(clusters.max()) + 2)
            bound = np.maximum(1 / d - 1 / (counts - 1), 0.0)
            axes.fill_between(counts, 0, bound, color=HULL, alpha=0.3, linewidth=0)
            if bound.any():
                axes.text(counts[-1], 0.4 * bound[-1], "impossible ", fontsize=8.5, color=NOTE, ha="right", va="center")
            jitter = np.random.default_rng(0).uniform(-0.14, 0.14, len(clusters))
            axes.scatter(clusters + jitter, limits["angles"].values, s=24, color=PALETTE[0], linewidths=0, zorder=3,
                         label="limits")
            for count in np.unique(clusters):
                random = float(np.median(limits["null_angles"].values[clusters == count]))
                axes.plot([count - 0.28, count + 0.28], [random, random], color=PALETTE[1], linewidth=2.0, zorder=2)
            axes.plot([], [], color=PALETTE[1], linewidth=2.0, label="as many random points, median")
            dress_flat(axes)
            axes.set(xlabel="clusters C", ylim=(0, 0.8), xlim=(2.5, counts[-1]))
            axes.set_xticks(counts[1:])
            axes.set_title(words)
            axes.legend(frameon=False, fontsize=8, loc="upper left", ncols=2)
        figure.axes[0].set_ylabel("mean |cos + 1/(C−1)|, 0 for a simplex")
        near = [int(np.sum(data[name]["place"].values < 0.5)) for name in ("many", "plane")]
        total = [data[name].sizes["row"] for name in ("many", "plane")]
        title(figure, f"No simplex: nearer to one than random points are {near[0]} of {total[0]} limits with generic scores, "
              f"{near[1]} of {total[1]} with M = I",
              "Each mark a certified limit with three clusters or more, by how far the cosines between the centred middles of "
              "its clusters are from those of a simplex. Random points have the law of the start. In the plane more than three "
              "points cannot be a simplex: the grey part is excluded by the rank of their cosines.")
    return figure
