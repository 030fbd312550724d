"""Ranges of axes that keep pictures readable although z may grow like e^{|lambda| t}."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

LARGEST_GROWTH = 6.0
"""A panel whose tokens fill less than a sixth of a shared axis shows nothing: from here on an axis
gets ranges panel by panel.
"""

SQUAREST = 4.0
"""Coordinates whose ranges differ by more than this are not drawn to one scale: the short one would
be a line.
"""


def shared_ranges(
    panels: Sequence[np.ndarray], trails: Sequence[np.ndarray] | None = None
) -> np.ndarray:
    """Ranges (panel, d, 2) for sets of points (n, d): one range for all, but an axis whose spread
    grows too much follows.

    trails: sets of points (m, d), one per panel, that must lie inside its ranges as well.
    """
    low = np.array([points.min(axis=0) for points in panels])  # (panel, d)
    high = np.array([points.max(axis=0) for points in panels])
    follows = following(high - low)
    if trails is not None:
        low = np.minimum(low, [points.min(axis=0) for points in trails])
        high = np.maximum(high, [points.max(axis=0) for points in trails])
    low = np.where(follows, low, low.min(axis=0))
    high = np.where(follows, high, high.max(axis=0))
    return pad_ranges(low, high)


def following(spread: np.ndarray) -> np.ndarray:
    """Whether the axis of each coordinate must follow its spread (panel, d), which grows too much
    for one range: (d,).
    """
    follows = spread.max(axis=0) > LARGEST_GROWTH * np.maximum(spread.min(axis=0), 1e-300)
    # a spread that is small in every panel but the first is a collapse: it is shown at the size it
    # had
    return np.asarray(follows & (spread[-1] > spread[0]))


def pad_ranges(low: np.ndarray, high: np.ndarray, margin: float = 0.06) -> np.ndarray:
    """Return ranges (..., d, 2) around low and high (..., d). An empty range gets the size of the
    widest one.
    """
    spread = high - low
    widest = spread.max(axis=-1, keepdims=True)
    size = np.maximum(np.abs(low), np.abs(high)).max(axis=-1, keepdims=True)
    open_to = np.where(widest > 1e-12 * size, 0.1 * widest, np.where(size > 0, 0.5 * size, 1.0))
    half = (
        0.5
        * np.where(spread > 1e-9 * np.maximum(widest, size), spread, 2 * open_to)
        * (1 + 2 * margin)
    )
    middle = low + 0.5 * spread
    return np.stack([middle - half, middle + half], axis=-1)


def square_ranges(ranges: np.ndarray) -> np.ndarray:
    """Widen ranges (d, 2) to one scale for all axes if their lengths are comparable; else return
    them unchanged.
    """
    span = ranges[:, 1] - ranges[:, 0]
    if span.max() > SQUAREST * span.min():
        return ranges
    middle, half = ranges.mean(axis=1), 0.5 * span.max()
    return np.stack([middle - half, middle + half], axis=-1)
