"""The equation that a user gives: a Dynamics, or Weights and words."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from attnlab.types import Dynamics, Weights


def take_equation(given: Weights | Dynamics, options: Mapping[str, Any], verb: str) -> Dynamics:
    """The Dynamics that was given, or the one of Weights and options {axis: word}."""
    if not isinstance(given, Dynamics):
        return Dynamics.of(given, **options)
    for name in differing(options):
        raise TypeError(f"{verb} takes its equation from the Dynamics: leave {name}= out, or give dynamics.replace({name}=...).")
    return given


def differing(options: Mapping[str, Any]) -> list[str]:
    """The names of options {axis: word} that are not as Dynamics.of has them by itself."""
    usual = {name: one.default for name, one in inspect.signature(Dynamics.of).parameters.items()}
    for name in options:
        if name not in usual:
            raise TypeError(f"The equation has no option {name!r}. It has: {', '.join(list(usual)[1:])}.")
    return [name for name, value in options.items() if value is not None and value is not usual[name] and value != usual[name]]
