"""The figures."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.experiments.datasets import limit_in
from attnlab.experiments.record import Data
from attnlab.render.heat_maps import draw_matrices, draw_weight_bar
from attnlab.render.style import (
    HULL,
    INK,
    NOTE,
    PALETTE,
    dress_flat,
    house_style,
    new_figure,
    title,
)

from .claims import ranks_of
from .experiment import LAST, SHOWN, STEPS


def figures(data: Data) -> dict[str, Any]:
    """Both dynamics side by side as heat maps, and ranks over all of the time."""
    with house_style():
        return {"attention_ranks_80d": _matrices(data), "ranks_over_time": _ranks(data)}


def _matrices(data: Data) -> Any:
    shown = data["attention"]
    n, d, reach, leading = (
        shown.attrs["n"],
        shown.attrs["d"],
        shown["reach"].values,
        shown["eigenvalues"].values[0],
    )
    order = np.argsort(shown["leading_coordinate"].values)
    places = [int(np.abs(reach - at).argmin()) for at in SHOWN] + [len(reach) - 1]
    figure = new_figure(13.2, 6.0)
    grid = figure.subplots(2, len(places))
    image = None
    for row, (name, words) in enumerate((("coupled", "coupled"), ("alone", "not coupled"))):
        matrices = [shown[name].values[k][np.ix_(order, order)] for k in places]
        times = [f"λ₁t = {reach[k]:.4g}\n" if row == 0 else "" for k in places]
        heads = [
            f"{time}rank {rank}"
            for time, rank in zip(times, ranks_of(np.array(matrices)), strict=True)
        ]
        image = draw_matrices(figure, grid[row], matrices, heads)
        grid[row, 0].set_ylabel(f"{words}\ntoken i")
    for axes, k in zip(grid[-1], places, strict=True):
        axes.set_xlabel(f"token j\nt = {reach[k] / leading:.3g}")
    draw_weight_bar(figure, image, grid, shrink=0.6)
    title(
        figure,
        f"Attention in {d} dimensions · n = {n}, V = B Bᵀ, Q = K = I, λ₁ = {leading:.4g}",
        "Tokens sorted by their first coordinate φ₁ along the leading eigenvector. Above: the"
        " paper's equation; the last matrix is the certified limit. Below: tokens that do not"
        " attend to each other, dx/dt = Vx, as in the published script, but solved exactly.",
    )
    return figure


def _ranks(data: Data) -> Any:
    shown, script, limit = data["attention"], data["script"], limit_in(data)
    reach, leading, n = shown["reach"].values[1:], shown["eigenvalues"].values[0], shown.attrs["n"]
    coupled, alone = (shown[name].values[1:] for name in ("coupled", "alone"))
    certified = shown["is_certificate"].values[1:] == 1
    figure = new_figure(10.6, 5.4)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[2.2, 1])
    ranks = ranks_of(coupled)
    upper.semilogx(
        reach[~certified],
        ranks[~certified],
        color=PALETTE[0],
        linewidth=2.2,
        label="coupled: the flow",
    )
    upper.semilogx(
        reach[certified],
        ranks[certified],
        color=PALETTE[0],
        linewidth=2.2,
        linestyle=(0, (1, 1)),
        label="coupled: its certificate",
    )
    upper.semilogx(
        reach,
        ranks_of(alone),
        color=PALETTE[1],
        linewidth=1.6,
        linestyle=(0, (5, 2)),
        label="not coupled, solved exactly",
    )
    at, printed = np.arange(STEPS)[1:] * script.attrs["dt"] * leading, script["rank"].values[1:]
    fine = printed >= 0
    upper.semilogx(
        at[fine],
        printed[fine],
        color=PALETTE[2],
        marker="^",
        markersize=4,
        linestyle="none",
        label="published script, one mark per step",
    )
    if (~fine).any():
        upper.semilogx(
            at[~fine],
            np.full((~fine).sum(), 0),
            color=INK,
            marker="x",
            markersize=5,
            linestyle="none",
            label="the same: not a number",
        )
    marks = (
        (limit.t * leading, 0.96, "right", "certified"),
        (LAST, 1.05, "left", "double ends"),
        (np.log(np.finfo(float).max), 0.95, "right", "exp(λ₁t)\noverflows"),
    )
    for value, shift, side, words in marks:
        upper.axvline(value, color=HULL, linewidth=0.9, linestyle=(0, (4, 2)), zorder=0)
        upper.text(value * shift, n * 1.05, words, fontsize=8, color=NOTE, ha=side, va="top")
    upper.set(ylabel="rank of P", ylim=(-0.04 * n, 1.08 * n))
    upper.legend(frameon=False, fontsize=8.5, loc="center left", bbox_to_anchor=(0.0, 0.45))
    lower.semilogx(
        reach,
        (coupled.argmax(axis=2) != alone.argmax(axis=2)).mean(axis=1),
        color=PALETTE[3],
        linewidth=1.8,
    )
    lower.set(
        xlabel="λ₁t",
        ylabel="rows with\nanother leader",
        ylim=(0, None),
        xlim=(reach[0], reach[-1] * 1.02),
    )
    for axes in (upper, lower):
        dress_flat(axes)
    above = upper.secondary_xaxis("top", functions=(lambda s: s / leading, lambda t: t * leading))
    above.set_xlabel("t")
    title(
        figure,
        f"All happens before λ₁t = {limit.t * leading:.0f}, and the published steps begin at"
        f" {at[0]:.0f} · d = {shown.attrs['d']}",
        "Below: share of tokens that attend most to different tokens with and without coupling. The"
        " script solves dx/dt = Vx with a step in which the leading mode should grow by exp(λ₁dt),"
        " and lets it grow by a fiftieth of that.",
    )
    return figure
