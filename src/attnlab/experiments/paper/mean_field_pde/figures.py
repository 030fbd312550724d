"""The figures."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.analysis.transport import middle_levels
from attnlab.experiments.record import Data
from attnlab.render.style import INK, MARKERS, PALETTE, dress_flat, house_style, new_figure, title

from .claims import JUDGED, cells_of, errors, grids_of
from .experiment import FEW

WORDS = {
    "smooth": "smooth law",
    "uniform": "uniform law",
    "gaussian_plus": "Gaussian, V = 1",
    "gaussian_minus": "Gaussian, V = −1",
}
SHADES = ("#B9D9EC", "#86C5EA", "#3D9BD1", "#0072B2", "#004A75", "#001F33")


def figures(data: Data) -> dict[str, Any]:
    """Densities over the tokens' own, cumulative functions, and errors against the grid."""
    law = data["smooth"]
    faces, masses = cells_of(law, "limited", N := grids_of(law)[-1])
    tokens, few, t = law["tokens"].values, law["few"].values, law["time"].values
    ends = (law.attrs["low"], law.attrs["high"])
    centres, width = (faces[1:] + faces[:-1]) / 2, faces[1] - faces[0]
    with house_style():
        figure = new_figure(10.4, 6.2)
        grid = figure.add_gridspec(2, 12)
        for panel, k in enumerate((0, 3, 4, 5)):
            axes = figure.add_subplot(grid[0, 3 * panel : 3 * panel + 3])
            axes.hist(
                tokens[k],
                bins=np.linspace(*ends, 71).tolist(),
                density=True,
                color=PALETTE[4],
                alpha=0.45,
                linewidth=0,
                label=f"{tokens.shape[1]} tokens",
            )
            axes.plot(
                centres, masses[k] / width, color=PALETTE[0], linewidth=1.6, label="finite volumes"
            )
            axes.plot(
                few[k],
                np.full(FEW, -0.045),
                "|",
                color=INK,
                markersize=5,
                markeredgewidth=0.6,
                label=f"{FEW} tokens",
                transform=axes.get_xaxis_transform(),
                clip_on=False,
            )
            top = (masses[k] / width).max()
            axes.set(
                xlabel="z",
                title=f"t = {t[k]:g}",
                xlim=ends,
                ylim=(0, (1.9 if panel == 0 else 1.12) * top),
            )
            axes.tick_params(axis="x", pad=9)
            if panel == 0:
                axes.set_ylabel("density")
                axes.legend(frameon=False, fontsize=8, loc="upper left", borderaxespad=0.1)
            dress_flat(axes, 3)
        axes = figure.add_subplot(grid[1, 0:4])
        for k, colour in enumerate(SHADES):
            axes.plot(
                faces,
                np.append(0, np.cumsum(masses[k])),
                color=colour,
                linewidth=1.6,
                label=f"t = {t[k]:g}",
            )
            axes.plot(
                few[k][::4],
                middle_levels(FEW)[::4],
                "o",
                color=colour,
                markersize=3.4,
                markerfacecolor="white",
            )
        axes.set(
            xlabel="z",
            ylabel="mass to the left of z",
            title="Cumulative: equation (lines), tokens (dots)",
            xlim=ends,
        )
        axes.legend(frameon=False, fontsize=8, loc="upper left", borderaxespad=0.1)
        dress_flat(axes)
        _draw_orders(
            figure.add_subplot(grid[1, 4:8]),
            data,
            ("smooth", "uniform"),
            f"W₁ to the tokens, t = {JUDGED:g}",
        )
        exact = ("gaussian_plus", "gaussian_minus")
        _draw_orders(
            figure.add_subplot(grid[1, 8:12]), data, exact, "W₁ to the closed forms, t = 1"
        )
        title(
            figure,
            "d = 1, V = 1: the mean-field equation by finite volumes and by tokens",
            f"Rescaled frame z = e⁻ᵗx, where the support only shrinks. Above: the density on {N}"
            " cells over the histogram of tokens that started at the quantiles of the law. Below:"
            " open markers, no slopes; filled, limited slopes; dashed, the orders of theory: 1, 2"
            " for smooth densities, 4/3 where they jump.",
        )
        return {"mean_field_pde": figure}


def _draw_orders(axes: Any, data: Data, names: tuple[str, ...], heading: str) -> None:
    """Errors at the last time against the number of cells, with lines of the orders that theory
    has.
    """
    for number, name in enumerate(names):
        one, colour = data[name], PALETTE[(0, 1)[number]]
        N = np.array(grids_of(one))
        for scheme, filled in (("upwind", "white"), ("limited", colour)):
            error = errors(one, scheme)[:, one["time"].values <= JUDGED][:, -1]
            p = 1 if scheme == "upwind" else (4 / 3 if name == "uniform" else 2)
            axes.loglog(
                N, error[-1] * (N[-1] / N) ** p, color=colour, linewidth=0.9, linestyle=(0, (4, 2))
            )
            axes.loglog(
                N,
                error,
                linestyle="none",
                marker=MARKERS[number],
                color=colour,
                markerfacecolor=filled,
                markersize=5.5,
                label=WORDS[name] if scheme == "limited" else None,
            )
            axes.text(
                N[-1] * 1.14,
                error[-1],
                "4/3" if p == 4 / 3 else str(p),
                fontsize=8.5,
                color=colour,
                va="center",
            )
    axes.set(xlabel="number of cells", title=heading, xlim=(N[0] / 1.2, N[-1] * 1.5))
    axes.minorticks_off()
    axes.set_xticks(N, [str(cells) for cells in N])
    axes.legend(frameon=False, fontsize=8, loc="lower left", borderaxespad=0.1)
    dress_flat(axes)
