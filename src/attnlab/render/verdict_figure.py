"""The figure of verdicts: one row a result, its outcome as colour, marker and word, its number beside what it must not exceed."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from attnlab.render.literal import escape_words
from attnlab.render.style import HULL, INK, NOTE, PALETTE, RULE, dress_flat, new_figure, set_layout, title
from attnlab.verdicts import Outcome, Verdict, told

LOOKS = {
    Outcome.SUPPORTED: (PALETTE[2], "o", "supported"),
    Outcome.CONTRADICTED: (PALETTE[1], "X", "contradicted"),
    Outcome.OUT_OF_SCOPE: (HULL, "_", "out of scope"),
    Outcome.UNDECIDED: (PALETTE[4], "D", "undecided"),
}
"""Colour, marker and word of an outcome: any one of the three is enough."""

SMALLEST = 1e-3
"""Below this part of the resolution the axis is linear."""

LONGEST, WIDEST = 190, 100
"""Characters of a reason, and on one line of it."""

COLUMNS = (0.36, 0.66, 0.98)
"""Where the numbers end."""


def draw_verdicts(verdicts: Sequence[Verdict]) -> Figure:
    """The picture of a list of verdicts, what was decided first."""
    verdicts = told(verdicts)
    count = len(verdicts)
    figure = new_figure(9.6, 1.9 + 0.46 * count)
    set_layout(figure, w_pad=0.01, wspace=0.0)
    names, bars, numbers = figure.subplots(1, 3, sharey=True, width_ratios=[0.34, 0.40, 0.26])
    for axes in (names, numbers):
        axes.set(xlim=(0, 1))
        axes.axis("off")
    names.set_ylim(count - 0.5, -0.5)
    for place, word in zip(COLUMNS, ("measured", "bound", "error"), strict=True):
        numbers.text(place, -0.55, word, ha="right", va="bottom", fontsize=8.5, color=NOTE)
    reach = max([10.0, *(2.0 * abs(_place(one)) + 2.0 * _spread(one) for one in verdicts if _has_number(one))])
    bars.set_xscale("symlog", linthresh=SMALLEST, linscale=1.0)
    bars.set_xlim(-reach, reach)
    bars.axvspan(0.0, reach, color=PALETTE[1], alpha=0.07, linewidth=0)
    bars.axvline(0.0, color=INK, linewidth=0.8)
    for row, one in enumerate(verdicts):
        _draw_row(names, bars, numbers, row, one)
    _dress(bars, reach)
    found = Counter(one.outcome for one in verdicts)
    words = ", ".join(f"{found[outcome]} {look[2]}" for outcome, look in LOOKS.items() if found[outcome])
    title(figure, f"{count} result{'s' if count != 1 else ''}: {words}",
          "Mark: measured minus bound, in units of what must be seen; line: its error. Contradicted: mark and line right of 0. "
          "Undecided: the line is longer than 1, or the run has not come far enough.")
    return figure


def _draw_row(names: Any, bars: Any, numbers: Any, row: int, one: Verdict) -> None:
    colour, marker, word = LOOKS[one.outcome]
    names.text(0.0, row - 0.13, one.theorem, ha="left", va="center", fontsize=9.5)
    names.text(0.0, row + 0.22, one.kind, ha="left", va="center", fontsize=7, color=NOTE)
    names.scatter([0.70], [row], marker=marker, s=34, color=colour, linewidths=1.6, clip_on=False)
    names.text(0.74, row, word, ha="left", va="center", fontsize=8.5, color=INK)
    for axes in (names, bars, numbers):
        axes.axhline(row + 0.5, color=RULE, linewidth=0.5)
    if _has_number(one):
        place, spread, height = _place(one), _spread(one), row - (0.24 if one.unmet else 0.0)
        bars.hlines(height, place - spread, place + spread, color=colour, linewidth=3.0, alpha=0.45)
        bars.scatter([place], [height], marker=marker, s=34, color=colour, linewidths=1.6, zorder=3, label=one.theorem)
        for end, value in zip(COLUMNS, (one.measured, one.bound, one.error), strict=True):
            numbers.text(end, height, f"{value:.3g}", ha="right", va="center", fontsize=8.5)
    if one.unmet:
        below = 0.19 if _has_number(one) else 0.0
        reason = textwrap.fill(escape_words(one.unmet, LONGEST), WIDEST, break_long_words=False)
        note = bars.text(0.01, row + below, reason, transform=bars.get_yaxis_transform(), ha="left", va="center", fontsize=7,
                         color=NOTE, clip_on=False, bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0})
        note.set_in_layout(False)                           # it may run into the column of numbers, which is empty or above it


def _dress(bars: Any, reach: float) -> None:
    """The axis of the numbers: few ticks, in powers of ten."""
    dress_flat(bars)
    bars.spines["left"].set_visible(False)
    bars.tick_params(axis="y", length=0, labelleft=False)
    ticks = [tick for tick in (1e-3, 1.0, 1e3, 1e6, 1e9) if tick <= reach]
    bars.set_xticks([*(-tick for tick in reversed(ticks)), 0.0, *ticks])
    bars.xaxis.set_minor_locator(_no_ticks())
    bars.set_xlabel("(measured − bound) / what must be seen")


def _no_ticks() -> Any:
    from matplotlib.ticker import NullLocator

    return NullLocator()


def _has_number(one: Verdict) -> bool:
    return bool(np.isfinite([one.measured, one.bound, one.error, one.resolution]).all() and one.resolution > 0)


def _place(one: Verdict) -> float:
    return (one.measured - one.bound) / one.resolution


def _spread(one: Verdict) -> float:
    return one.error / one.resolution
