"""What a kind of result must say so that it can be stored: how it becomes arrays and words, and comes back."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from attnlab.netcdf import Variable, Variables
from attnlab.registry import Registry

Arrays = Mapping[str, np.ndarray]
Words = Mapping[str, str]

kinds: Registry[Kind] = Registry("kind of result", package="attnlab.store.kinds")


@dataclass(frozen=True, eq=False)
class Packed:
    """A result as arrays and words, from which it is made again. `common`: names that the members of a list may share."""

    variables: Variables
    words: Words
    common: frozenset[str] = frozenset()


@dataclass(frozen=True, eq=False)
class Labelled:
    """A result as arrays for people: every axis has a name, every array says what it is. `words` are about all of it."""

    variables: Variables
    words: Mapping[str, Any] = field(default_factory=dict)
    coordinates: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Kind:
    """A kind of result that can be stored.

    title     what messages call it, such as "a Limit"
    is_one    thing -> bool: whether it is a result of this kind
    pack      thing -> Packed: everything in it, bit for bit
    unpack    (arrays, words) -> thing: what pack was given. It must refuse what no result has; arrays may come from strangers
    label     thing -> Labelled: for to_xarray, .npz and .mat
    samples   () -> {name: thing}: what the shared tests store; one of each unusual form
    words     the names of the words that pack returns
    axis      the axis along which a list of such results lies
    tabulate  thing -> {column: array}: the table of a .csv file, where there is one
    record    thing -> what JSON holds, where there is a .json file
    views     thing -> Labelled: arrays that are put into the file for other programs, and that load does not need
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
    """The name of the kind of result that a thing is; None for what cannot be stored."""
    return next((name for name in kinds if kinds[name].is_one(thing)), None)


def kind_of(thing: Any) -> str:
    """The name of the kind of result that a thing is, or a TypeError that says what can be stored."""
    name = name_of_kind(thing)
    if name is None:
        known = ", ".join(sorted(kinds[name].title for name in kinds))
        raise TypeError(f"A {type(thing).__name__} cannot be stored. What can: {known}.")
    return name


def is_instance(thing: Any, module: str, name: str) -> bool:
    """Whether a thing is of a class whose module need not be imported: a thing of it exists only where that was done."""
    home = sys.modules.get(module)
    return home is not None and isinstance(thing, getattr(home, name))


def number(value: float, **about: str) -> Variable:
    """A number as an array without axes."""
    return Variable((), np.asarray(value), about)


def text(value: str, **about: str) -> Variable:
    """A text as an array without axes."""
    return Variable((), np.asarray(value, dtype=object), about)


def prefixed(packed: Packed, prefix: str) -> Variables:
    """The variables of a part of a result, under names and axes that begin with `prefix`."""
    return {f"{prefix}{name}": Variable(tuple(f"{prefix}{axis}" for axis in axes), values, about)
            for name, (axes, values, about) in packed.variables.items()}


def without_prefix(arrays: Arrays, prefix: str) -> dict[str, np.ndarray]:
    """The arrays of such a part."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
