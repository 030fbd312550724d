"""What the figure of a sweep shows: places on the axes, and shares or means of the runs at each
point with their intervals.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from attnlab.analysis.intervals import student_interval, wilson_interval
from attnlab.render.about import format_number
from attnlab.render.literal import escape_words

SYMBOLS = {
    "dynamics.beta": "β",
    "start.n": "n",
    "start.d": "d",
    "dynamics.noise.kappa": "κ",
    "solve.dt": "dt",
    "t": "t",
}
"""Letters of the mathematics, which stand before the key in the label of an axis."""

LONGEST_WORD = 40
"""Characters of a word in a label or a legend."""


@dataclass(frozen=True)
class SweepTable:
    """The rows of a sweep, ready to be drawn. columns {name: one value per row}; None and NaN are
    missing values.

    axes: which columns are axes. title: what the sweep is. order {axis: its values in the order of
    the file}, where it matters.
    """

    columns: Mapping[str, Sequence[Any]]
    axes: Sequence[str]
    title: str = "sweep"
    order: Mapping[str, Sequence[Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Curve:
    """A curve of the theory: places x and y (m,) in the units of the figure's axes, what it is, and
    where it is proved.
    """

    x: np.ndarray
    y: np.ndarray
    words: str
    citation: str


class Coordinate:
    """The values of an axis as places: a number is its own place, other values have the places 0,
    1, 2, ...

    order: all values that the axis has, also those without a row.
    """

    def __init__(self, name: str, values: Sequence[Any], order: Sequence[Any] = ()):
        self.name = name
        self.entry = _varying_entry(values)
        shown = [value[self.entry] for value in values] if self.entry is not None else list(values)
        self.is_number = all(_is_number(value) for value in shown)
        if self.is_number:
            self.places = np.array(shown, dtype=float)
            self.labels: list[str] | None = None
        else:
            known = {_hashable(value): value for value in [*order, *shown]}
            present = {_hashable(value) for value in shown}
            number = {
                key: place for place, key in enumerate(key for key in known if key in present)
            }
            self.places = np.array([float(number[_hashable(value)]) for value in shown])
            self.labels = _words([known[key] for key in number])
        whole = (
            [*order, *values]
            if order and self.is_number and _varying_entry([*order, *values]) == self.entry
            else values
        )
        numbers = whole if self.entry is None else [value[self.entry] for value in whole]
        has_numbers = self.is_number and all(map(_is_number, numbers))
        self.points = (
            np.unique(np.array(numbers, dtype=float)) if has_numbers else np.unique(self.places)
        )
        self.is_log = self.is_number and is_logspaced(self.points)

    @property
    def label(self) -> str:
        """The label of the axis."""
        words = escape_words(
            self.name if self.entry is None else f"{self.name}[{self.entry}]", LONGEST_WORD
        )
        symbol = SYMBOLS.get(self.name)
        return words if symbol is None or symbol == words else f"{symbol} ({words})"

    def word(self, point: float) -> str:
        """How a legend calls a point."""
        return self.labels[int(point)] if self.labels is not None else format_number(point)

    def edges(self) -> np.ndarray:
        """The borders of the cells around the points, in the middle between them: on a logarithmic
        axis of their logarithms.
        """
        points = np.log(self.points) if self.is_log else self.points
        if len(points) == 1:
            edges = points[0] + np.array([-0.5, 0.5])
        else:
            middles = (points[1:] + points[:-1]) / 2
            edges = np.concatenate(
                [[2 * points[0] - middles[0]], middles, [2 * points[-1] - middles[-1]]]
            )
        return np.exp(edges) if self.is_log else edges


@dataclass(frozen=True)
class Summary:
    """The runs at one point: the middle, the ends of the 95 % interval (NaN where there is none),
    and how many runs there are.
    """

    middle: float
    low: float
    high: float
    runs: int


@dataclass(frozen=True)
class Answers:
    """A number of the runs, made ready to be averaged. kind: "mean", "share" (yes or no) or
    "category" (words).
    """

    name: str
    kind: str
    values: (
        np.ndarray
    )  # (rows,): floats, NaN where missing; of categories the number of the category
    categories: tuple[str, ...] = ()

    @property
    def missing(self) -> int:
        """How many rows have no finite value."""
        return int(np.isnan(self.values).sum())

    def of_category(self, number: int) -> Answers:
        """Whether each run is in one category, as a share."""
        inside = np.where(np.isnan(self.values), np.nan, self.values == number)
        return Answers(self.categories[number], "share", inside)

    def summary(self, rows: np.ndarray) -> Summary:
        """The mean or the share over some rows."""
        values = self.values[rows]
        values = values[~np.isnan(values)]
        if not len(values):
            return Summary(math.nan, math.nan, math.nan, 0)
        if self.kind == "share":
            low, high = wilson_interval(int(values.sum()), len(values))
        else:
            low, high = student_interval(values)
        return Summary(float(values.mean()), low, high, len(values))


def read_answers(name: str, column: Sequence[Any]) -> Answers:
    """Return the Answers of a column: words are categories, true and false or 0 and 1 are a share,
    other numbers have a mean.
    """
    known = [value for value in column if not is_missing(value)]
    if any(isinstance(value, str) for value in known):
        words = [None if is_missing(value) else str(value) for value in column]
        names = sorted({word for word in words if word is not None})
        number = {word: float(place) for place, word in enumerate(names)}
        values = np.array([math.nan if word is None else number[word] for word in words])
        return Answers(name, "category", values, tuple(names))
    values = np.array(
        [math.nan if is_missing(value) or math.isinf(value) else float(value) for value in column]
    )
    is_bool = bool(known) and all(isinstance(value, bool | np.bool_) for value in known)
    is_yes_or_no = (
        bool(known)
        and {float(value) for value in known} <= {0.0, 1.0}
        and any(float(value) == 0 for value in known)
    )
    return Answers(name, "share" if is_bool or is_yes_or_no else "mean", values)


def is_missing(value: Any) -> bool:
    """Whether a cell of a table is empty: None, NaN, or what pandas has for it."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # pandas.NA has no truth
        return True


