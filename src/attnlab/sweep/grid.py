"""A grid of named axes: its cells and their order. It does not depend on Specs, so experiments use
it too.

    grid = Grid({"n": [2, 4, 8], "rng": range(100)}, small={"rng": range(3)}, exclude=[{"n": 2,
    "rng": [0, 1]}])
    for cell in grid: ...              # {"n": 2, "rng": 2}, {"n": 2, "rng": 3}, ...

Values are JSON values: numbers, words, true and false, lists and tables. An axis with several keys,
"n, d", has a list of values for each place, so that the keys change together.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from attnlab.displayed import Displayed, count_words, short_value
from attnlab.registry import unknown_name
from attnlab.spec import canonical_text

Cell = dict[str, Any]
"""{key: value}: one value for each key of the grid."""

MOST_PLACES = 100_000_000
"""The most cells of a grid, with excluded ones: each needs one byte."""

DIGITS = 15
"""Significant digits of the values between the ends of linspace and logspace: 0.3 and not
0.30000000000000004, and the same value on machines whose mathematical functions differ in the last
bit.
"""

SPACINGS = ("linspace", "logspace", "range")


@dataclass(frozen=True, eq=False)
class Grid(Displayed):
    """Named axes with their values, the values of some of them in the small version, and cells that
    are left out.

    Parameters
    ----------
    axes : mapping
        {name: values}. An axis with several keys, "n, d", has a list of values for each place.
    small : mapping, optional
        {name: values} of axes that are shorter in the small version.
    exclude : sequence of mapping, optional
        Tables {key: value or list of values}. A cell is left out if all keys of one table match.

    Examples
    --------
    >>> import attnlab as al
    >>> grid = al.sweep.Grid({"n": [2, 4], "rng": range(3)}, exclude=[{"n": 2, "rng": 0}])
    >>> len(grid), next(iter(grid))
    (5, {'n': 2, 'rng': 1})
    """

    axes: Mapping[str, Sequence[Any]]
    small: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    exclude: Sequence[Mapping[str, Any]] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.axes, Mapping) or not self.axes:
            raise ValueError(
                "A grid must have at least one axis, a table of names and values; got"
                f" {short_value(self.axes)}."
            )
        axes = {name: read_axis(name, values) for name, values in self.axes.items()}
        keys = [key for name in axes for key in split_name(name)]
        for key in keys:
            if keys.count(key) > 1:
                raise ValueError(f"Each key must be on one axis, but {key!r} is on several.")
        if not isinstance(self.small, Mapping):
            raise ValueError(
                f"small must be a table of axes and values, got {short_value(self.small)}."
            )
        for name in self.small:
            if name not in axes:
                raise unknown_name("axis in small", name, axes)
        object.__setattr__(self, "axes", axes)
        object.__setattr__(
            self, "small", {name: read_axis(name, values) for name, values in self.small.items()}
        )
        object.__setattr__(self, "exclude", tuple(_read_exclusions(self.exclude, keys)))
        if math.prod(self.shape) > MOST_PLACES:
            raise ValueError(
                f"A grid must have at most {MOST_PLACES:,} places, got {math.prod(self.shape):,}: "
                f"{' x '.join(map(str, self.shape))}. Choose fewer values."
            )

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the axes. An axis with several keys has its name as written, "n, d"."""
        return tuple(self.axes)

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of every cell, in the order of the axes."""
        return tuple(key for name in self.axes for key in split_name(name))

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of values of each axis."""
        return tuple(len(values) for values in self.axes.values())

    def __len__(self) -> int:
        """The number of cells, without those that are excluded."""
        return math.prod(self.shape) if self._kept is None else len(self._kept)

    def __iter__(self) -> Iterator[Cell]:
        """The cells in row-major order: the last axis changes fastest."""
        return (self.cell(place) for place in self.places())

    def places(self, order: Sequence[int] | None = None) -> Iterator[int]:
        """Return the places of the cells, in row-major order or in another order of the axes.

        Parameters
        ----------
        order : sequence of int, optional
            The numbers of the axes, from slow to fast.

        Returns
        -------
        iterator of int
            The places.
        """
        kept = np.arange(math.prod(self.shape)) if self._kept is None else self._kept
        if order is not None and list(order) != list(range(len(self.shape))):
            indices = np.unravel_index(kept, self.shape)
            kept = kept[np.lexsort([indices[axis] for axis in reversed(order)])]
        return (int(place) for place in kept)

    def cell(self, place: int) -> Cell:
        """Return the cell at a place.

        Parameters
        ----------
        place : int
            The number of the cell in row-major order among all places.

        Returns
        -------
        dict
            {key: value}.
        """
        found: list[tuple[Any, tuple[str, ...]]] = []
        for values, keys in reversed(self._columns):
            place, index = divmod(place, len(values))
            found.append((values[index], keys))
        return {
            key: value
            for values, keys in reversed(found)
            for key, value in (
                zip(keys, values, strict=True) if len(keys) > 1 else ((keys[0], values),)
            )
        }

    def reduced(self) -> Grid:
        """Return the small version: the values of `small` in place of those axes."""
        return Grid({**self.axes, **self.small}, exclude=self.exclude)

    def __repr__(self) -> str:
        shape = ", ".join(f"{name}: {len(values)}" for name, values in self.axes.items())
        return f"Grid({count_words(len(self), 'cell')} of {shape})"

    @cached_property
    def _columns(self) -> list[tuple[Sequence[Any], tuple[str, ...]]]:
        return [(values, split_name(name)) for name, values in self.axes.items()]

    @cached_property
    def _kept(self) -> np.ndarray | None:
        """The places that no exclusion matches, ascending; None without exclusions."""
        if not self.exclude:
            return None
        left_out = np.zeros(self.shape, dtype=bool)
        for exclusion in self.exclude:
            matching = [self._matches(values, keys, exclusion) for values, keys in self._columns]
            left_out[np.ix_(*matching)] = True
        return np.flatnonzero(~left_out)

    @staticmethod
    def _matches(
        values: Sequence[Any], keys: tuple[str, ...], exclusion: Mapping[str, list[Any]]
    ) -> np.ndarray:
        """Return which values of one axis an exclusion matches; all of them if it does not name the
        axis.
        """
        asked = [(number, exclusion[key]) for number, key in enumerate(keys) if key in exclusion]
        return np.array(
            [
                all(
                    any(_same(value[number] if len(keys) > 1 else value, one) for one in wanted)
                    for number, wanted in asked
                )
                for value in values
            ],
            dtype=bool,
        )


