"""Attention matrices that are given as arrays, side by side as heat maps, with one colour bar."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from attnlab.render.panels.heat import FLOOR
from attnlab.render.style import ATTENTION, INK, NOTE


def draw_matrices(
    figure: Figure,
    row_of_axes: Sequence[Any],
    matrices: Sequence[np.ndarray],
    titles: Sequence[str],
) -> Any:
    """Draw each P (n, n) on its axes, on the colour scale of all heat maps of the house; the last
    image is returned.
    """
    image = None
    for axes, P, words in zip(row_of_axes, matrices, titles, strict=True):
        n = len(P)
        image = axes.imshow(
            P,
            cmap=ATTENTION,
            norm=LogNorm(FLOOR, 1.0, clip=True),
            interpolation="nearest",
            extent=(-0.5, n - 0.5, n - 0.5, -0.5),
        )
        axes.set_title(words)
        axes.set_xticks([])
        axes.set_yticks([])
    return image


def draw_weight_bar(figure: Figure, image: Any, axes: Any, shrink: float = 0.85) -> None:
    """The colour bar of `draw_matrices`, beside the given axes."""
    bar = figure.colorbar(image, ax=axes, shrink=shrink, aspect=30, pad=0.02, extend="min")
    bar.set_label("weight $P_{ij}$")
    bar.outline.set_visible(False)


def draw_strip(axes: Any, times: np.ndarray, shares: np.ndarray) -> Any:
    """One row a token, one column a time: the attention (token, time) that a token receives; times
    are the middles.
    """
    edges = np.concatenate([times[:1], (times[1:] + times[:-1]) / 2, times[-1:]])
    return axes.pcolormesh(
        edges,
        np.arange(len(shares) + 1) - 0.5,
        np.maximum(shares, FLOOR),
        cmap=ATTENTION,
        norm=LogNorm(FLOOR, 1.0, clip=True),
        rasterized=True,
    )


def draw_share_table(
    axes: Any, shares: np.ndarray, rows: Sequence[str], columns: Sequence[str]
) -> None:
    """A table of shares (row, column) between 0 and 1 as tinted cells with their percentages."""
    axes.imshow(shares, cmap=ATTENTION, vmin=0.0, vmax=max(1.0, float(shares.max())), aspect="auto")
    for i, j in np.ndindex(*shares.shape):
        is_none = shares[i, j] == 0
        axes.text(
            j,
            i,
            "0" if is_none else f"{100 * shares[i, j]:.0f} %" if shares[i, j] >= 0.01 else "< 1 %",
            ha="center",
            va="center",
            fontsize=8,
            color=NOTE if is_none else INK if shares[i, j] < 0.45 else "white",
        )
    axes.set_xticks(range(len(columns)), columns)
    axes.set_yticks(range(len(rows)), rows)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