def is_logspaced(points: np.ndarray) -> bool:
    """Whether sorted points (m,), m >= 3, are positive, with equal ratios, or ratios far more even
    than their differences.
    """
    if len(points) < 3 or points[0] <= 0:
        return False
    ratios, steps = np.diff(np.log(points)), np.diff(points)
    unevenness = ratios.max() / ratios.min()
    return bool(unevenness < 1 + 1e-6 or unevenness < min(2.0, 0.5 * steps.max() / steps.min()))


def rows_at(*places: tuple[np.ndarray, float]) -> np.ndarray:
    """The mask of the rows whose places equal the given points."""
    mask = np.ones(len(places[0][0]), dtype=bool)
    for column, point in places:
        mask &= column == point
    return mask


def _varying_entry(values: Sequence[Any]) -> int | None:
    """The one entry of lists of numbers that is not the same in all of them; None where there is no
    such entry.
    """
    if not values or not all(
        isinstance(value, list | tuple) and all(map(_is_number, value)) for value in values
    ):
        return None
    if len({len(value) for value in values}) > 1:
        return None
    varying = [
        place for place, entries in enumerate(zip(*values, strict=True)) if len(set(entries)) > 1
    ]
    return varying[0] if len(varying) == 1 else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool | np.bool_)


def _hashable(value: Any) -> Hashable:
    return repr(value) if isinstance(value, list | dict | tuple) else (type(value) is bool, value)


def _words(values: Sequence[Any]) -> list[str]:
    """Short words for the values of an axis: of tables the name in them, where it tells them apart,
    else what differs.
    """
    if values and all(isinstance(value, Mapping) for value in values):
        for key in ("law", "family", "name"):
            if len({str(value.get(key)) for value in values}) == len(values):
                return [_word(value.get(key)) for value in values]
        differing = [
            key
            for key in dict.fromkeys(key for value in values for key in value)
            if len({repr(value.get(key)) for value in values}) > 1
        ]
        return [
            _word(", ".join(f"{key} = {value[key]}" for key in differing if key in value))
            for value in values
        ]
    return [_word(value) for value in values]


def _word(value: Any) -> str:
    return escape_words(str(value).lower() if isinstance(value, bool) else str(value), LONGEST_WORD)
