"""A map of heads: layers x heads, one cell per head, with the number of each head where there is
room.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from attnlab.render.style import ATTENTION, INK, NOTE, RULE

CELL = (0.52, 0.46)
"""Width and height in inches of a cell that holds a number."""

SMALL_CELL = 0.2
"""Inches of a cell without a number."""

NAME = 0.19
"""Inches that the number of a head takes below the map."""

WRITTEN = 16
"""With more heads per layer than this, cells have no numbers."""

DARK = 0.4
"""From this part of the largest value on, letters on a cell are white."""


def draw_head_map(
    axes: Any,
    values: np.ndarray,
    most: float,
    *,
    reach: np.ndarray | None = None,
    digits: int = 0,
    is_written: bool = True,
    cell: float = CELL[0],
    layers: Sequence[int] | None = None,
) -> Any:
    """Draw values (layers, heads) from 0 to `most` as a heat map, and return the image.

    reach: half the width of an interval, a small number below the value. digits: of both. cell: the
    width of a cell in inches. layers: their numbers, if they are not 0, 1, 2, ... A value that is
    NaN has a dash.
    """
    image = axes.imshow(values, cmap=ATTENTION, vmin=0.0, vmax=most, aspect="auto")
    rows, columns = values.shape
    if is_written:
        for layer, head in np.ndindex(rows, columns):
            half = np.nan if reach is None else float(reach[layer, head])
            _write(axes, layer, head, float(values[layer, head]), half, most, digits)
    every = math.ceil(NAME / cell)
    axes.set_xticks(range(0, columns, every))
    names = list(range(rows)) if layers is None else list(layers)
    every = 1 if is_written else math.ceil(rows / WRITTEN)
    axes.set_yticks(range(0, rows, every), [str(name) for name in names[::every]])
    axes.tick_params(length=0)
    axes.spines[:].set(color=RULE, linewidth=0.5)
    return image


def _write(
    axes: Any, layer: int, head: int, value: float, reach: float, most: float, digits: int
) -> None:
    """Write a number, and below it half the interval."""
    colour = NOTE if np.isnan(value) else INK if value < DARK * most else "white"
    has_reach = bool(np.isfinite(reach))
    axes.text(
        head,
        layer - (0.14 if has_reach else 0.0),
        "–" if np.isnan(value) else "0" if value == 0 else f"{value:.{digits}f}",
        ha="center",
        va="center",
        fontsize=9,
        color=colour,
    )
    if has_reach:
        least = 10.0**-digits
        small = f"±{reach:.{digits}f}" if reach >= least / 2 else f"±<{least:g}"
        axes.text(head, layer + 0.24, small, ha="center", va="center", fontsize=7, color=colour)
