"""The figures."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.experiments.datasets import run_in
from attnlab.experiments.record import Data
from attnlab.render.style import HULL, INK, NOTE, PALETTE, dress_flat, house_style, new_figure, title


def figures(data: Data) -> dict[str, Any]:
    """Norms and their law, the energy, and the range of the attention weights."""
    over_time, run = data["over_time"], run_in(data)
    t, n, rank = over_time["time"].values[1:], over_time.attrs["n"], over_time.attrs["rank"]
    norms = np.linalg.norm(run.x, axis=-1)[1:]
    with house_style():
        figure = new_figure(9.6, 3.5)
        left, middle, right = figure.subplots(1, 3, width_ratios=[1.5, 1, 1])
        left.loglog(t, norms, color=PALETTE[0], alpha=0.35, linewidth=0.9)
        left.loglog(t, np.sqrt(over_time["mean_square"].values[1:]), color=PALETTE[0], linewidth=2.2, label="root mean square")
        centre = over_time["centre"].values[1:]
        left.loglog(t, centre, color=PALETTE[1], linewidth=1.4, linestyle=(0, (5, 2)), label="centre of mass")
        law = t > 1.0
        left.loglog(t[law], np.sqrt(rank / (2 * t[law])), color=INK, linewidth=1.0, linestyle=(0, (1, 1.2)),
                    label="√(r / 2t), the law")
        left.set(xlabel="t", title="Norms of the tokens x", xlim=(t[0], t[-1]), ylim=(1e-5, None))
        left.legend(frameon=False, fontsize=8, loc="lower left")
        middle.semilogx(t, over_time["log_energy"].values[1:], color=PALETTE[2], linewidth=1.8)
        middle.axhline(2 * np.log(n), color=HULL, linewidth=0.9, linestyle=(0, (5, 2)))
        middle.text(t[-1], 2 * np.log(n) + 0.08, "all tokens at 0", fontsize=8, color=NOTE, va="bottom", ha="right")
        middle.set(xlabel="t", title="Energy: log Σ exp⟨xᵢ, xⱼ⟩")
        right.fill_between(t, over_time["attention_low"].values[1:], over_time["attention_high"].values[1:], color=PALETTE[3],
                           alpha=0.35, linewidth=0)
        right.axhline(1 / n, color=INK, linewidth=1.0, linestyle=(0, (1, 1.2)))
        right.text(t[-1], 1 / n, "1/n ", fontsize=8, ha="right", va="bottom")
        right.set(xlabel="t", title="Range of attention weights", xscale="log", ylim=(0, None))
        for axes in (left, middle, right):
            dress_flat(axes)
        title(figure, f"V = −I: all tokens tend to 0, slowly · n = {run.n}, d = {run.d}",
              "Thin lines: single tokens. The centre of mass goes first; then the covariance obeys dC/dt = −2C², so norms fall "
              "like t to the power −1/2, and not exponentially.")
        return {"collapse_to_origin": figure}
