"""The interface of a kind of result for storage: how it becomes arrays and words, and is
restored.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from attnlab.displayed import say_instead
from attnlab.netcdf import Variable, Variables
from attnlab.registry import Registry

Arrays = Mapping[str, np.ndarray]
Words = Mapping[str, str]

kinds: Registry[Kind] = Registry("kind of result", package="attnlab.store.kinds")


@dataclass(frozen=True, eq=False)
class Packed:
    """A result as arrays and words, from which it can be restored. `common`: names that the members
    of a list may share.
    """

    variables: Variables
    words: Words
    common: frozenset[str] = frozenset()


@dataclass(frozen=True, eq=False)
class Labelled:
    """A result as arrays for people: every axis has a name, every array says what it is. `words`
    are about all of it.
    """

    variables: Variables
    words: Mapping[str, Any] = field(default_factory=dict)
    coordinates: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Kind:
    """A kind of result that can be stored.

    title     its name in messages, such as "a Limit"
    is_one    thing -> bool: whether it is a result of this kind
    pack      thing -> Packed: everything in it, bit for bit
    unpack    (arrays, words) -> thing: the inverse of pack. It must refuse invalid values, because
              files are untrusted
    label     thing -> Labelled: for to_xarray, .npz and .mat
    samples   () -> {name: thing}: examples for the shared tests; one of each unusual form
    words     the names of the words that pack returns
    axis      the axis along which a list of such results lies
    tabulate  thing -> {column: array}: the table of a .csv file, if it has one
    record    thing -> plain JSON values, if it has a .json file
    views     thing -> Labelled: further arrays in the file for other programs; load does not need
              them
    """

    title: str
    is_one: Callable[[Any], bool]
    pack: Callable[[Any], Packed]
    unpack: Callable[[Arrays, Words], Any]
    label: Callable[[Any], Labelled]
    samples: Callable[[], Mapping[str, Any]]
    words: tuple[str, ...] = ("content",)
    axis: str = "member"
    tabulate: Callable[[Any], Mapping[str, np.ndarray]] | None = None
    record: Callable[[Any], Any] | None = None
    views: Callable[[Any], Labelled] | None = None


def name_of_kind(thing: Any) -> str | None:
    """Return the name of the kind of result of a thing; None if it cannot be stored."""
    return next((name for name in kinds if kinds[name].is_one(thing)), None)


def kind_of(thing: Any, verb: str = "save") -> str:
    """Return the name of the kind of result of a thing. Raise a TypeError that says what to do
    instead of the verb, or lists what can be stored.
    """
    name = name_of_kind(thing)
    if name is None:
        instead = say_instead(thing, verb)
        if instead:
            cannot = "cannot be stored" if verb == "save" else "has no labelled arrays"
            raise TypeError(f"A {type(thing).__name__} {cannot}. {instead}")
        known = ", ".join(sorted(kinds[name].title for name in kinds))
        raise TypeError(f"A {type(thing).__name__} cannot be stored. These can: {known}.")
    return name


def is_instance(thing: Any, module: str, name: str) -> bool:
    """Whether a thing is of a class, without importing its module: if the module is not loaded, no
    such thing exists.
    """
    home = sys.modules.get(module)
    return home is not None and isinstance(thing, getattr(home, name))


def number(value: float, **about: str) -> Variable:
    """A number as an array without axes."""
    return Variable((), np.asarray(value), about)


def text(value: str, **about: str) -> Variable:
    """A text as an array without axes."""
    return Variable((), np.asarray(value, dtype=object), about)


def add_prefix(packed: Packed, prefix: str) -> Variables:
    """Return the variables of a part of a result, with `prefix` before names and axes."""
    return {
        f"{prefix}{name}": Variable(tuple(f"{prefix}{axis}" for axis in axes), values, about)
        for name, (axes, values, about) in packed.variables.items()
    }


def without_prefix(arrays: Arrays, prefix: str) -> dict[str, np.ndarray]:
    """Return the arrays of such a part."""
    return {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }
