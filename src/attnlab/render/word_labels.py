"""Words beside points and lines, so that none covers another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from attnlab.render.literal import escape_words
from attnlab.render.wrap import text_width

SIZE = 8.0
"""Points of the words."""

LONGEST_WORD = 14
"""Characters of a word that are drawn."""

ROUNDS = (1.0, 2.2, 3.6, 5.2)
"""How far from its point a word may stand, in units of the first place."""

NEAR_ROUNDS = 2
"""So many of these places are tried in a crowd."""

BESIDE = 6.0
"""Points between a word and its point beyond which a hair line joins them."""

ALL_LABELLED = 24
"""Up to this many points all have their words; of more those that find room beside them."""


def spread_out(places: Sequence[float], low: float, high: float, gap: float) -> list[float]:
    """The places, moved as little as needs be until neighbours are `gap` apart and inside low to
    high where they fit.
    """
    if not places:
        return []
    order = np.argsort(places, kind="stable")
    moved = np.asarray(places, dtype=float)[order]
    gap = min(gap, (high - low) / max(len(moved) - 1, 1))
    blocks: list[list[float]] = []  # (sum of place - own offset, count): runs of labels that touch
    for place in np.clip(moved, low, high):
        blocks.append([float(place), 1.0])
        while (
            len(blocks) > 1
            and _first(blocks[-1], gap, low, high) - _last(blocks[-2], gap, low, high) < gap
        ):
            total, count = blocks.pop()
            before, size = blocks[-1]
            middle = (before * size + total * count) / (size + count)
            blocks[-1] = [middle, size + count]
    result = [
        _first(block, gap, low, high) + gap * number
        for block in blocks
        for number in range(int(block[1]))
    ]
    found = np.empty(len(moved))
    found[order] = result
    return found.tolist()


def _first(block: list[float], gap: float, low: float, high: float) -> float:
    half = gap * (block[1] - 1) / 2
    return min(max(block[0], low + half), high - half) - half


def _last(block: list[float], gap: float, low: float, high: float) -> float:
    return _first(block, gap, low, high) + gap * (block[1] - 1)


def label_points(
    axes: Any,
    points: np.ndarray,
    words: Sequence[str],
    colours: Sequence[str],
    size: float = SIZE,
    first: Sequence[int] | np.ndarray = (),
) -> None:
    """Each word at the free place near its point (n, 2), with a hair line where that is not beside
    it; the axes are laid out.

    The words are drawn literally, at most LONGEST_WORD characters of each. Of more than
    ALL_LABELLED, those that find no room beside their points are left out, except the words with
    the numbers `first`, which choose their places before the others. A point without a word only
    keeps words away.
    """
    drawn = [escape_words(word, LONGEST_WORD) for word in words]
    to_dots = axes.figure.dpi / 72
    at = axes.transData.transform(points) / to_dots  # (n, 2) in points
    frame = axes.get_window_extent()
    box = np.array([frame.x0, frame.y0, frame.x1, frame.y1]) / to_dots
    sizes = np.array([word_size(word, size) for word in drawn]).reshape(-1, 2)
    is_crowded = sum(map(bool, drawn)) > ALL_LABELLED  # then it stands near its point or nowhere
    places = place_words(at, sizes, box, is_crowded, first)
    for number, middle in enumerate(places):
        if not np.isfinite(middle).all():  # it has no room, or no word
            continue
        line = (
            None
            if (np.abs(middle - at[number]) <= sizes[number] / 2 + BESIDE).all()
            else {
                "arrowstyle": "-",
                "color": "#B0B0B0",
                "linewidth": 0.5,
                "shrinkA": 0,
                "shrinkB": 2,
            }
        )
        axes.annotate(
            drawn[number],
            points[number],
            xytext=tuple(middle - at[number]),
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=size,
            color=colours[number],
            arrowprops=line,
            zorder=4,
        )


def word_size(word: str, size: float) -> tuple[float, float]:
    """Width and height of a word in points, with a little air; nothing for no word."""
    return (72 * text_width(word, size) + 1.0, 1.15 * size) if word else (0.0, 0.0)


def place_words(
    points: np.ndarray,
    sizes: np.ndarray,
    box: np.ndarray,
    is_crowded: bool = False,
    first: Sequence[int] | np.ndarray = (),
) -> np.ndarray:
    """Return the middles (n, 2) of words of these sizes (n, 2), each near its point (n, 2) and
    inside the box (4,): those with the numbers `first`, then from top to bottom.

    Each takes the nearest free place. Without one it covers as little as it can. If is_crowded, the
    others stand near their points, and one that would cover something has the place NaN.
    """
    taken = [np.array([x - 3, y - 3, x + 3, y + 3]) for x, y in points]
    found = np.full((len(points), 2), np.nan)
    order = np.argsort(-points[:, 1], kind="stable")
    leads = np.isin(order, np.asarray(first, dtype=int))
    for number in [*order[leads], *order[~leads]]:
        width, height = sizes[number]
        if not width:
            continue
        is_bound = is_crowded and number not in first
        low, high = points[number] - (width + 40), points[number] + (width + 40)
        around = (
            [other for other in taken if (other[2:] > low).all() and (other[:2] < high).all()]
            if is_bound
            else taken
        )
        middle, cost = _free_place(
            points[number], width, height, around, box, ROUNDS[:NEAR_ROUNDS] if is_bound else ROUNDS
        )
        if is_bound and cost > 0:
            continue
        taken.append(_box(middle, width, height))
        found[number] = middle
    return found


def _free_place(
    point: np.ndarray,
    width: float,
    height: float,
    taken: Sequence[np.ndarray],
    box: np.ndarray,
    rounds: Sequence[float] = ROUNDS,
) -> tuple[np.ndarray, float]:
    """The middle of a word's box that covers least, the nearest of those; and what it covers."""
    best, least = point, np.inf
    for far in rounds:
        x, y = width / 2 + 5 + 8 * (far - 1), height / 2 + 4 + 8 * (far - 1)
        for a, b in ((1, 0), (-1, 0), (0, 1), (0, -1), (0.8, 1), (-0.8, 1), (0.8, -1), (-0.8, -1)):
            middle = point + (a * x, b * y)
            here = _box(middle, width, height)
            cost = sum(_overlap(here, other) for other in taken) + 4 * max(_outside(here, box), 0.0)
            if cost < least - 1e-9:
                best, least = middle, cost
        if least == 0:
            break
    return best, least


def _box(middle: np.ndarray, width: float, height: float) -> np.ndarray:
    return np.array(
        [
            middle[0] - width / 2,
            middle[1] - height / 2,
            middle[0] + width / 2,
            middle[1] + height / 2,
        ]
    )


def _overlap(one: np.ndarray, other: np.ndarray) -> float:
    sides = np.minimum(one[2:], other[2:]) - np.maximum(one[:2], other[:2])
    return float(sides[0] * sides[1]) if (sides > 0).all() else 0.0


def _outside(one: np.ndarray, box: np.ndarray) -> float:
    """How much of a word's box is out of the frame."""
    return float(np.prod(one[2:] - one[:2])) - _overlap(one, box)
