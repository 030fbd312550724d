"""The display of records: short texts for terminals, and the hook by which a notebook gets HTML
from `notebook/`.

A record derives from Displayed and sets `__repr__ = short_repr`, unless it has a better one.
"""

from __future__ import annotations

import dataclasses
import enum
import importlib
import os
from collections.abc import Mapping
from typing import Any, ClassVar

from attnlab.controls import escape_controls

LONGEST = 118
"""The most characters of the text of a record: one line of a wide terminal."""

LONGEST_WORDS, LONGEST_RECORD = 50, 80
"""The most characters of a word, and of a record, inside the text of another one."""

MOST_NUMBERS = 4
"""The most numbers of a list that are written out."""

VERBS = ("plot", "movie", "save", "to_xarray")
"""The verbs that take results of any kind. Not every record has a meaning for each of them."""


class Displayed:
    """A record that a notebook shows as a table. `notebook/` has the function, under the name of
    the class.
    """

    __slots__ = ()

    instead: ClassVar[Mapping[str, str]] = {}
    """What to do where a verb of attnlab has no meaning for the record: {"plot": a sentence}."""

    def _repr_html_(self) -> str:
        # imported by name: the records must not import the code that draws them
        html: str = importlib.import_module("attnlab.notebook").show(self)
        return html


def say_instead(thing: Any, verb: str) -> str:
    """Return a sentence that says what to do instead of a verb with a thing; "" if it has none."""
    return str(thing.instead.get(verb, "")) if isinstance(thing, Displayed) else ""


def shorten(words: str, longest: int = LONGEST_WORDS) -> str:
    """Return the words on one line, shortened with dots if too long. Control characters become
    escapes.
    """
    line = escape_controls(" ".join(words.split()))
    return line if len(line) <= longest else f"{line[: longest - 4].rstrip()} ..."


def count_words(count: int, what: str) -> str:
    """Return a number with its noun: '1 limit', '2,000 limits'."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def short_repr(record: Any) -> str:
    """Return Class(field=value, ...) of a dataclass on one line: arrays by their shapes, without
    default values.
    """
    parts = [f"{name}={short_value(value)}" for name, value in shown_fields(record)]
    return shorten(f"{type(record).__name__}({', '.join(parts)})", LONGEST)


def shown_fields(record: Any) -> list[tuple[str, Any]]:
    """Return (name, value) of the fields of a dataclass that differ from their defaults."""
    found = [
        (field, getattr(record, field.name)) for field in dataclasses.fields(record) if field.repr
    ]
    return [(field.name, value) for field, value in found if not _is_default(field, value)]


def short_value(value: Any) -> str:
    """Format the value of a field in a few characters: arrays and lists by their sizes, functions
    by their names.
    """
    if isinstance(value, str | os.PathLike):
        return repr(shorten(os.fspath(value)))
    if value is None or isinstance(value, bool | int | float | complex | enum.Enum):
        return repr(value)
    if hasattr(value, "shape"):  # an array, a table
        word = "array" if hasattr(value, "dtype") else type(value).__name__
        return (
            repr(value.item())
            if value.shape == () and word == "array"
            else f"{word} {tuple(value.shape)}"
        )
    if isinstance(value, Mapping):
        return f"{type(value).__name__} of {len(value)}"
    if isinstance(value, list | tuple | set | frozenset):
        if len(value) <= MOST_NUMBERS and all(
            isinstance(one, bool | int | float | complex) for one in value
        ):
            return repr(value)
        return f"{type(value).__name__} of {len(value)}"
    if isinstance(value, Displayed):
        return shorten(repr(value), LONGEST_RECORD)
    if isinstance(getattr(type(value), "name", None), str):  # a member of an axis
        return shorten(repr(value))
    return getattr(value, "__name__", None) or f"a {type(value).__name__}"


def _is_default(field: dataclasses.Field[Any], value: Any) -> bool:
    if field.default is not dataclasses.MISSING:
        is_word = isinstance(value, bool | int | float | str) or isinstance(
            field.default, str
        )  # a member equals its name
        return value is field.default or (is_word and bool(value == field.default))
    if field.default_factory is not dataclasses.MISSING:
        return hasattr(value, "__len__") and len(value) == 0
    return False
