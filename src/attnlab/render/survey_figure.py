"""The figure of a survey: how much attention the first token receives, for every head of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

from attnlab.models.studies.surveys import intervals
from attnlab.render.literal import LONGEST_NAME, escape_words
from attnlab.render.paper import SCREEN, Paper
from attnlab.render.style import ATTENTION, INK, house_style, paper_figure, set_layout, title

if TYPE_CHECKING:
    import xarray

WRITTEN = 16
"""With more heads per layer than this, cells have no numbers."""

CELL = (0.52, 0.46)
"""Width and height of a cell in inches."""


def draw_survey(data: xarray.Dataset, paper: Paper = SCREEN) -> Figure:
    """Draw layers x heads: the share of attention that the first token receives, with half the
    width of its interval over the texts.
    """
    table = intervals(data)
    sink = table[table["number"] == "sink"]
    layers, heads = int(data.attrs["layers"]), int(data.attrs["heads"])
    shares = sink["mean"].to_numpy().reshape(layers, heads)
    reach = (sink["high"] - sink["low"]).to_numpy().reshape(layers, heads) / 2
    texts, is_written = data.sizes["text"], heads <= WRITTEN
    with house_style(paper):
        width, height = (CELL[0] * heads, CELL[1] * layers) if is_written else (6.0, 0.2 * layers)
        figure = paper_figure(paper, max(width + 2.2, 5.6), max(height, 0.8) + 0.7)
        set_layout(figure, h_pad=0.08)
        axes = figure.subplots()
        image = axes.imshow(100 * shares, cmap=ATTENTION, vmin=0.0, vmax=100.0, aspect="auto")
        if is_written:
            for layer, head in np.ndindex(layers, heads):
                _write(axes, layer, head, shares[layer, head], reach[layer, head])
            axes.set_xticks(range(heads))
            axes.set_yticks(range(layers))
        axes.set(xlabel="head", ylabel="layer")
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        bar = figure.colorbar(image, ax=axes, aspect=25, pad=0.02)
        bar.set_label("share of attention, %")
        bar.outline.set_visible(False)
        name = escape_words(data.attrs["model"], LONGEST_NAME)
        first = "the first token, which the model adds," if _is_added(data) else "the first token"
        half = (
            " The small number is half the width of its 95 % interval over the texts."
            if is_written and texts > 1
            else ""
        )
        uniform = float(data["uniform_sink"].mean())
        title(
            figure,
            f"{name}: attention that {first} receives, mean over {texts}"
            f" text{'s' if texts != 1 else ''}",
            f"One cell is one head.{half} Uniform attention would give {uniform:.0%}.",
        )
    return figure


def _is_added(data: Any) -> bool:
    """Whether the model adds the first token of every text."""
    return bool((data["is_special"].values[:, 0] == 1).all())


def _write(axes: Any, layer: int, head: int, share: float, reach: float) -> None:
    """Write the share in percent, and below it half the interval."""
    colour = INK if share < 0.4 else "white"
    has_reach = bool(np.isfinite(reach))
    axes.text(
        head,
        layer - (0.14 if has_reach else 0.0),
        f"{100 * share:.0f}",
        ha="center",
        va="center",
        fontsize=9,
        color=colour,
    )
    if has_reach:
        small = f"±{100 * reach:.0f}" if reach >= 0.005 else "±<1"
        axes.text(head, layer + 0.24, small, ha="center", va="center", fontsize=7, color=colour)
