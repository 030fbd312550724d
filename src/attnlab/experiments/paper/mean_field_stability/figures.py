"""The figures."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.analysis.stability import largest_distance_rate, stability_rate
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

from .claims import distances, envelopes
from .experiment import KINDS


def figures(data: Data) -> dict[str, Any]:
    """Growth against time, growth against its bound, the linearised flow, and the rate of the
    crowd.
    """
    pairs, crowds = data["pairs"], data["crowds"]
    kind, sigma = pairs["kind"].values, pairs["singular_value"].values
    far, bounds = distances(pairs["tokens"].values), envelopes(data)
    grown = np.log(far / far[:, :1])
    words = {
        "independent": "independent starts",
        "near": "random nudge",
        "worst": "fastest nudge",
        "middle": "hesitating token",
    }
    with house_style():
        figure = new_figure(10.4, 3.9)
        left, middle, right = figure.subplots(1, 3)
        for number, name in enumerate(KINDS):
            chosen = np.flatnonzero(kind == name)
            style = {
                "color": PALETTE[number],
                "marker": MARKERS[number],
                "markersize": 4,
                "linestyle": "none",
                "alpha": 0.75,
            }
            left.plot(bounds["along"][chosen, -1], grown[chosen, -1], label=words[name], **style)
            if name != "independent":
                middle.plot(sigma[chosen], np.exp(grown[chosen, -1]), label=words[name], **style)
        line = np.geomspace(1, 2 * bounds["along"][:, -1].max(), 200)
        left.fill_between(line, -line, line, color=HULL, alpha=0.13, linewidth=0)
        left.plot(line, line, color=INK, linewidth=1.1, linestyle=(0, (5, 2)))
        left.plot(line, -line, color=INK, linewidth=1.1, linestyle=(0, (5, 2)))
        top = 2.3 * max(grown[:, -1].max(), 1)
        left.set(
            xscale="log",
            ylim=(2.0 * min(grown[:, -1].min(), -0.8), top),
            xlim=(line[0], line[-1]),
            xlabel="log of the proved envelope",
            ylabel="log ( W₂(1) / W₂(0) )",
            title="Growth from t = 0 to 1",
        )
        left.legend(
            frameon=False, fontsize=7.8, loc="upper right", borderaxespad=0.1, handletextpad=0.2
        )
        span = np.array([np.nanmin(sigma) / 1.3, np.nanmax(sigma) * 1.3])
        middle.loglog(span, span, color=INK, linewidth=1.1, linestyle=(0, (5, 2)))
        middle.set(
            xlabel="largest singular value of the tangent map",
            ylabel="W₂(1) / W₂(0)",
            title="Nearby pairs",
            xlim=span,
        )
        middle.legend(
            frameon=False, fontsize=7.8, loc="upper left", borderaxespad=0.1, handletextpad=0.2
        )
        R = np.linspace(0.7, crowds["radius"].values[-1] * 1.03, 100)
        right.semilogy(
            R,
            stability_rate(R),
            color=INK,
            linewidth=1.4,
            label="proved for W₂: R² + (1 + R²) exp R²",
        )
        right.semilogy(
            R,
            largest_distance_rate(R),
            color=HULL,
            linewidth=1.4,
            linestyle=(0, (5, 2)),
            label="largest distance: 1 + 2R²",
        )
        places = crowds["radius"].values
        right.semilogy(
            places,
            crowds["closed_form"].values,
            color=PALETTE[1],
            linewidth=1.0,
            label="closed form",
        )
        right.semilogy(
            places, crowds["measured"].values, "s", color=PALETTE[1], markersize=5, label="two runs"
        )
        right.set(
            xlabel="radius R",
            title="A leader and its crowd: rate of W₂",
            xlim=(R[0], R[-1]),
            ylim=(0.2, 30 * stability_rate(R).max()),
        )
        right.legend(frameon=False, fontsize=7.8, loc="upper left", borderaxespad=0.1)
        for axes in (left, middle, right):
            dress_flat(axes)
        share = np.median(np.abs(grown[:, -1]) / bounds["along"][:, -1])
        title(
            figure,
            f"Stability in W₂: {len(far)} pairs of measures, d = 1, 2, 3, under their proved"
            " envelope",
            "Left: every pair is in the grey region between ± its bound; the median |log ratio| is"
            f" {share:.1%} of the bound. Middle: dashed, the most that the linearised flow can do."
            " Right: exp 2R² tokens look at one leader; moving it moves them all, so the"
            " exponential in the constant is needed.",
        )
        return {"mean_field_stability": figure}
