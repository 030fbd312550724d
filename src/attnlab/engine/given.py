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
    defaults = {name: one.default for name, one in inspect.signature(Dynamics.of).parameters.items()}
    for name, value in options.items():
        if name not in defaults:
            raise TypeError(f"{verb} got an unexpected option {name!r}.")
        if value is not None and value is not defaults[name] and value != defaults[name]:
            raise TypeError(f"{verb} takes its equation from the Dynamics: leave {name}= out, or give "
                            f"dynamics.replace({name}=...).")
    return given
