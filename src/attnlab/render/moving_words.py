"""Tokens with their words that move: one panel of the movies of flows, sentences and repeated
layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.collections import LineCollection

from attnlab.render.literal import escape_words
from attnlab.render.style import INK
from attnlab.render.word_labels import BESIDE, LONGEST_WORD, place_words, word_size

PULL, SWEEPS, LAST_SWEEPS = 0.2, 30, 60
"""How strongly a word is drawn to its token, how often words are moved apart in a frame, and how
often at most without the pull.
"""

DOT = 4.0
"""Half the side of the square around a token that words leave free, in points."""

HAIR = "#B0B0B0"

SPIRAL = np.stack(
    np.meshgrid(np.arange(-160.0, 161.0, 4.0), np.arange(-160.0, 161.0, 4.0)), axis=-1
).reshape(-1, 2)
"""Ways to a free place, in points."""


@dataclass(frozen=True, eq=False)
class Crowd:
    """Tokens that move: path (T, n, 2), and how they look.

    is_filled: hollow tokens are alone. rings: tokens with a ring. named: tokens with a word.
    memory: the length of trails in steps of the path; None: from the start on.
    """

    path: np.ndarray
    words: Sequence[str]
    colours: np.ndarray  # (n, 3)
    markers: np.ndarray  # (n,)
    is_filled: np.ndarray  # (n,)
    rings: np.ndarray
    named: np.ndarray
    memory: float | None = None

    def at(self, position: float) -> np.ndarray:
        """The tokens (n, 2) at a step, or linearly between two of them."""
        low = min(int(position), len(self.path) - 1)
        high, part = min(low + 1, len(self.path) - 1), position - low
        result: np.ndarray = (1.0 - part) * self.path[low] + part * self.path[high]
        return result

    def trails(self, position: float) -> np.ndarray:
        """The ways (n, k, 2) of the tokens up to a position."""
        since = 0.0 if self.memory is None else max(position - self.memory, 0.0)
        inner = np.arange(int(np.floor(since)) + 1, int(np.ceil(position)))
        way = np.concatenate(
            [self.at(since)[None], self.path[inner], self.at(position)[None]]
        )  # (k, n, 2)
        return np.swapaxes(way, 0, 1)


class CrowdPanel:
    """A Crowd on axes whose limits are set; `show` moves it."""

    def __init__(self, axes: Any, crowd: Crowd, size: float = 8.5, area: float = 36.0):
        self.axes, self.crowd, self.size = axes, crowd, size
        n = crowd.path.shape[1]
        self.trails = axes.add_collection(
            LineCollection([], colors=crowd.colours, linewidths=0.8, alpha=0.45, zorder=2),
            autolim=False,
        )
        self.hairs = axes.add_collection(
            LineCollection([], colors=HAIR, linewidths=0.5, zorder=3.5, transform=None),
            autolim=False,
        )
        self.parts = []
        for marker in dict.fromkeys(crowd.markers):
            part = np.flatnonzero(crowd.markers == marker)
            is_filled = crowd.is_filled[part, None]
            faces = np.where(is_filled, crowd.colours[part], 1.0)
            edges = np.where(is_filled, 1.0, crowd.colours[part])
            self.parts.append(
                (
                    part,
                    axes.scatter(
                        *np.zeros((2, len(part))),
                        s=area,
                        marker=marker,
                        facecolors=faces,
                        edgecolors=edges,
                        linewidths=0.9,
                        zorder=4,
                    ),
                )
            )
        self.rings = axes.scatter(
            *np.zeros((2, len(crowd.rings))),
            s=3.6 * area,
            facecolors="none",
            edgecolors=INK,
            linewidths=0.9,
            zorder=5,
        )
        drawn = [escape_words(crowd.words[int(i)], LONGEST_WORD) for i in crowd.named]
        self.boxes = np.array([word_size(word, size) for word in drawn]).reshape(-1, 2)
        is_ring = np.isin(np.arange(n), crowd.rings)
        self.texts = [
            axes.text(
                0.0,
                0.0,
                word,
                transform=None,
                ha="center",
                va="center",
                fontsize=size,
                color=INK if is_ring[token] else crowd.colours[token],
                zorder=6,
                in_layout=False,
            )
            for token, word in zip(crowd.named, drawn, strict=True)
        ]
        for text in self.texts:
            text.set_in_layout(False)
        self.rest: np.ndarray | None = None
        self.offsets: np.ndarray | None = None
        self.frame: tuple[float, ...] = ()

    def show(self, position: float) -> None:
        """Move tokens, trails, rings and words to a position."""
        points = self.crowd.at(position)
        for part, tokens in self.parts:
            tokens.set_offsets(points[part])
        self.rings.set_offsets(points[self.crowd.rings])
        self.trails.set_segments(list(self.crowd.trails(position)))
        if len(self.texts):
            self._move_words(points)

    def _move_words(self, points: np.ndarray) -> None:
        """Words stay beside their tokens, and apart from each other; from frame to frame they move
        little.
        """
        figure = self.axes.figure
        to_dots = figure.dpi / 72
        frame = self.axes.get_window_extent()
        box = np.array([frame.x0, frame.y0, frame.x1, frame.y1]) / to_dots
        at = self.axes.transData.transform(points) / to_dots  # (n, 2) in points
        own = at[self.crowd.named]
        if self.rest is None or self.frame != tuple(box):  # the first frame, or another layout
            self.offsets = place_words(own, self.boxes, box) - own
            near = self.boxes / 2 + BESIDE - 1.0  # later there may be room beside the token
            self.rest, self.frame = np.clip(self.offsets, -near, near), tuple(box)
        assert self.offsets is not None and self.rest is not None
        self.offsets = keep_apart(own, self.offsets, self.rest, self.boxes, at, box)
        middles = own + self.offsets
        hairs = []
        for text, middle, point, size in zip(self.texts, middles, own, self.boxes, strict=True):
            text.set_position(tuple(middle * to_dots))
            edge = np.clip(point, middle - size / 2, middle + size / 2)
            if np.linalg.norm(edge - point) > BESIDE:
                hairs.append(np.array([point, edge]) * to_dots)
        self.hairs.set_segments(hairs)


def keep_apart(
    points: np.ndarray,
    offsets: np.ndarray,
    rest: np.ndarray,
    sizes: np.ndarray,
    dots: np.ndarray,
    box: np.ndarray,
) -> np.ndarray:
    """Return offsets (k, 2) of words from their points, near the given ones, so that no word covers
    another.

    points (k, 2), sizes (k, 2) of the words, rest (k, 2) the offsets that they are drawn to, dots
    (n, 2) tokens that they leave free where they can, and box (4,) that they stay inside of; all in
    points of 1/72 inch.
    """
    found = offsets.copy()
    low, high = box[:2] + sizes / 2, box[2:] - sizes / 2
    for _ in range(SWEEPS):
        found += PULL * (rest - found)
        middles = points + found
        found += _push_from_dots(middles, sizes, dots)
        found += _push_words(points + found, sizes)
        found = np.clip(points + found, low, high) - points
    for _ in range(LAST_SWEEPS):
        push = _push_words(points + found, sizes)
        if not push.any():
            return found
        found = np.clip(points + found + push, low, high) - points
    return _free_places(points + found, sizes, low, high) - points


def _free_places(
    middles: np.ndarray, sizes: np.ndarray, low: np.ndarray, high: np.ndarray
) -> np.ndarray:
    """Move the words that still cover another, one by one, to the nearest free place.

    A word in the middle of a crowd is pushed from all sides, so that pushing alone may not free it.
    """
    found = middles.copy()
    ways = SPIRAL[np.argsort(np.linalg.norm(SPIRAL, axis=1), kind="stable")]
    for number in range(len(found)):
        reach = (sizes[number] + np.delete(sizes, number, axis=0)) / 2
        others = np.delete(found, number, axis=0)
        if not (np.abs(found[number] - others) < reach - 1e-9).all(axis=1).any():
            continue
        places = np.clip(found[number] + ways, low[number], high[number])
        covers = (np.abs(places[:, None] - others[None]) < reach - 1e-9).all(axis=-1).any(axis=1)
        found[number] = places[int(np.argmin(covers))]  # the first that covers nothing
    return found


def _push_words(middles: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """How far each word has to go so that it covers no other: half the way of each pair."""
    return 0.5 * _push(middles, sizes, middles, sizes, is_same=True)


def _push_from_dots(middles: np.ndarray, sizes: np.ndarray, dots: np.ndarray) -> np.ndarray:
    """How far each word has to go so that it covers no token, in the mean of those that it covers."""
    squares = np.full((len(dots), 2), 2 * DOT)
    deep = (sizes[:, None] + squares[None]) / 2 - np.abs(middles[:, None] - dots[None])
    covered = (deep > 1e-9).all(axis=-1).sum(axis=1)
    result: np.ndarray = _push(middles, sizes, dots, squares) / np.maximum(covered, 1)[:, None]
    return result


def _push(
    middles: np.ndarray,
    sizes: np.ndarray,
    others: np.ndarray,
    other_sizes: np.ndarray,
    is_same: bool = False,
) -> np.ndarray:
    """The sum over boxes that are covered of the shortest way out, up or to the side, (k, 2)."""
    gap = middles[:, None] - others[None]  # (k, m, 2)
    deep = (sizes[:, None] + other_sizes[None]) / 2 - np.abs(gap)
    is_covered = (deep > 1e-9).all(axis=-1)
    side = np.where(gap > 0, 1.0, -1.0)
    if is_same:  # of two words in one place the later one goes up
        number = np.arange(len(middles))
        np.fill_diagonal(is_covered, False)
        side = np.where(gap == 0, np.sign(number[:, None] - number)[..., None], side)
    is_across = deep[..., 0] < deep[..., 1]
    push = np.where(np.stack([is_across, ~is_across], axis=-1), side * (deep + 0.01), 0.0)
    result: np.ndarray = np.where(is_covered[..., None], push, 0.0).sum(axis=1)
    return result
