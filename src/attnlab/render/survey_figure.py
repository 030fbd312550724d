"""The figure of a survey: how much attention the first token receives, for every head of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from attnlab.models.studies.surveys import intervals
from attnlab.render.head_map import CELL, WRITTEN, draw_head_map
from attnlab.render.literal import LONGEST_NAME, escape_words
from attnlab.render.paper import SCREEN, Paper
from attnlab.render.style import house_style, paper_figure, set_layout, title

if TYPE_CHECKING:
    import xarray


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
        room = (figure.get_figwidth() - 1.6) / heads
        image = draw_head_map(
            axes, 100 * shares, 100.0, reach=100 * reach, is_written=is_written, cell=room
        )
        axes.set(xlabel="head", ylabel="layer")
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
