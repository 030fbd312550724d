"""Join several sets of variables: arrays of equal shape in all members get a new axis, the others
get numbers.

points (token, direction) of 16 members     points (member, token, direction)
event_time (event) of different lengths     event_time (event), one after the other, and event_member (event)
z (time, token, coordinate) of some         z__0 (time__0, token__0, coordinate__0), ...
Q (head, key, coordinate), equal for all    Q (head, key, coordinate), where the name is one that members may share
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from attnlab.netcdf import Variable, Variables
from attnlab.store.packing import Arrays

SHARED, ALONG, JOINED, OWN = "shared", "along", "joined", "own"


def bundle(
    members: Sequence[Variables], axis: str, common: frozenset[str] = frozenset()
) -> tuple[dict[str, Variable], Any]:
    """Return (variables, layout) of several sets of variables; `split` takes them apart again.
    common: names to store once.
    """
    names = list(dict.fromkeys(name for member in members for name in member))
    found: dict[str, Variable] = {}
    layout: dict[str, Any] = {"members": len(members), SHARED: [], ALONG: [], JOINED: {}, OWN: {}}
    for name in names:
        own = {number: member[name] for number, member in enumerate(members) if name in member}
        first = next(iter(own.values()))
        is_alike = len(own) == len(members) and all(
            _form(one) == _form(first) for one in own.values()
        )
        if (
            is_alike
            and name in common
            and all(_is_equal(one.values, first.values) for one in own.values())
        ):
            found[name] = first
            layout[SHARED].append(name)
        elif is_alike:
            stacked = np.stack([one.values for one in own.values()])
            found[name] = Variable((axis, *first.axes), stacked, first.attributes)
            layout[ALONG].append(name)
        elif len(own) == len(members) and all(
            one.values.ndim == 1 and _type(one) == _type(first) for one in own.values()
        ):
            lengths = [len(one.values) for one in own.values()]
            found[name] = Variable(
                first.axes, np.concatenate([one.values for one in own.values()]), first.attributes
            )
            whose = f"{first.axes[0]}_{axis}"
            found.setdefault(
                whose,
                Variable(
                    first.axes,
                    np.repeat(np.arange(len(members)), lengths),
                    {"long_name": f"number of the {axis}"},
                ),
            )
            layout[JOINED][name] = lengths
        else:
            for number, (axes, values, about) in own.items():
                found[f"{name}__{number}"] = Variable(
                    tuple(f"{part}__{number}" for part in axes), values, about
                )
            layout[OWN][name] = list(own)
    return found, layout


def split(arrays: Arrays, layout: Any) -> list[dict[str, np.ndarray]]:
    """The arrays of each member."""
    count = layout["members"]
    if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= 10**7:
        raise ValueError(f"A list must have a number of members, got {str(count)[:40]!r}.")
    for name in layout[ALONG]:
        if arrays[name].ndim < 1 or len(arrays[name]) != count:
            raise ValueError(
                f"{name} must have one entry for each of the {count} members, got the shape"
                f" {arrays[name].shape}."
            )
    for name, lengths in layout[JOINED].items():
        is_right = len(lengths) == count and all(
            type(length) is int and length >= 0 for length in lengths
        )
        if not is_right or arrays[name].shape != (sum(lengths),):
            raise ValueError(f"{name} must have as many entries as the members have together.")
    shared = {name: arrays[name] for name in layout[SHARED]}
    members = [
        {**shared, **{name: _entry(arrays[name], number) for name in layout[ALONG]}}
        for number in range(count)
    ]
    for name, lengths in layout[JOINED].items():
        for member, part in zip(
            members, np.split(arrays[name], np.cumsum(lengths)[:-1]), strict=True
        ):
            member[name] = part
    for name, numbers in layout[OWN].items():
        for number in numbers:
            members[number][name] = arrays[f"{name}__{number}"]
    return members


def _entry(array: np.ndarray, number: int) -> np.ndarray:
    """One member's part, an array also where it has no axes."""
    return np.asarray(array[number], dtype=array.dtype)


def _form(variable: Variable) -> tuple[Any, ...]:
    return variable.axes, variable.values.shape, _type(variable)


def _type(variable: Variable) -> str:
    kind = variable.values.dtype
    return "text" if kind.kind in "UO" else kind.str


def _is_equal(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two arrays have the same bits, -0 and NaN included."""
    return one is other or (
        one.tolist() == other.tolist()
        if one.dtype.kind in "UO"
        else one.tobytes() == other.tobytes()
    )
