"""The figures."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.dynamics import attention
from attnlab.experiments.datasets import limit_in, run_in
from attnlab.experiments.record import Data
from attnlab.render.heat_maps import draw_matrices, draw_share_table, draw_weight_bar
from attnlab.render.style import INK, NOTE, PALETTE, dress_flat, house_style, new_figure, title

from .claims import PUBLISHED, boolean_gaps, near
from .experiment import TIMES


def figures(data: Data) -> dict[str, Any]:
    """The matrices, the distribution of ranks, and the rate with the symmetric exception."""
    with house_style():
        return {
            "attention_ranks_1d": _matrices(data),
            "which_dynamics": _dynamics(data),
            "double_exponential": _rates(data),
        }


def _matrices(data: Data) -> Any:
    run, limit = run_in(data), limit_in(data)
    order = np.argsort(run.x[0, :, 0])
    matrices = [attention(run, at=int(np.abs(run.times - t).argmin()))[0] for t in TIMES] + [
        np.eye(run.n)[limit.leaders]
    ]
    ranks = [int(np.linalg.matrix_rank(P)) for P in matrices]
    words = [
        f"t = {t:g}, rank {rank}\n(published: {old})"
        for t, rank, old in zip(TIMES, ranks, PUBLISHED, strict=False)
    ]
    words.append(f"t = ∞, rank {ranks[-1]}\n(certified)")
    figure = new_figure(12.0, 3.9)
    grid = figure.subplots(1, 5)
    image = draw_matrices(figure, grid, [P[np.ix_(order, order)] for P in matrices], words)
    for axes in grid:
        axes.set_xlabel("token j")
    grid[0].set_ylabel("token i")
    draw_weight_bar(figure, image, grid)
    title(
        figure,
        f"Attention becomes Boolean · n = {run.n}, d = 1, V = Q = K = 1, tokens uniform on [−1, 1]",
        "Tokens sorted by x(0): in the end the lower ones attend to the smallest token alone, the"
        " others to the largest. Rank is the numerical one: singular values above n ε times the"
        " largest. Exactly, P has rank n at every finite time.",
    )
    return figure


def _dynamics(data: Data) -> Any:
    many = data["ranks"]
    names = [str(name) for name in many["name_of_dynamics"].values]
    starts = [str(name) for name in many["name_of_start"].values]
    standard, ranks = starts.index("U 1"), many["rank"].values
    count = ranks.shape[2]
    figure = new_figure(11.6, 6.4)
    parts: Any = figure.subfigures(2, 1, height_ratios=[1.25, 1])
    above, below = parts
    for k, axes in enumerate(above.subplots(1, 4, sharey=True, width_ratios=[0.7, 1.5, 1.5, 0.8])):
        for m in range(len(names)):
            values, counts = np.unique(ranks[standard, m, :, k], return_counts=True)
            axes.scatter(
                values,
                np.full(len(values), m),
                s=260 * counts / count,
                color=PALETTE[m],
                linewidths=0,
                alpha=0.9,
            )
            axes.plot(
                [np.median(ranks[standard, m, :, k])] * 2,
                [m - 0.36, m + 0.36],
                color=INK,
                linewidth=1.2,
            )
        axes.axvline(PUBLISHED[k], color=NOTE, linewidth=1.1, linestyle=(0, (4, 2)), zorder=0)
        axes.set(
            title=f"t = {TIMES[k]:g}, published {PUBLISHED[k]}",
            xlabel="rank of P",
            ylim=(len(names) - 0.5, -0.5),
        )
        dress_flat(axes)
        axes.set_xlim(
            min(axes.get_xlim()[0], PUBLISHED[k] - 1.5), max(axes.get_xlim()[1], PUBLISHED[k] + 1.5)
        )
        axes.set_yticks(range(len(names)), names)
        axes.tick_params(axis="y", length=0)
    axes = below.subplots()
    laws = {"U": "uniform, L = {}", "N": "normal, σ = {}"}
    draw_share_table(
        axes,
        near(ranks).T,
        names,
        [laws[name.split()[0]].format(name.split()[1]) for name in starts],
    )
    axes.set_xticks(
        axes.get_xticks(),
        [label.get_text().replace(", ", "\n") for label in axes.get_xticklabels()],
    )
    axes.set_title("Share of starts with all four ranks within 1 of the published ones")
    title(
        figure,
        f"Who made the ranks {', '.join(map(str, PUBLISHED))}? Not tokens without coupling; nor,"
        " from [−1, 1], the exact flow",
        f"Above: {count} starts uniform on [−1, 1], area = share of starts, black: median, dashed:"
        " published. Euler in z or in x with its step. Typical are only coarser steps than the 0.1"
        " of the scripts; a narrower start makes 0.1 possible.",
    )
    return figure


def _rates(data: Data) -> Any:
    run, limit, pair = run_in(data), limit_in(data), data["symmetric"]
    t, gaps = run.times, boolean_gaps(run.x[:, :, 0], limit.leaders)
    figure = new_figure(10.4, 3.9)
    left, right = figure.subplots(1, 2, width_ratios=[1.15, 1])
    largest = run.x[0, :, 0].argmax()
    for i in range(run.n):
        is_up = limit.leaders[i] == largest
        left.semilogy(
            t,
            gaps[:, i],
            color=PALETTE[0 if is_up else 1],
            linewidth=0.8,
            alpha=0.55,
            linestyle="solid" if is_up else (0, (5, 2)),
            zorder=2 + is_up * 0.1,
        )
    top = gaps[-1].max()
    guide = t > 6.2
    left.semilogy(
        t[guide],
        4 * top * np.exp(t[guide] - 10.0),
        color=INK,
        linewidth=1.4,
        linestyle=(0, (1, 1.2)),
    )
    left.text(6.9, 6 * top * np.exp(-3.1), "slope V = 1", ha="right", fontsize=9)
    left.plot([], [], color=PALETTE[0], label="rows that follow the largest token")
    left.plot([], [], color=PALETTE[1], linestyle=(0, (5, 2)), label="the smallest")
    left.set(
        xlabel="t",
        ylabel="−log(1 − $P_{iL}$)",
        title="Rows become Boolean like exp(−c eᵗ)",
        xlim=(0, 10),
    )
    left.legend(frameon=False, fontsize=8, loc="upper left")
    s, x = pair["t"].values, pair["x"].values
    middle = np.abs(x[:, 1])
    right.semilogy(s, x[:, 2], color=PALETTE[0], linewidth=3.0, alpha=0.5, label="u")
    right.semilogy(
        s,
        pair["u"].values,
        color=INK,
        linewidth=1.1,
        linestyle=(0, (1, 1.2)),
        label="u, by its own equation",
    )
    right.semilogy(
        s[1:],
        np.maximum(middle[1:], 1e-20),
        color=PALETTE[1],
        linewidth=1.4,
        label="|middle token|, which should be 0",
    )
    right.text(
        4.2,
        1e-8,
        "symmetry kept: middle row (⅓, ⅓, ⅓),\ncertified limit of rank 3",
        fontsize=8.5,
        color=NOTE,
    )
    right.set(xlabel="t", title="The exception: tokens (−u, 0, u)", xlim=(0, 10), ylim=(1e-19, 3e4))
    right.legend(frameon=False, fontsize=8, loc="center right", bbox_to_anchor=(1.0, 0.2))
    for axes in (left, right):
        dress_flat(axes, ticks=6)
    title(
        figure,
        "Theorem 2.1: the double-exponential rate, and the start that keeps rank 3",
        "Left: the run of the heat maps. Right: only an exact symmetry holds the middle token;"
        " rounding grows double-exponentially and throws it out near t = 3.5, so almost every start"
        " has rank 1 or 2.",
    )
    return figure