def split_name(name: str) -> tuple[str, ...]:
    """Return the keys of an axis: "start.n, start.d" has two."""
    return tuple(part.strip() for part in name.split(","))


def read_axis(name: str, given: Any) -> Sequence[Any]:
    """Return the values of an axis from a list, { linspace = [a, b, count] }, { logspace = ... } or
    { range = [...] }.

    linspace and logspace go from a to b, both included; a and b of logspace are values, not
    exponents. range is Python's.
    """
    if not isinstance(name, str) or not all(split_name(name)):
        raise ValueError(
            f"An axis must be named by a key, or by several with commas between them, got {name!r}."
        )
    where = f"The axis {name!r}"
    if isinstance(given, np.ndarray):
        given = given.tolist()
    if isinstance(given, Mapping):
        values = _read_spacing(where, given)
    elif isinstance(given, range):
        values = _read_range(where, [given.start, given.stop, given.step])
    elif isinstance(given, list | tuple):
        values = [plain_value(where, value) for value in given]
    else:
        raise ValueError(
            f"{where} must be a list of values, or a table with linspace, logspace or range; got"
            f" {given!r}."
        )
    if not values:
        raise ValueError(f"{where} must have at least one value, but it is empty.")
    keys = split_name(name)
    if isinstance(values, range) and len(keys) == 1:
        return values  # whole numbers, all different, however many
    if len(keys) > 1:
        for value in values:
            if not isinstance(value, list) or len(value) != len(keys):
                raise ValueError(
                    f"{where} has {len(keys)} keys, so each value must be a list of {len(keys)};"
                    f" got {value!r}."
                )
    seen: dict[str, Any] = {}
    for value in values:
        if (text := canonical_text(value)) in seen:
            raise ValueError(
                f"{where} must have different values, but it has {short_value(value)} twice."
            )
        seen[text] = value
    return tuple(values)


