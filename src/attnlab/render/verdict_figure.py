"""The figure of verdicts: one row per statement, its outcome as colour, marker and word, its number
beside its bound.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from attnlab.render.about import format_number
from attnlab.render.literal import escape_words
from attnlab.render.paper import SCREEN, Paper
from attnlab.render.style import (
    HULL,
    INK,
    NOTE,
    PALETTE,
    RULE,
    SMALLEST,
    dress_flat,
    paper_figure,
    set_layout,
    title,
)
from attnlab.render.ticks import superscript
from attnlab.render.wrap import text_height, wrap
from attnlab.verdicts import Outcome, Verdict, sort_verdicts

LOOKS = {
    Outcome.SUPPORTED: (PALETTE[2], "o", "supported"),
    Outcome.CONTRADICTED: (PALETTE[1], "X", "contradicted"),
    Outcome.OUT_OF_SCOPE: (HULL, "_", "out of scope"),
    Outcome.UNDECIDED: (PALETTE[4], "D", "undecided"),
}
"""Colour, marker and word of an outcome: any one of the three is enough."""

SMALLEST_PART = 1e-3
"""Below this part of the resolution the axis is linear."""

WIDE = 9.0
"""Inches below which numbers and reasons stand below the bars and not beside them."""

HEAD = 0.32
"""Inches of the two lines with the name of a statement."""

LONGEST, WIDEST = 190, 100
"""Characters of a reason, and on one line of it."""

COLUMNS = (0.36, 0.66, 0.98)
"""Where the numbers end."""


def draw_verdicts(verdicts: Sequence[Verdict], paper: Paper = SCREEN) -> Figure:
    """The picture of a list of verdicts, what was decided first."""
    verdicts = sort_verdicts(verdicts)
    reach = max(
        [
            10.0,
            *(2.0 * abs(_place(one)) + 2.0 * _spread(one) for one in verdicts if _has_number(one)),
        ]
    )
    if paper.width is not None and paper.width < WIDE:
        figure = _draw_compact(verdicts, paper, paper.width, reach)
    else:
        figure = _draw_wide(verdicts, paper, reach)
    found = Counter(one.outcome for one in verdicts)
    words = ", ".join(
        f"{found[outcome]} {look[2]}" for outcome, look in LOOKS.items() if found[outcome]
    )
    title(
        figure,
        f"{len(verdicts)} statement{'s' if len(verdicts) != 1 else ''}: {words}",
        "Mark: measured minus bound, in units of the resolution; line: its error. Contradicted:"
        " mark and line right of 0. Undecided: the line is longer than 1, or the run has not come"
        " far enough.",
    )
    return figure


def _draw_wide(verdicts: Sequence[Verdict], paper: Paper, reach: float) -> Figure:
    """One row a verdict: its name and outcome, its bar, its numbers."""
    count = len(verdicts)
    figure = paper_figure(paper, 9.6, 1.0 + 0.46 * count)
    set_layout(figure, w_pad=0.01, wspace=0.0)
    names, bars, numbers = figure.subplots(1, 3, sharey=True, width_ratios=[0.34, 0.40, 0.26])
    for axes in (names, numbers):
        axes.set(xlim=(-0.02, 1))
        axes.axis("off")
    names.set_ylim(count - 0.5, -0.5)
    for place, word in zip(COLUMNS, ("measured", "bound", "error"), strict=True):
        numbers.text(place, -0.55, word, ha="right", va="bottom", fontsize=8.5, color=NOTE)
    _frame(bars, reach)
    for row, one in enumerate(verdicts):
        _draw_row(names, bars, numbers, row, one)
    _dress(bars, reach, [1e-3, 1.0, 1e3, 1e6, 1e9])
    bars.set_xlabel("(measured − bound) / resolution")
    return figure


def _draw_compact(verdicts: Sequence[Verdict], paper: Paper, width: float, reach: float) -> Figure:
    """Name and outcome beside the bar, and below them, over the whole width, the numbers or the
    reason.
    """
    room = width - 0.3
    said = [wrap(_compact_words(one), room, SMALLEST) for one in verdicts]
    heights = np.array([HEAD + text_height(words, SMALLEST) + 0.12 for words in said])
    tops = np.concatenate([[0.0], np.cumsum(heights)])
    figure = paper_figure(paper, width, float(tops[-1]) + 0.6)
    set_layout(figure, w_pad=0.02, wspace=0.0)
    names, bars = figure.subplots(1, 2, sharey=True, width_ratios=[0.58, 0.42])
    names.set(xlim=(-0.02, 1), ylim=(tops[-1], 0.0))
    names.axis("off")
    bars.set_xscale("symlog", linthresh=SMALLEST_PART, linscale=1.0)
    bars.set_xlim(-reach, reach)
    for one, words, top, height in zip(verdicts, said, tops, heights, strict=False):
        colour, marker, word = LOOKS[one.outcome]
        middle = top + 0.5 * HEAD + 0.03
        names.scatter(
            [0.03], [middle], marker=marker, s=20, color=colour, linewidths=1.3, clip_on=False
        )
        names.text(0.09, middle - 0.07, one.theorem, ha="left", va="center", fontsize=8)
        names.text(
            0.09,
            middle + 0.07,
            f"{one.kind}, {word}",
            ha="left",
            va="center",
            fontsize=SMALLEST,
            color=NOTE,
        )
        below = names.text(
            0.0,
            top + HEAD + 0.05,
            words,
            ha="left",
            va="top",
            fontsize=SMALLEST,
            color=NOTE,
            linespacing=1.1,
            clip_on=False,
        )
        below.set_in_layout(False)  # it runs on below the bars
        bars.fill_between(
            [0.0, reach], top + 0.03, top + HEAD + 0.03, color=PALETTE[1], alpha=0.07, linewidth=0
        )
        bars.vlines(0.0, top + 0.03, top + HEAD + 0.03, color=INK, linewidth=0.8)
        if _has_number(one):
            _draw_bar(bars, middle, one)
        for axes in (names, bars):
            axes.axhline(top + height, color=RULE, linewidth=0.5, clip_on=False)
    names.set_zorder(bars.get_zorder() + 1)  # the words below a bar stand above its axes
    known = [tick for tick in (1.0, 1e3, 1e6, 1e9) if tick <= reach]
    _dress(bars, reach, known[-1:])
    bars.set_xlabel("(measured − bound) /\nresolution")
    return figure


def _compact_words(one: Verdict) -> str:
    """The numbers of a verdict, and what stands in the way of more."""
    values = (one.measured, one.bound, one.error)
    numbers = (
        "measured {}, bound {}, error {}".format(*map(format_number, values))
        if _has_number(one)
        else ""
    )
    reason = escape_words(one.unmet, LONGEST) if one.unmet else ""
    return "; ".join(part for part in (numbers, reason) if part) or "no number"


def _frame(bars: Any, reach: float) -> None:
    """The axis of the numbers, with what contradicts tinted."""
    bars.set_xscale("symlog", linthresh=SMALLEST_PART, linscale=1.0)
    bars.set_xlim(-reach, reach)
    bars.axvspan(0.0, reach, color=PALETTE[1], alpha=0.07, linewidth=0)
    bars.axvline(0.0, color=INK, linewidth=0.8)


def _draw_bar(bars: Any, height: float, one: Verdict) -> None:
    """The number of a verdict as a mark, its error as a line."""
    colour, marker, _ = LOOKS[one.outcome]
    place, spread = _place(one), _spread(one)
    bars.hlines(height, place - spread, place + spread, color=colour, linewidth=3.0, alpha=0.45)
    bars.scatter(
        [place],
        [height],
        marker=marker,
        s=34,
        color=colour,
        linewidths=1.6,
        zorder=3,
        label=one.theorem,
        clip_on=False,
    )


def _draw_row(names: Any, bars: Any, numbers: Any, row: int, one: Verdict) -> None:
    colour, marker, word = LOOKS[one.outcome]
    names.text(0.0, row - 0.13, one.theorem, ha="left", va="center", fontsize=9.5)
    names.text(0.0, row + 0.22, one.kind, ha="left", va="center", fontsize=7, color=NOTE)
    names.scatter([0.70], [row], marker=marker, s=34, color=colour, linewidths=1.6, clip_on=False)
    names.text(0.74, row, word, ha="left", va="center", fontsize=8.5, color=INK)
    for axes in (names, bars, numbers):
        axes.axhline(row + 0.5, color=RULE, linewidth=0.5)
    if _has_number(one):
        height = row - (0.24 if one.unmet else 0.0)
        _draw_bar(bars, height, one)
        for end, value in zip(COLUMNS, (one.measured, one.bound, one.error), strict=True):
            numbers.text(end, height, f"{value:.3g}", ha="right", va="center", fontsize=8.5)
    if one.unmet:
        below = 0.19 if _has_number(one) else 0.0
        reason = textwrap.fill(escape_words(one.unmet, LONGEST), WIDEST, break_long_words=False)
        note = bars.text(
            0.01,
            row + below,
            reason,
            transform=bars.get_yaxis_transform(),
            ha="left",
            va="center",
            fontsize=7,
            color=NOTE,
            clip_on=False,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0},
        )
        note.set_in_layout(
            False
        )  # it may run into the column of numbers, which is empty or above it


def _dress(bars: Any, reach: float, powers: Sequence[float]) -> None:
    """The axis of the numbers: few ticks, in powers of ten."""
    dress_flat(bars)
    bars.spines["left"].set_visible(False)
    bars.tick_params(axis="y", length=0, labelleft=False)
    ticks = [tick for tick in powers if tick <= reach]
    places = [*(-tick for tick in reversed(ticks)), 0.0, *ticks]
    bars.set_xticks(places, [_power(place) for place in places])
    bars.xaxis.set_minor_locator(NullLocator())


def _power(value: float) -> str:
    """A power of ten, or 0, as a tick: 0, 1, −10³."""
    exponent = round(np.log10(abs(value))) if value else 0
    return f"{'−' if value < 0 else ''}{f'10{superscript(exponent)}' if exponent else f'{abs(value):g}'}"


def _has_number(one: Verdict) -> bool:
    return bool(
        np.isfinite([one.measured, one.bound, one.error, one.resolution]).all()
        and one.resolution > 0
    )


def _place(one: Verdict) -> float:
    return (one.measured - one.bound) / one.resolution


def _spread(one: Verdict) -> float:
    return one.error / one.resolution
