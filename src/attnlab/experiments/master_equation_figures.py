"""The figures of master_equation: what clusters are made of, the frozen generator's error, and everything against H."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.experiments.record import Data

HEAD_LOOKS = {1: "solid", 16: (0, (5, 2))}


def figures(data: Data) -> dict[str, Any]:
    """U over time and the mixtures, errors of the frozen expansion, numbers against the heads."""
    from attnlab.render.style import house_style

    with house_style():
        return {"master_equation": _mixtures(data), "master_equation_frozen": _errors(data),
                "master_equation_heads": _heads(data)}


def _mixtures(data: Data) -> Any:
    from attnlab.render.heat_maps import draw_matrices, draw_weight_bar
    from attnlab.render.style import INK, new_figure, title

    large, small = data["plane"], data["plane_smaller"]
    at = int(np.abs(large["time"].values - 1.0).argmin())
    figure = new_figure(13.4, 4.0)
    panels = figure.subplots(1, 5, width_ratios=[1.15, 1, 1, 1.15, 1])
    for axes, plane in ((panels[0], large), (panels[3], small)):
        _draw_mixtures(axes, plane)
    shown = ((panels[1], large, large["U"].values[at], "U(t), t = 1"), (panels[2], large, large["U_end"].values, "U(∞)"),
             (panels[4], small, small["U_end"].values, "U(∞)"))
    image = None
    for axes, plane, U, words in shown:
        labels, leaders = plane["labels"].values, plane["leaders"].values
        order = np.lexsort((np.arange(len(labels)) != leaders, labels))
        image = draw_matrices(figure, [axes], [U[np.ix_(order, order)]], [words])
        axes.hlines(np.flatnonzero(np.diff(labels[order])) + 0.5, -0.5, len(labels) - 0.5, color=INK, linewidth=0.5)
        axes.set(xlabel="first token", ylabel="token, by cluster")
    draw_weight_bar(figure, image, panels[4], shrink=0.75)
    figure.axes[-1].set_ylabel("weight $U_{ij}$")
    title(figure, "Every cluster is a fixed mixture of first tokens: in these two starts of fewer from the large one, of more "
          "from the small one",
          "One head, V = I, M = I; U(∞) certified. Dots: first tokens, coloured by the cluster they end in; stars: the limits. "
          "A line joins a limit with each first token it is made of, the thicker the larger its weight (from 0.5 %; most are "
          "too short to be seen on the left). Matrices: tokens sorted by cluster, leader first.")
    return figure


def _draw_mixtures(axes: Any, plane: Any) -> None:
    """First tokens, limits, and lines from each limit to the tokens that it is made of."""
    from attnlab.render.style import INK, MARKERS, PALETTE, dress_flat

    x0, labels, U, ends = (plane[name].values for name in ("x0", "labels", "U_end", "z_end"))
    for k in range(labels.max() + 1):
        member = int(np.flatnonzero(labels == k)[0])
        colour, marker = PALETTE[k % len(PALETTE)], MARKERS[k // len(PALETTE) % len(MARKERS)]
        for j in np.flatnonzero(U[member] > 0.005):
            axes.plot(*np.stack([x0[j], ends[member]]).T, color=colour, linewidth=0.4 + 6 * U[member, j], alpha=0.6, zorder=2)
        axes.scatter(*x0[labels == k].T, s=20, color=colour, marker=marker, linewidths=0, zorder=3)
        axes.scatter(*ends[member], s=110, marker="*", color=colour, edgecolors=INK, linewidths=0.8, zorder=4)
    width = plane.attrs["half_width"]
    axes.set(aspect="equal", xlabel="coordinate 1", ylabel="coordinate 2", title=f"start in [−{width:g}, {width:g}]²")
    dress_flat(axes)


def _errors(data: Data) -> Any:
    from attnlab.render.style import INK, NOTE, PALETTE, dress_flat, new_figure, title

    rows, errors = data["heads"], data["errors"]
    families = [name for name in ("synthetic", "trained") if (rows["family"].values == name).any()]
    tau = errors["tau"].values
    figure = new_figure(5.2 * len(families) + 0.6, 4.4)
    panels = np.atleast_1d(figure.subplots(1, len(families), sharey=True))
    for axes, family in zip(panels, families, strict=True):
        for number, scale in enumerate(np.unique(rows["scale"].values)):
            for count, dash in HEAD_LOOKS.items():
                fit = (rows["family"].values == family) & (rows["scale"].values == scale) & (rows["heads"].values == count)
                axes.loglog(tau[1:], errors["error"].values[fit][0, 1:], color=PALETTE[number], linestyle=dash, linewidth=1.5,
                            label=f"start × {scale:g}, H = {count}")
        guide = np.array([1e-3, 1e-1])
        axes.loglog(guide, 30 * guide**2, color=INK, linewidth=0.9, linestyle=(0, (1, 1.2)))
        axes.text(2e-3, 2e-3, "slope 2", fontsize=8.5, color=NOTE)
        axes.set(title=f"{family} heads, $V_h = I$", xlabel="τ = H t", ylim=(1e-11, 5))
        dress_flat(axes)
    panels[0].set_ylabel("error of the frozen expansion")
    panels[-1].legend(frameon=False, fontsize=8.5, loc="center left", bbox_to_anchor=(1.0, 0.5))
    title(figure, "Freezing P at t = 0: right to first order, good for ever from small starts, wrong from large ones",
          "Largest distance of a token of exp(τA) z(0), A = P(0) − I, from the flow, over the largest first token. Starts: the "
          "cube [−1, 1]³ (synthetic) or an embedded paragraph (trained), times a factor.")
    return figure


def _heads(data: Data) -> Any:
    from attnlab.render.style import PALETTE, dress_flat, new_figure, title

    rows = data["heads"]
    scales = np.unique(rows["scale"].values)
    figure = new_figure(10.6, 4.2)
    left, middle, right = figure.subplots(1, 3)
    for number, scale in enumerate(scales):
        for family, dash, marker in (("synthetic", "solid", "o"), ("trained", (0, (5, 2)), "s")):
            fit = (rows["family"].values == family) & (rows["scale"].values == scale)
            if not fit.any():
                continue
            shift = 2.0 ** (0.07 * (number - 1))                                # equal numbers must not hide each other
            words = f"{family}, start × {scale:g}"
            for axes, column in ((left, "clusters"), (middle, "weight"), (right, "nearest")):
                axes.plot(rows["heads"].values[fit] * shift, rows[column].values[fit], color=PALETTE[number], marker=marker,
                          markersize=4.5, linestyle=dash, linewidth=1.1, label=words)
    for axes, words in ((left, "clusters at H t = 25"), (middle, "largest weight of a first token"),
                        (right, "distance to the nearest first token")):
        axes.set_xscale("log", base=2)
        axes.set_xticks([1, 2, 4, 8, 16], ["1", "2", "4", "8", "16"])
        axes.set(xlabel="number of heads H", title=words, ylim=(0, None))
        dress_flat(axes)
    right.legend(frameon=False, fontsize=8.5, loc="center left", bbox_to_anchor=(1.0, 0.5))
    title(figure, "With 16 heads one cluster in every draw, and smaller largest weights; distances show no such trend",
          f"V_h = I, n = {rows.attrs['n']}, one draw a cell. Middle: the largest entry in a row of U at H t = 25, for the "
          "row where it is smallest. Right: for the cluster farthest from all first tokens, over the largest first token. "
          f"Trained: {rows.attrs['trained'] or 'left out, the model is not here'}. Marks are moved apart sideways.")
    return figure
