"""Synthetic weights by name: one file per family, each a function family(d, ..., *, rng=None) ->
Weights.

    w = weights_families["paranormal"](d=3, multiplicity=2, rng=0)

Parameters are numbers, words and lists, so that every draw can be written as the [weights] table of
a Spec.

To add one
----------
Write `weights/<name>.py` with one function whose docstring opens with the definition, decorated
with

    @family("<name>", promises=("is_good_triple",), example={"gap": 0.2})

`promises` are names of predicates of `attnlab.analysis.spectra` (weights, tolerance -> bool) that
every draw satisfies; `example` has the parameters without a default, except d. The shared test in
`tests/weights/test_weights.py` draws the family (at several d if d has no default), tests the
predicates, and checks shapes, source, Spec and the use of rng. No other file changes.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from attnlab.capacity import check_memory
from attnlab.registry import Registry
from attnlab.starts import whole_number
from attnlab.types import Weights

weights_families: Registry[Callable[..., Weights]] = Registry(
    "weights family", package="attnlab.weights"
)

GIVEN = "given"
"""The source of Weights without a stated source."""

MATRICES_AT_ONCE = 6
"""The most matrices (d, d) that a family holds at once: Q, K, V, a basis, its inverse, and a
product.
"""


def family(
    name: str, *, promises: Sequence[str] = (), example: Mapping[str, Any] = MappingProxyType({})
) -> Callable[[Callable[..., Weights]], Callable[..., Weights]]:
    """Return a decorator that registers a family under `name` with its promises, and writes its
    parameters into `source`.
    """

    def file_it(draw: Callable[..., Weights]) -> Callable[..., Weights]:
        signature = inspect.signature(draw)

        @functools.wraps(draw)
        def drawn(*arguments: Any, **parameters: Any) -> Weights:
            bound = signature.bind(*arguments, **parameters)
            words = ", ".join(
                f"{key}={_shorten(value)}"
                for key, value in bound.arguments.items()
                if value is not None
            )
            weights = draw(*arguments, **parameters)
            is_named = weights.source != GIVEN  # trained heads name their source
            return weights if is_named else dataclasses.replace(weights, source=f"{name}({words})")

        drawn.promises, drawn.example = tuple(promises), example  # type: ignore[attr-defined]
        return weights_families.register(name)(drawn)

    return file_it


def square_dimension(d: Any) -> int:
    """Return d as a whole number of at least 1. Raise ValueError otherwise, or if a few matrices
    (d, d) do not fit in memory.
    """
    d = whole_number("d", d)
    check_memory(f"Matrices of dimension d = {d}", MATRICES_AT_ONCE * d * d, "Choose a smaller d.")
    return d


def _shorten(value: Any) -> str:
    """Describe `value` in a few words: a matrix by its shape, a Generator by its class."""
    if isinstance(value, np.random.Generator):
        return "Generator"
    if isinstance(value, list | tuple | np.ndarray):
        try:
            array = np.asarray(value)
        except ValueError:  # eigenvalues may mix numbers and pairs
            return str(value)
        if array.size > 8:
            return f"array of shape {array.shape}"
        return str(array.tolist())
    return repr(value)
