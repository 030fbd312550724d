"""The numbers that a sweep keeps of each run: the table [numbers], and the evaluation of each
number.

spread = { observable = "diameter" }                         its value at the last saved time
early  = { observable = "diameter", at = 1.5 }               at a time; it is added to the saved times
shares = { observable = "clustered_pairs", at = [1, 2] }     two numbers, "shares@1.0" and "shares@2.0"; also linspace
widest = { observable = "diameter", at = "max" }             "min", "max", "mean" over the saved times of the Spec
merged = { observable = "diameter", at = { below = 1e-3 } }  the first time below 1e-3; empty if there is none
limits = { limit = "count" }                                 a field of the certified limit
rule   = { verdict = "polytope" }                            the name of the outcome of a theorem
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from attnlab.analysis import observables
from attnlab.displayed import short_value
from attnlab.registry import unknown_name
from attnlab.sweep.grid import SPACINGS, read_axis
from attnlab.theory import check, theorems
from attnlab.types import Limit, Trajectory
from attnlab.verdicts import Verdict

KINDS = ("observable", "limit", "verdict")
PLACES = ("last", "min", "max", "mean")
PASSAGES = ("below", "above")

AT = "@"
"""The mark between the name and the time of a number at several times."""

SAME_TIME = 1e-9
"""A saved time this close (relatively) to a requested time is that time."""

TAKEN = ("status", "error", "seconds", "seed", "digest", "versions", "measured")
"""Columns of the results that are not numbers."""

SIMPLE = ("int", "float", "str", "bool", "int | None", "float | None", "str | None")
"""The types, as they are written in the class, of the fields of a Limit that fit into one cell of a
table.
"""

FOREVER = 1e9
"""Seconds for a limit and a verdict: so many that only their work ends them, and every machine gets
the same answer.
"""


@cache
def limit_fields() -> tuple[str, ...]:
    """Return the fields of a Limit that are one number or one word."""
    found = [name for name, kind in inspect.get_annotations(Limit).items() if kind in SIMPLE]
    for name, thing in vars(Limit).items():
        if (
            isinstance(thing, property)
            and thing.fget is not None
            and inspect.get_annotations(thing.fget).get("return") in SIMPLE
        ):
            found.append(name)
    return ("grade", *found)


def read_numbers(table: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the checked table [numbers] with all defaults. `check_names` looks up its names."""
    return {
        expanded: _read_number(name, one)
        for name, given in table.items()
        for expanded, one in _expand_times(name, given)
    }


def _expand_times(name: str, given: Any) -> list[tuple[str, Any]]:
    """Return [(name, number)], with one entry per time: share at [0.5, 1] becomes share@0.5 and
    share@1.0.
    """
    if isinstance(name, str) and AT in name:
        raise ValueError(
            f"The name of a number must not have {AT!r} in it, which stands before its times; got"
            f" {name!r}."
        )
    at = given.get("at") if isinstance(given, Mapping) else None
    if not isinstance(at, list | tuple) and not (
        isinstance(at, Mapping) and set(at) & set(SPACINGS)
    ):
        return [(name, given)]
    times = read_axis(f"at of {name}", at)
    if not all(map(_is_number, times)):
        raise ValueError(f"The number {name!r}: at must be a list of times, got {short_value(at)}.")
    return [(f"{name}{AT}{float(time)!r}", {**given, "at": float(time)}) for time in times]


def _read_number(name: str, given: Any) -> dict[str, Any]:
    where = f"The number {name!r}"
    if not isinstance(name, str) or not name.strip():
        raise ValueError(f"A number must have a name, got {name!r}.")
    if name in TAKEN:
        raise ValueError(
            f"{where} has the name of a column that every sweep has. Choose another name."
        )
    if not isinstance(given, Mapping):
        raise ValueError(
            f'{where} must be a table such as {{ observable = "diameter" }}, got'
            f" {short_value(given)}."
        )
    for key in given:
        if key not in (*KINDS, "at"):
            raise unknown_name(f"key of {where[0].lower()}{where[1:]}", key, (*KINDS, "at"))
    kinds = [kind for kind in KINDS if kind in given]
    if len(kinds) != 1:
        raise ValueError(
            f"{where} must have one of {', '.join(KINDS)}, got {' and '.join(kinds) or 'none'}."
        )
    (kind,) = kinds
    if not isinstance(given[kind], str):
        raise ValueError(f"{where}: {kind} must be a name, got {given[kind]!r}.")
    if kind != "observable":
        if "at" in given:
            raise ValueError(f"{where}: at is only for an observable. Leave it out.")
        return {kind: given[kind]}
    return {kind: given[kind], "at": _read_place(where, given.get("at", "last"))}


