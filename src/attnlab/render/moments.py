"""At which of its saved times a run is shown: those between which the picture changes most evenly.

What a kind of figure shows at a time is a set of items, each a point: the tokens in the box of
their panel, or the rows of P. Two panels differ by the mean distance between their items. The times
are chosen so that the product of the differences of neighbouring panels is largest, which makes
these differences as equal as the run allows: no two panels look the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from attnlab.render.ranges import following
from attnlab.render.scene import Scene

CANDIDATES = 96
"""Saved times that are compared with each other; of more, those between which equally much
happens.
"""

MOST_ITEMS = 20_000
"""Numbers in the rows of P that are compared, which are spread over all tokens."""

MOST_WEIGHTS = 2e7
"""Numbers in all matrices P that are computed for it: a second or so. Of more tokens fewer times
are compared.
"""

VISIBLE = 1e-3
"""Pictures that differ by less than this part of a panel look the same: then times are spread
evenly.
"""

Shown = Callable[[Scene, np.ndarray], np.ndarray]
"""shown(scene, numbers of saved times): what a kind of figure shows then, (time, item,
coordinate).
"""


def choose_moments(
    scene: Scene,
    wanted_times: Sequence[float] | float | None,
    shown: Shown | None = None,
    count: int = 4,
) -> list[int]:
    """Numbers of the saved times to draw: those nearest to the `wanted_times`, or the first, the
    last and `count` - 2 between.

    shown: what is compared, by itself the tokens as they stand in their panels.
    """
    if wanted_times is not None:
        return _nearest(scene.times, wanted_times)
    last = len(scene.times) - 1
    if last < count:
        return list(range(last + 1))
    n, heads = scene.run.n, scene.run.dynamics.weights.heads
    most = (
        CANDIDATES
        if shown is None
        else int(np.clip(MOST_WEIGHTS / (heads * n * n), 12, CANDIDATES))
    )
    candidates = _candidates(scene, most)
    items = (shown or take_tokens)(scene, candidates)
    return [int(candidates[k]) for k in _spread(_differences(items), count)]


def take_tokens(scene: Scene, numbers: np.ndarray) -> np.ndarray:
    """The tokens (time, n, d) in parts of the box that the axes of their panel show."""
    points = scene.points
    if scene.shows_sphere:
        return points[numbers]
    low, high = points.min(axis=1), points.max(axis=1)  # (T, d)
    follows = following(high - low)
    low = np.where(follows, np.minimum.accumulate(low), low.min(axis=0))
    high = np.where(follows, np.maximum.accumulate(high), high.max(axis=0))
    span = np.maximum(
        high - low, 1e-6 * np.abs(points).max()
    )  # what is left of rounding is not magnified
    # a coordinate without width is drawn as a line through the middle, in a box as wide as the
    # widest
    span = np.where(
        span > 1e-9 * span.max(axis=1, keepdims=True),
        span,
        np.maximum(span.max(axis=1, keepdims=True), 1e-300),
    )
    return (points[numbers] - low[numbers, None]) / span[numbers, None]


def take_attention(scene: Scene, numbers: np.ndarray) -> np.ndarray:
    """Rows of P (time, head and token, n): all of few tokens, of many those of some of them."""
    n, heads = scene.run.n, scene.run.dynamics.weights.heads
    rows = np.unique(
        np.linspace(0, n - 1, int(np.clip(MOST_ITEMS / (heads * n), 1, n))).astype(int)
    )
    return np.stack([scene.attention(float(k))[:, rows].reshape(-1, n) for k in numbers])


def _nearest(times: np.ndarray, wanted_times: Sequence[float] | float) -> list[int]:
    """Numbers of the saved times nearest to those wanted, each once."""
    try:
        wanted = np.atleast_1d(np.asarray(wanted_times, dtype=float))
    except (TypeError, ValueError):
        wanted = np.empty(0)
    if wanted.ndim != 1 or wanted.size == 0 or not np.isfinite(wanted).all():
        raise ValueError(f"times must be one time or a list of times, got {wanted_times!r}.")
    slack = 1e-9 * max(abs(times[-1]), abs(times[0]))
    outside = wanted[(wanted < times.min() - slack) | (wanted > times.max() + slack)]
    if outside.size:
        raise ValueError(
            f"times must lie within the run, from {times[0]:g} to {times[-1]:g}, got"
            f" {outside[0]:g}."
        )
    return list(dict.fromkeys(int(np.argmin(np.abs(times - t))) for t in wanted))


def _candidates(scene: Scene, most: int) -> np.ndarray:
    """Numbers of about `most` saved times, the first and the last among them: equally far apart on
    the way of the tokens.
    """
    last = len(scene.times) - 1
    if last < most:
        return np.arange(last + 1)
    items = take_tokens(scene, np.arange(last + 1))
    way = np.concatenate(
        [[0.0], np.cumsum(np.linalg.norm(np.diff(items, axis=0), axis=-1).mean(axis=-1))]
    )
    # half by the way, half by the clock: P may change where tokens do not
    progress = way / max(way[-1], 1e-300) + np.arange(last + 1) / last
    wanted = np.linspace(0.0, progress[-1], most)
    return np.unique([0, last, *np.searchsorted(progress, wanted).clip(0, last)])


def _differences(items: np.ndarray) -> np.ndarray:
    """The mean distance (time, time) between the items (time, item, coordinate) of any two
    times.
    """
    return np.array([np.linalg.norm(items - one, axis=-1).mean(axis=-1) for one in items])


def _spread(apart: np.ndarray, count: int) -> list[int]:
    """Of T times the first, the last and count - 2 between, with the largest product of
    neighbouring differences (T, T).
    """
    last = len(apart) - 1
    if apart.max() < VISIBLE:
        return [round(k) for k in np.linspace(0, last, count)]
    # equal pictures must not forbid each other: some pair of panels may have to be equal
    gain = np.log(apart + 1e-6 * apart.max() + 1e-300)
    gain = np.where(np.tri(last + 1, k=0, dtype=bool), -np.inf, gain)  # only forwards
    best, before = gain[0], []  # best[j]: the largest sum of gains of a chain from 0 to j
    for _ in range(count - 2):
        sums = best[:, None] + gain
        before.append(sums.argmax(axis=0))
        best = sums.max(axis=0)
    chosen = [last]
    for step in reversed(before):
        chosen.append(int(step[chosen[-1]]))
    return [0, *reversed(chosen)]