def _read_spacing(where: str, given: Mapping[str, Any]) -> Sequence[Any]:
    """Return the values of a table with one spacing."""
    if len(given) != 1:
        raise ValueError(
            f"{where} must have one of {', '.join(SPACINGS)}, got"
            f" {', '.join(map(str, given)) or 'an empty table'}."
        )
    ((kind, parts),) = given.items()
    if kind not in SPACINGS:
        raise unknown_name(f"spacing of {where[0].lower()}{where[1:]}", kind, SPACINGS)
    is_numbers = isinstance(parts, list | tuple) and all(
        isinstance(part, int | float) and not isinstance(part, bool) and math.isfinite(part)
        for part in parts
    )
    if kind == "range":
        return _read_range(where, [parts] if _is_whole(parts) else parts)
    if not is_numbers or len(parts) != 3 or not _is_whole(parts[2]) or parts[2] < 1:
        raise ValueError(
            f"{where}: {kind} takes [first, last, count] with a count of 1 or more, got {parts!r}."
        )
    first, last, count = float(parts[0]), float(parts[1]), parts[2]
    _check_count(where, count)
    if kind == "logspace" and not (first > 0 and last > 0):
        raise ValueError(
            f"{where}: logspace goes from one positive value to another (they are not exponents),"
            f" got {parts!r}."
        )
    if count == 1:
        return [first]
    spaced = (np.geomspace if kind == "logspace" else np.linspace)(first, last, count)
    return [first, *(float(f"{value:.{DIGITS}g}") for value in spaced[1:-1]), last]


def _read_range(where: str, parts: Any) -> range:
    if (
        not isinstance(parts, list | tuple)
        or len(parts) not in (1, 2, 3)
        or not all(_is_whole(part) for part in parts)
    ):
        raise ValueError(
            f"{where}: range takes one to three whole numbers, as in Python, got {parts!r}."
        )
    if len(parts) == 3 and parts[2] == 0:
        raise ValueError(f"{where}: the step of range must not be 0.")
    if max(map(abs, parts)) >= 2**53:
        raise ValueError(f"{where} must have whole numbers below 2^53, got {parts!r}.")
    _check_count(where, len(range(*parts)))
    return range(*parts)


def _check_count(where: str, count: int) -> None:
    if count > MOST_PLACES:
        raise ValueError(f"{where} must have at most {MOST_PLACES:,} values, got {count:,}.")


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def plain_value(where: str, value: Any, level: int = 0) -> Any:
    """Return a value as plain JSON. Refuse NaN, infinity and values that JSON cannot hold."""
    if level > 12:
        raise ValueError(f"{where} must have at most 12 lists or tables inside each other.")
    if isinstance(value, str | bool):
        return value
    if isinstance(value, np.ndarray | np.bool_):
        return plain_value(where, value.tolist(), level)
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        if not math.isfinite(value):
            raise ValueError(f"{where} must have finite values, got {value}.")
        return float(value)
    if isinstance(value, list | tuple):
        return [plain_value(where, entry, level + 1) for entry in value]
    if isinstance(value, Mapping):
        return {str(key): plain_value(where, entry, level + 1) for key, entry in value.items()}
    raise ValueError(
        f"{where} must have numbers, words, lists or tables as values, got {type(value).__name__}."
    )


def _same(one: Any, other: Any) -> bool:
    return canonical_text(one) == canonical_text(other)


def _read_exclusions(given: Any, keys: Sequence[str]) -> Iterator[dict[str, list[Any]]]:
    """Yield exclusions as {key: list of values}, after a check that their keys are in the grid."""
    if not isinstance(given, list | tuple):
        raise ValueError(
            f"exclude must be a list of tables of keys and values, got {short_value(given)}."
        )
    for exclusion in given:
        if not isinstance(exclusion, Mapping) or not exclusion:
            raise ValueError(f"exclude must hold tables of keys and values, got {exclusion!r}.")
        for key in exclusion:
            if key not in keys:
                raise unknown_name("key in exclude", key, keys)
        yield {
            key: [
                plain_value("exclude", one)
                for one in (value if isinstance(value, list | tuple | range) else [value])
            ]
            for key, value in exclusion.items()
        }
