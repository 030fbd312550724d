"""The equation from the user: a Dynamics, or Weights and words."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from attnlab.types import Dynamics, Weights


def take_equation(given: Weights | Dynamics, options: Mapping[str, Any], verb: str) -> Dynamics:
    """Return the given Dynamics, or the one of Weights and options {axis: word}."""
    if not isinstance(given, Dynamics):
        return Dynamics.of(given, **options)
    for name in find_differing(options):
        raise TypeError(
            f"{verb} takes its equation from the Dynamics. Leave {name}= out, or give"
            f" dynamics.replace({name}=...)."
        )
    return given


def find_differing(options: Mapping[str, Any]) -> list[str]:
    """Return the names of options {axis: word} that differ from the defaults of Dynamics.of."""
    usual = {name: one.default for name, one in inspect.signature(Dynamics.of).parameters.items()}
    for name in options:
        if name not in usual:
            raise TypeError(
                f"The equation has no option {name!r}. It has: {', '.join(list(usual)[1:])}."
            )
    return [
        name
        for name, value in options.items()
        if value is not None and value is not usual[name] and value != usual[name]
    ]
