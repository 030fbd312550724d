"""Everything that a Spec or the command line can name, with one line about each and the keys it
takes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import numpy as np

from attnlab.axes.members import AXES
from attnlab.axes.normalisations import NORMALISED_AXES
from attnlab.axes.registry import AxisRegistry, parameter_names
from attnlab.cli.words import (
    DYNAMICS_MEANINGS,
    FEEDFORWARD_MEANINGS,
    SOLVE_MEANINGS,
    START_MEANINGS,
    WORD_MEANINGS,
    WORDS,
)
from attnlab.examples import example_names, example_title
from attnlab.registry import Registry, outline
from attnlab.starts import start_laws
from attnlab.types import FeedForward
from attnlab.weights import weights_families

REQUIRED = inspect.Parameter.empty


@dataclass(frozen=True)
class Named:
    """One line about a thing. For a function also its keys {key: default}; for a key its default.

    REQUIRED marks a key that must be given. None marks one that may be left out and has no default.
    """

    about: str
    keys: Mapping[str, Any] | None = None
    default: Any = None


@dataclass(frozen=True)
class Listing:
    """One kind of names. `names()` is fast; `things()` returns what is known about each and may
    need imports.
    """

    names: Callable[[], Collection[str]]
    things: Callable[[], dict[str, Named]]


def named_things() -> dict[str, dict[str, Named]]:
    """Return {kind: {name: Named}} of all registries, words, keys and example Specs."""
    return {kind: listing.things() for kind, listing in listings().items()}


def listings() -> dict[str, Listing]:
    """Return {kind: Listing} of all registries, words, keys and example Specs."""
    return {
        "weights families": Listing(partial(outline, "attnlab.weights"), _families),
        "published matrices": Listing(
            published_names,
            lambda: {name: Named(spectrum_line(name)) for name in published_names()},
        ),
        "bases": _words("bases"),
        "start laws": Listing(lambda: list(_laws()), _laws),
        "keys of every law": Listing(
            lambda: START_MEANINGS,
            lambda: {key: Named(text) for key, text in START_MEANINGS.items()},
        ),
        "keys of [dynamics]": _keys(DYNAMICS_MEANINGS, option_defaults),
        "geometries": _members(AXES["geometry"]),
        "kernels": _members(AXES["kernel"]),
        "masks": _members(AXES["mask"]),
        "scores": _members(AXES["scores"]),
        "reads": _members(AXES["read"]),
        "writes": _members(AXES["write"]),
        "speeds": _members(AXES["speed"]),
        "drifts": _members(AXES["feedforward"]),
        "noises": _members(AXES["noise"]),
        "keys of [dynamics.feedforward]": _keys(FEEDFORWARD_MEANINGS, _forward_defaults),
        "activations": _words("activations"),
        "keys of [solve]": _keys(SOLVE_MEANINGS, option_defaults),
        "steppers": _words("steppers"),
        "frames": _words("frames"),
        "observables": outlined("attnlab.analysis"),
        "kinds of figure": outlined("attnlab.render.kinds"),
        "example Specs": Listing(
            example_names, lambda: {name: Named(example_title(name)) for name in example_names()}
        ),
    }


def outlined(package: str) -> Listing:
    """Return the names that the files of a package register, with the first sentence of their
    docstrings.
    """
    return Listing(
        partial(outline, package),
        lambda: {name: Named(first_sentence(text)) for name, text in outline(package).items()},
    )


def parameters(function: Callable[..., Any]) -> dict[str, Any]:
    """Return {key: default} of the function behind a name, as a Spec fills it: there rng is 0 by
    default.
    """
    found = {
        name: parameter.default
        for name, parameter in inspect.signature(function).parameters.items()
    }
    return {name: 0 if name == "rng" else default for name, default in found.items()}


def option_defaults() -> dict[str, Any]:
    """Return {key: default} of the keys of [dynamics] and [solve], which are the options of
    `simulate`.
    """
    from attnlab.engine import simulate

    found = {
        name: parameter.default
        for name, parameter in inspect.signature(simulate).parameters.items()
    }
    return found | {
        name: AXES[name].default for name in NORMALISED_AXES
    }  # None unless a normalisation chooses


def published_names() -> tuple[str, ...]:
    """Return the values that the key `matrix` of the family published may have."""
    from attnlab.weights.published import MATRICES

    return (*MATRICES, "polytope_times_line")


def spectrum_line(matrix: str) -> str:
    """Describe a published matrix: its dimension and its eigenvalues."""
    V = weights_families["published"](matrix=matrix).full_V[0]
    values = sorted(np.linalg.eigvals(V), key=lambda value: (-value.real, -value.imag))
    upper = [value for value in values if value.imag >= 0]  # one of each conjugate pair
    words = [
        f"{value.real:.3g} +- {value.imag:.3g} i" if value.imag else f"{value.real:.3g}"
        for value in upper
    ]
    return (
        f"d = {len(V)}{' unless d is given' if matrix == 'polytope_times_line' else ''},"
        f" eigenvalues {', '.join(words)}."
    )


def first_sentence(text: str) -> str:
    """Return the first sentence of a docstring on one line: up to a full stop at a line end, or an
    empty line.
    """
    lines: list[str] = []
    for line in text.splitlines():
        lines.append(line.strip())
        if not line.strip() or line.rstrip().endswith("."):
            break
    return " ".join(lines).strip()


def first_sentence_of(function: Callable[..., Any]) -> str:
    """Return the first sentence of a function's docstring."""
    return first_sentence(inspect.getdoc(function) or "")


def in_words(keys: Mapping[str, Any]) -> str:
    """Format the parameters on one line: n, d, low = -1.0, [k]. Brackets: it may be left out and
    has no default.
    """
    words = (
        (
            name
            if default is REQUIRED
            else f"[{name}]"
            if default is None
            else f"{name} = {in_toml(default)}"
        )
        for name, default in keys.items()
    )
    return ", ".join(words)


def in_toml(value: Any) -> str:
    """Format a default as a Spec writes it; a dash if there is none."""
    if value is None or value is REQUIRED:
        return "-"
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)


def _families() -> dict[str, Named]:
    return {
        name: Named(first_sentence_of(thing), parameters(thing))
        for name, thing in _items(weights_families)
    }


def _laws() -> dict[str, Named]:
    return {
        name: Named(first_sentence_of(thing), parameters(thing))
        for name, thing in _items(start_laws)
    }


def _items(registry: Registry) -> Iterator[tuple[str, Any]]:
    return ((name, registry[name]) for name in registry)


def _words(kind: str) -> Listing:
    return Listing(
        lambda: WORDS[kind],
        lambda: {word: Named(WORD_MEANINGS[kind].get(word, "")) for word in WORDS[kind]},
    )


def _members(registry: AxisRegistry) -> Listing:
    def things() -> dict[str, Named]:
        return {
            name: Named(
                first_sentence_of(member), parameters(member) if parameter_names(member) else None
            )
            for name, member in _items(registry)
        }

    return Listing(lambda: list(registry), things)


def _keys(meanings: Mapping[str, str], defaults: Callable[[], Mapping[str, Any]]) -> Listing:
    def things() -> dict[str, Named]:
        known = defaults()
        return {key: Named(meaning, default=known[key]) for key, meaning in meanings.items()}

    return Listing(lambda: meanings, things)


def _forward_defaults() -> dict[str, Any]:
    return {field.name: field.default for field in fields(FeedForward)}
