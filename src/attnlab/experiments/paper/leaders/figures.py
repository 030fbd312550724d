"""The figures."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.dynamics import attention
from attnlab.experiments.datasets import limit_in, run_in
from attnlab.experiments.record import Data
from attnlab.render.heat_maps import draw_share_table, draw_strip, draw_weight_bar
from attnlab.render.style import (
    HULL,
    INK,
    LINES,
    NOTE,
    PALETTE,
    dress_flat,
    house_style,
    new_figure,
    title,
)

from .claims import EDGE, number_of
from .experiment import N, T

SHOWN = (0.0, 1.0, 2.0, 4.0)


def figures(data: Data) -> dict[str, Any]:
    """Which token attends to which, at four times, over time, and over many draws."""
    with house_style():
        return {
            "leaders": _pictures(data),
            "leaders_over_time": _over_time(data),
            "leaders_of_many_draws": _many_draws(data),
        }


def _attention(run: Any) -> np.ndarray:
    """P (T, n, n)."""
    return np.stack([attention(run, at=k)[0] for k in range(len(run.times))])


def _pictures(data: Data) -> Any:
    run = run_in(data)
    M, V = run.dynamics.weights.M[0], run.dynamics.weights.full_V[0]
    order = np.argsort(run.x[0] @ np.linalg.eigh(V)[1][:, -1])
    height = np.empty(run.n)
    height[order] = np.linspace(0, 1, run.n)
    figure = new_figure(12.4, 7.0)
    grid = figure.subplots(2, len(SHOWN), height_ratios=[1, 1.15])
    for axes, t in zip(grid.T, SHOWN, strict=True):
        k = int(np.abs(run.times - t).argmin())
        P = attention(run, at=k)[0]
        keys = run.x[k] / np.abs(run.x[k]).max()
        queries = keys @ M.T / np.abs(keys @ M.T).max()
        rows = (
            np.stack([np.zeros(run.n), height], axis=1),
            np.stack([np.ones(run.n), height], axis=1),
        )
        chosen = sorted(set(P.argmax(axis=1).tolist()))
        few = chosen if len(chosen) <= 4 else []
        for axis, (start, end) in zip(axes, ((queries, keys), rows), strict=True):
            for i, j in zip(*np.nonzero((P > EDGE) & ~np.eye(run.n, dtype=bool)), strict=True):
                faint = float(min(1.0, 0.04 + P[i, j]))
                axis.plot(
                    *np.stack([start[i], end[j]]).T,
                    color=NOTE,
                    alpha=faint,
                    linewidth=0.7,
                    zorder=1,
                )
            axis.scatter(*start.T, s=24, marker="D", color=PALETTE[2], linewidths=0, zorder=3)
            axis.scatter(*end.T, s=26, marker="o", color=PALETTE[1], linewidths=0, zorder=3)
            axis.scatter(
                *end[chosen].T,
                s=95,
                marker="o",
                facecolors="none",
                edgecolors=INK,
                linewidths=1.3,
                zorder=4,
            )
            for j in few:
                axis.annotate(
                    f"{j}",
                    end[j],
                    xytext=(8, 4),
                    textcoords="offset points",
                    fontsize=9.5,
                    fontweight="bold",
                )
            axis.set_xticks([])
            axis.set_yticks([])
        leading = f"{len(chosen)} leader{'s' if len(chosen) != 1 else ''}"
        axes[0].set_title(f"t = {run.times[k]:g}, rank {np.linalg.matrix_rank(P)}\n{leading}")
        axes[0].set(xlim=(-1.25, 1.25), ylim=(-1.25, 1.25), aspect="equal")
        axes[1].set(xlim=(-0.2, 1.3), ylim=(-0.06, 1.06))
        axes[1].set_xticks([0, 1], ["queries", "keys"])
        axes[1].spines[:].set_visible(False)
        axes[1].tick_params(length=0)
    grid[0, 0].set_ylabel("in the plane, scaled")
    grid[1, 0].set_ylabel("sorted by φ₁ at t = 0")
    title(
        figure,
        f"Which token attends to which · n = {run.n}, d = 2, V and M random, λ₁ ="
        f" {np.linalg.eigvalsh(V)[-1]:.3g}",
        f"Green diamonds: queries Mxᵢ; orange dots: keys xⱼ; a line where Pᵢⱼ > {EDGE:g}, i ≠ j,"
        " the darker the larger Pᵢⱼ. Ringed: leaders, the tokens that some token attends to most."
        " Queries and keys are scaled to the panel; they grow like exp(λ₁t).",
    )
    return figure


def _over_time(data: Data) -> Any:
    run, euler, limit = run_in(data), run_in(data, "euler"), limit_in(data)
    order = np.argsort(run.x[0] @ np.linalg.eigh(run.dynamics.weights.full_V[0])[1][:, -1])
    P, P_euler = _attention(run), _attention(euler)
    from_others = (P.sum(axis=1) - np.diagonal(P, axis1=1, axis2=2)) / (run.n - 1)  # (T, n)
    last = sorted(set(limit.leaders.tolist()))
    figure = new_figure(10.4, 6.0)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[1.35, 1])
    image = draw_strip(upper, run.times, from_others[:, order].T)
    draw_weight_bar(figure, image, [upper], shrink=0.9)
    figure.axes[-1].set_ylabel("share of others' attention")
    upper.set_yticks(range(run.n), [str(i) for i in order], fontsize=6.5)
    upper.set(ylabel="token, sorted by φ₁", title="Attention that a token receives from the others")
    for i in last:
        place = int(np.flatnonzero(order == i)[0])
        upper.annotate(
            f"leader {i}\nat t = ∞",
            (T, place),
            xytext=(-6, -26 if place > run.n / 2 else 12),
            ha="right",
            va="bottom",
            textcoords="offset points",
            fontsize=8.5,
            color=INK,
        )
    upper.axvline(limit.t, color=INK, linewidth=1.0, linestyle=(0, (4, 2)))
    upper.text(
        limit.t + 0.08, run.n / 2, f"certified\nat t = {limit.t:.2f}", fontsize=8.5, va="center"
    )
    for times, matrices, style, words in (
        (run.times, P, LINES[0], "flow"),
        (euler.times, P_euler, LINES[1], "Euler, dt = 0.1"),
    ):
        numbers = {
            "rank of P": [np.linalg.matrix_rank(one) for one in matrices],
            "tokens with an edge to them": (
                ((matrices > EDGE) & ~np.eye(run.n, dtype=bool)).any(axis=1).sum(axis=1)
            ),
            "leaders": number_of(matrices.argmax(axis=2)),
        }
        for (name, values), colour in zip(
            numbers.items(), (PALETTE[0], PALETTE[2], PALETTE[1]), strict=True
        ):
            lower.plot(
                times,
                values,
                color=colour,
                linewidth=1.6,
                linestyle=style,
                label=f"{name}, {words}",
            )
    lower.axhline(len(last), color=NOTE, linewidth=0.9, linestyle=LINES[2])
    lower.text(
        T, len(last) + 0.7, "leaders at t = ∞, certified", ha="right", fontsize=8.5, color=NOTE
    )
    lower.set(xlabel="t", ylabel="number", xlim=(0, T), ylim=(0, None))
    lower.legend(frameon=False, fontsize=8.5, loc="upper right")
    dress_flat(lower, ticks=6)
    title(
        figure,
        f"Leaders emerge · the run of the pictures, n = {run.n}, d = 2",
        "A leader is a token that at least one token attends to most; an edge is a weight above"
        f" {EDGE:g}. Euler with the published step is later: its tokens grow by 1 + λ₁dt per step"
        " instead of exp(λ₁dt).",
    )
    return figure


def _many_draws(data: Data) -> Any:
    every = data["many"]
    late = ~(every["off"].values <= EDGE)
    count = len(late)
    at_end, at_last = (
        number_of(every["follows_infinity"].values),
        number_of(every["follows_flow"].values),
    )
    most = max(3, int(at_last.max()))
    figure = new_figure(11.4, 4.3)
    left, middle, right = figure.subplots(1, 3, width_ratios=[0.8, 1.05, 1.5])
    shares = np.array(
        [[np.mean((at_last == i) & (at_end == j)) for j in (1, 2)] for i in range(1, most + 1)]
    )
    draw_share_table(left, shares, [str(i) for i in range(1, most + 1)], ["1", "2"])
    left.set(xlabel="leaders at t = ∞", ylabel="leaders at T = 10", title="Share of draws")
    ranks = every["rank"].values
    middle.hist(
        [ranks[~late], ranks[late]],
        bins=np.arange(0.5, N + 1.5),
        stacked=True,
        color=[PALETTE[0], PALETTE[1]],
        label=["final", "not final"],
    )
    middle.set(xlabel="rank of P at T = 10", ylabel="draws", title="The rank that is printed")
    middle.legend(frameon=False, fontsize=8.5)
    leading, decided = every["leading"].values, every["decided"].values
    for chosen, colour, marker, words in (
        (~late, PALETTE[0], "o", "final at T = 10"),
        (late, PALETTE[1], "s", "not final"),
    ):
        right.loglog(
            leading[chosen],
            decided[chosen],
            color=colour,
            marker=marker,
            linestyle="none",
            markersize=4.5,
            alpha=0.75,
            markeredgewidth=0,
            label=words,
        )
    right.axhline(T, color=HULL, linewidth=1.0, linestyle=(0, (4, 2)))
    ends = np.array([leading.min(), leading.max()])
    right.loglog(ends, 8.0 / ends, color=INK, linewidth=1.0, linestyle=LINES[2])
    right.text(ends[0], T * 1.08, "T = 10, published", fontsize=8.5, color=NOTE)
    right.text(0.2, 22.0, "slope −1", fontsize=8.5, ha="center", va="top")
    right.set(xlabel="λ₁", ylabel="t of the certificate", title="When the leaders are decided")
    right.legend(frameon=False, fontsize=8.5, loc="upper right")
    right.minorticks_off()
    for ticks, numbers in (
        (right.set_xticks, (0.1, 0.2, 0.5, 1, 2, 4)),
        (right.set_yticks, (2, 5, 10, 20, 50)),
    ):
        ticks(numbers, [f"{number:g}" for number in numbers])
    for axes in (middle, right):
        dress_flat(axes)
    same = np.mean((every["follows_flow"].values == every["follows_euler"].values).all(axis=1))
    title(
        figure,
        f"{count} draws: T = 10 is not the end in {100 * late.mean():.0f} % of them, and in the end"
        " one or two tokens lead",
        f"V = B Bᵀ, M = C Cᵀ, n = {N}, d = 2. Final: no weight farther than {EDGE:g} from its"
        " certified limit. It takes a few times 1/λ₁. Euler with the published step: every token"
        f" follows the same leader at T in {100 * same:.0f} % of the draws.",
    )
    return figure
