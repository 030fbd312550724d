"""What figures of several experiments draw: ticks, an axis of numbers of heads, means with bars."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from attnlab.experiments.common.heads import HEADS


def set_ticks(
    axes: Any, x: Iterable[float] | None = None, y: Iterable[float] | None = None
) -> None:
    """Set ticks at these numbers only, as they are written; None leaves an axis alone."""
    if x is not None:
        x = list(x)
        axes.set_xticks(x, [f"{tick:g}" for tick in x])
    if y is not None:
        y = list(y)
        axes.set_yticks(y, [f"{tick:g}" for tick in y])
    axes.minorticks_off()


def mark_heads(axes: Any, *, is_log: bool = False, label: str = "heads H") -> None:
    """Make the numbers of heads the ticks of the horizontal axis: evenly spaced, or logarithms."""
    if is_log:
        axes.set_xscale("log", base=2)
    axes.set_xticks(HEADS if is_log else range(len(HEADS)), [str(count) for count in HEADS])
    if is_log:
        axes.minorticks_off()
    axes.set_xlabel(label)


def draw_means(
    axes: Any,
    places: Any,
    samples: Sequence[np.ndarray],
    ends: Callable[[np.ndarray], tuple[float, float]],
    *,
    least: float = -np.inf,
    **look: Any,
) -> None:
    """Draw the mean of each sample with a bar from low to high, ends(sample) = (low, high).

    Bars are cut at `least`. A sample without values has no mark; without an interval it has no bar.
    """
    means = np.array([np.mean(sample) if len(sample) else np.nan for sample in samples])
    low, high = np.maximum(np.array([ends(sample) for sample in samples], dtype=float), least).T
    bars = np.maximum([means - low, high - means], 0.0)
    axes.errorbar(places, means, bars, **look)


def span_of(values: np.ndarray) -> tuple[float, float]:
    """The smallest and the largest value, (NaN, NaN) of none: bars that show the range."""
    return (float(values.min()), float(values.max())) if len(values) else (np.nan, np.nan)
