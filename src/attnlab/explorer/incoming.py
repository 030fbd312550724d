"""Check the messages of the front end of a notebook before they change anything: they are untrusted
input.

    read_spec(table)          a Spec that the viewer could have made: bounded, resolved, and one
                              that a page integrates
    read_time("inf")          inf
    read_selected([3], n)     [3]

An invalid value raises a ValueError with a sentence for the reader.
"""

from __future__ import annotations

import math
from typing import Any

from attnlab.engine.options import solve_options, start_tokens
from attnlab.explorer.payload import (
    LIVE_FAMILIES,
    LIVE_LAWS,
    MOST_LIVE_DIMENSIONS,
    MOST_LIVE_TOKENS,
    live_spec,
)
from attnlab.run import resolve
from attnlab.starts import start_laws
from attnlab.types import Spec

MOST_VALUES = 60_000
"""The most values in a Spec: the tokens of a given start, moved tokens, the matrices of some
heads.
"""

MOST = {
    "n": MOST_LIVE_TOKENS,
    "clusters": MOST_LIVE_TOKENS,
    "d": MOST_LIVE_DIMENSIONS,
    "heads": 64,
    "saves": 100_000,
}
"""Bounds of the numbers that decide how much is drawn."""

LONGEST_WORD = 100
LARGEST_NUMBER = 1e12
LARGEST_SEED = 2**64


def read_spec(table: Any) -> Spec:
    """Return the Spec in a JSON table from a front end, or raise a ValueError."""
    if not isinstance(table, dict):
        raise ValueError(f"A Spec must be a table, got {type(table).__name__}.")
    _count_values(table)
    try:
        spec = Spec.from_dict(table)
    except TypeError as problem:
        raise ValueError(str(problem)) from None
    _check_bounds(spec)
    check_live(spec)
    return spec


def check_live(spec: Spec) -> None:
    """Raise a ValueError if run_spec would refuse a Spec, or if the viewer cannot integrate it
    unchanged.
    """
    if spec.weights.get("family") not in LIVE_FAMILIES:
        raise ValueError(
            f"The viewer draws the families {', '.join(LIVE_FAMILIES)}, got"
            f" {spec.weights.get('family')!r}. Make al.Explorer(spec), which writes other weights"
            " out as matrices."
        )
    law = spec.start.get("law")
    if (
        law in list(start_laws) and law not in LIVE_LAWS
    ):  # before it is resolved: the law text would open a checkpoint
        raise ValueError(
            f"The viewer draws the start laws {', '.join(LIVE_LAWS)}, got {law!r}. "
            "Make al.Explorer(spec), which writes other tokens out."
        )
    if "batch" in spec.start:
        raise ValueError(
            "The viewer shows one start, and this Spec has a batch. Make al.Explorer(spec,"
            " member=0)."
        )
    try:
        resolved = resolve(spec)
        start_tokens(resolved.x0, resolved.dynamics)
        solve_options(
            resolved.dynamics,
            **{key: value for key, value in spec.solve.items() if key != "measure_error"},
        )
    except (TypeError, LookupError) as problem:
        raise ValueError(str(problem)) from None
    _, why_not = live_spec(spec, resolved.dynamics, resolved.x0)
    if why_not:
        raise ValueError(
            f"The viewer cannot integrate this Spec: {why_not}. Make al.Explorer(spec), which shows"
            " a recording."
        )


def read_time(value: Any) -> float:
    """Return a time from 0 to infinity, which JSON writes as "inf"."""
    if value == "inf":
        return math.inf
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not 0.0 <= value <= LARGEST_NUMBER
    ):
        raise ValueError(
            f'A time must be a number from 0 to {LARGEST_NUMBER:g}, or "inf"; got'
            f" {str(value)[:40]!r}."
        )
    return float(value)


def read_selected(value: Any, n: int) -> list[int]:
    """Return the chosen tokens of n, each once."""
    if not isinstance(value, list) or len(value) > n:
        raise ValueError(f"The chosen tokens must be a list of at most {n} numbers.")
    for token in value:
        if isinstance(token, bool) or not isinstance(token, int) or not 0 <= token < n:
            raise ValueError(
                f"A chosen token must be a whole number from 0 to {n - 1}, got {str(token)[:40]!r}."
            )
    return list(dict.fromkeys(value))


def _count_values(value: Any, room: int = MOST_VALUES, level: int = 0) -> int:
    """Return how many values are left of `room`. Refuse words and numbers of an unreasonable
    size.
    """
    if level > 8:
        raise ValueError("A Spec must not have more than 8 tables or lists inside each other.")
    if isinstance(value, dict | list):
        for key, entry in value.items() if isinstance(value, dict) else enumerate(value):
            if isinstance(key, str) and len(key) > LONGEST_WORD:
                raise ValueError(f"A key of a Spec must have at most {LONGEST_WORD} letters.")
            room = _count_values(entry, room - 1, level + 1)
            if room < 0:
                raise ValueError(f"A Spec from the viewer must have at most {MOST_VALUES} values.")
    elif isinstance(value, str) and len(value) > LONGEST_WORD:
        raise ValueError(f"A word of a Spec must have at most {LONGEST_WORD} letters.")
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"A number of a Spec must be finite, got {value}.")
    return room


def _check_bounds(spec: Spec) -> None:
    """Refuse sizes that would take long to draw, before drawing."""
    for section in (spec.weights, spec.start, spec.solve):
        for name in section.keys() & MOST:
            value = section[name]
            if isinstance(value, int | float) and value > MOST[name]:
                raise ValueError(
                    f"{name} must be at most {MOST[name]} in the viewer, got {float(value):g}."
                )
    for section in (spec.weights, spec.start):
        seed = section.get("rng", 0)
        if isinstance(seed, int) and seed >= LARGEST_SEED:
            raise ValueError(
                f"rng must be less than 2^64, got a number of {len(str(seed))} digits."
            )
    for section in (spec.weights, spec.start, spec.dynamics, spec.solve):
        _check_numbers({key: value for key, value in section.items() if key != "rng"})


def _check_numbers(value: Any) -> None:
    if isinstance(value, dict | list):
        for entry in value.values() if isinstance(value, dict) else value:
            _check_numbers(entry)
    elif isinstance(value, int | float) and abs(value) > LARGEST_NUMBER:
        raise ValueError(
            f"A number of a Spec must be at most {LARGEST_NUMBER:g} in the viewer, got"
            f" {float(value):g}."
        )