def _read_place(where: str, at: Any) -> Any:
    if isinstance(at, str):
        if at not in PLACES:
            raise unknown_name(f"place of {where[0].lower()}{where[1:]}", at, PLACES)
        return at
    if _is_number(at):
        if at < 0:
            raise ValueError(f"{where}: at must be a time of 0 or more, got {at!r}.")
        return float(at)
    if isinstance(at, Mapping) and len(at) == 1:
        ((side, bound),) = at.items()
        if side not in PASSAGES:
            raise unknown_name(f"passage of {where[0].lower()}{where[1:]}", side, PASSAGES)
        if _is_number(bound):
            return {side: float(bound)}
    raise ValueError(
        f'{where}: at must be "last", "min", "max", "mean", a time, {{ below = y }} or {{ above = y'
        f" }}; got {at!r}."
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def check_names(numbers: Mapping[str, Mapping[str, Any]]) -> None:
    """Refuse an unknown observable, field of a limit, or theorem. The error has the nearest
    name.
    """
    for number in numbers.values():
        if "observable" in number:
            observables[number["observable"]]
        elif "limit" in number:
            if number["limit"] not in limit_fields():
                raise unknown_name("field of a limit", number["limit"], limit_fields())
        else:
            theorems[number["verdict"]]


def check_shape(name: str, observable: str, run: Trajectory) -> None:
    """Refuse an observable with more than one value per time. Errors on a run of one time are found
    later.
    """
    try:
        with np.errstate(all="ignore"):
            values = np.asarray(observables[observable](run))
    except Exception:
        return
    if values.shape[:1] != (len(run.times),) or values.size != len(run.times):
        raise ValueError(_many(name, observable, values.shape))


def needs_run(numbers: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether a run must be simulated: a limit needs none."""
    return any("limit" not in number for number in numbers.values())


def added_times(numbers: Mapping[str, Mapping[str, Any]]) -> list[float]:
    """Return the times of the requested observables, ascending."""
    return sorted(
        {number["at"] for number in numbers.values() if isinstance(number.get("at"), float)}
    )


def evaluate(
    numbers: Mapping[str, Mapping[str, Any]],
    run: Trajectory | None,
    limit: Callable[[], Limit],
    own: np.ndarray | None = None,
) -> dict[str, Any]:
    """Return the numbers of one run (no batch). limit: a function that computes its Limit, called
    at most once.

    own: which saved times (T,) are in the Spec itself; None: all. Only these count for "min",
    "max", "mean" and passages, so that no number depends on the other numbers.
    """
    found: dict[str, Any] = {}
    limits: list[Limit] = []
    observed: dict[str, Callable[[int], Any]] = {}
    for name, number in numbers.items():
        if "observable" in number:
            assert run is not None
            found[name] = _observe(
                name, number, run, np.ones(len(run.times), bool) if own is None else own, observed
            )
        elif "limit" in number:
            limits = limits or [limit()]
            found[name] = plain_number(name, getattr(limits[0], number["limit"]))
        else:
            assert run is not None
            verdict = check(run, names=[number["verdict"]], budget=FOREVER)[0]
            assert isinstance(verdict, Verdict)  # of one run
            found[name] = verdict.outcome.name
    return found


def _observe(
    name: str,
    number: Mapping[str, Any],
    run: Trajectory,
    own: np.ndarray,
    observed: dict[str, Callable[[int], Any]],
) -> Any:
    """Return one number of one observable. If it can be computed time by time, only the needed
    times are computed.

    observed: {observable: function of the number of a saved time}, a cache for several times of one
    observable.
    """
    function, at = observables[number["observable"]], number["at"]
    if at == "last" or isinstance(at, float):
        place = int(np.flatnonzero(own)[-1]) if at == "last" else _place_of(name, at, run.times)
        with np.errstate(all="ignore"):
            if number["observable"] not in observed:
                observed[number["observable"]] = (
                    function.prepare(run)
                    if hasattr(function, "prepare")
                    else np.asarray(function(run)).__getitem__
                )
            return plain_number(name, observed[number["observable"]](place))
    values = np.asarray(function(run))
    if values.shape[0] != len(run.times) or values.size != len(run.times):
        raise ValueError(_many(name, number["observable"], values.shape))
    values, times = np.reshape(values, -1)[own].astype(float), run.times[own]
    if at == "min" or at == "max":
        return plain_number(name, values.min() if at == "min" else values.max())
    if at == "mean":
        return plain_number(
            name,
            np.trapezoid(values, times) / (times[-1] - times[0]) if len(times) > 1 else values[0],
        )
    ((side, bound),) = at.items()
    return first_passage(times, values, bound, side == "below")


def first_passage(
    times: np.ndarray, values: np.ndarray, bound: float, is_below: bool
) -> float | None:
    """Return the first time at which values (T,) are below (above) the bound, interpolated
    linearly; None if never.
    """
    gaps = values - bound if is_below else bound - values
    beyond = np.flatnonzero(gaps < 0)
    if not len(beyond):
        return None
    at = int(beyond[0])
    if at == 0:
        return float(times[0])
    share = gaps[at - 1] / (gaps[at - 1] - gaps[at])
    return float(times[at - 1] + share * (times[at] - times[at - 1]))


def _place_of(name: str, at: float, times: np.ndarray) -> int:
    place = int(np.abs(times - at).argmin())
    if abs(times[place] - at) > SAME_TIME * max(abs(at), 1.0):
        raise ValueError(
            f"The number {name!r} needs t = {at:g}, which the run does not have: it goes from"
            f" {times[0]:g} to {times[-1]:g}, and layers and steps with noise have fixed times."
        )
    return place


def plain_number(name: str, value: Any) -> Any:
    """Return one value as a float, a whole number, a word or None."""
    if isinstance(value, np.ndarray):
        if value.size != 1:
            raise ValueError(
                f"The number {name!r} must be one value, but it has the shape {value.shape}."
            )
        value = value.reshape(-1)[0]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, float) and math.isnan(value):
        return None
    if value is None or isinstance(value, int | float):
        return value
    if isinstance(value, complex):
        raise ValueError(f"The number {name!r} must be real, got {value}.")
    return str(value)


def _many(name: str, observable: str, shape: Sequence[int]) -> str:
    each = "x".join(map(str, shape[1:])) or "no"
    return (
        f"The number {name!r} must be one value at each time, but the observable {observable!r} has"
        f" {each} values (its shape is {tuple(shape)}, times first). Register one that gives a"
        " single value."
    )
