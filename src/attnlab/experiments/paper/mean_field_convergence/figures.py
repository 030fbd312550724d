"""The figures."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.analysis.rates import observed_order
from attnlab.experiments.record import Data
from attnlab.render.style import (
    HULL,
    INK,
    MARKERS,
    PALETTE,
    dress_flat,
    house_style,
    new_figure,
    title,
)

from .claims import crossings, expected_square, steps
from .experiment import JUDGED, LATE, RANDOM_TIMES, TIMES, laws


def figures(data: Data) -> dict[str, Any]:
    """Distances against n, constants against t, quantiles against draws, and what is left of the
    order at late times.
    """
    with house_style():
        figure = new_figure(9.6, 7.2)
        (first, second), (third, fourth) = figure.subplots(2, 2)
        n, far = steps(data["two_bells"])
        for number, k in enumerate((0, 2, 4)):
            z = far[:, k] * np.exp(-TIMES[k])
            p, spread = observed_order(n[n >= 64], z[n >= 64])
            first.loglog(
                n,
                z,
                MARKERS[number],
                color=PALETTE[number],
                markersize=5.5,
                label=f"t = {TIMES[k]:g}: order {p:.3f} ± {spread:.1g}",
            )
            first.loglog(
                n,
                data["theory"]["two_bells"].values[k] * np.exp(-TIMES[k]) / n,
                color=PALETTE[number],
                linewidth=1.0,
            )
        first.set(title="Start at quantiles: order 1", ylabel="W₂(n, 2n)", ylim=(z[-1] / 12, None))
        _draw_constants(second, data)
        _draw_draws(third, data)
        sizes, share, crossed = crossings(data["late"])
        for number, (chosen, word) in enumerate(
            ((crossed > 0, "one token changes camp"), (crossed == 0, "none does"))
        ):
            fourth.loglog(
                sizes[chosen],
                share[chosen],
                MARKERS[number],
                color=PALETTE[1 - number],
                markersize=5.5,
                label=word,
            )
        fourth.loglog(
            sizes,
            1 / np.sqrt(2 * sizes),
            color=INK,
            linewidth=1.1,
            linestyle=(0, (5, 2)),
            label="1/√(2n)",
        )
        fourth.set(
            title=f"After the split, t = {LATE:g}: order 1/2 at worst",
            ylabel="W₂(n, 2n) / D",
            ylim=(share.min() / 12, None),
        )
        for axes, shown in (
            (first, n[::2]),
            (third, data["draws"]["size"].values),
            (fourth, sizes[::4]),
        ):
            axes.minorticks_off()
            axes.set_xticks(shown, [str(one) for one in shown])
            axes.set_xlabel("n")
            axes.legend(frameon=False, fontsize=8, loc="lower left", borderaxespad=0.1)
        for axes in (first, second, third, fourth):
            dress_flat(axes)
        title(
            figure,
            "d = 1, Q = K = V = 1: how fast n tokens approach the mean-field limit",
            "W₂ between the runs of n and of 2n tokens, in z = e⁻ᵗx, that is W₂ in x over eᵗ. Lines"
            " are theory: the constant is a quarter of the L² norm of the derivative of the"
            " quantile function. Top left and bottom right: two bells, D the distance of the camps;"
            " bottom left: uniform law, bars from 10% to 90% of the draws.",
        )
        return {"mean_field_convergence": figure}


def _draw_constants(axes: Any, data: Data) -> None:
    """n W_2 over time, and what theory says, with the explosion of the uniform law."""
    for number, (name, law) in enumerate(laws().items()):
        n, far = steps(data[name])
        line = data["torn"] if name == "uniform" else data["theory"].rename({name: "constant"})
        t = line["time"].values
        axes.semilogy(t, line["constant"].values * np.exp(-t), color=PALETTE[number], linewidth=1.1)
        chosen = slice(None) if name == "uniform" else slice(JUDGED)
        axes.semilogy(
            TIMES[chosen],
            (n[-1] * far[-1] * np.exp(-TIMES))[chosen],
            MARKERS[number],
            color=PALETTE[number],
            markersize=5.5,
            label=f"{law.label}, n = {n[-1]}",
        )
        if name == "uniform":
            axes.semilogy(
                TIMES,
                n[2] * far[2] * np.exp(-TIMES),
                MARKERS[number],
                color=PALETTE[number],
                markersize=5.5,
                markerfacecolor="white",
                label=f"{law.label}, n = {n[2]}",
            )
    axes.text(2.42, 4.5, "c(t), uniform law", fontsize=8.5, color=PALETTE[0], ha="right")
    axes.axvspan(2.0, TIMES[-1], color=HULL, alpha=0.1, linewidth=0)
    axes.set(
        title="The constant: n W₂ (markers), c(t) (lines)",
        xlabel="t",
        ylim=(0.08, 30),
        xlim=(-0.06, 3.06),
    )
    axes.legend(frameon=False, fontsize=8, loc="upper left", borderaxespad=0.1)


def _draw_draws(axes: Any, data: Data) -> None:
    """Independent draws beside quantiles, with the exact values at t = 0."""
    draws, (n, far) = data["draws"], steps(data["uniform"])
    m, roots, kept = (
        draws["size"].values,
        np.sqrt(draws["square"].values),
        n <= draws["size"].values[-1],
    )
    for number, t in enumerate(RANDOM_TIMES):
        low, middle, high = np.quantile(roots[:, :, number], [0.1, 0.5, 0.9], axis=1)
        axes.errorbar(
            m * (0.96, 1.04)[number],
            middle,
            [middle - low, high - middle],
            fmt=MARKERS[number],
            color=PALETTE[number],
            markersize=5,
            linewidth=1.0,
            label=f"independent draws, t = {t:g}",
        )
    axes.loglog(
        m,
        [np.sqrt(expected_square(int(one))) for one in m],
        color=PALETTE[0],
        linewidth=1.2,
        label="exact root mean square, t = 0",
    )
    axes.loglog(
        n[kept], far[kept, 0], "^", color=PALETTE[2], markersize=5.5, label="quantiles, t = 0"
    )
    axes.loglog(n[kept], 0.5 / n[kept], color=PALETTE[2], linewidth=1.2, label="1/(2n), exact")
    axes.set(
        title="Independent draws: order 1/2", ylabel="W₂(n, 2n)", ylim=(0.5 / m[-1] / 60, None)
    )
