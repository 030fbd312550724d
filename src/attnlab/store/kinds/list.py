"""A list (or tuple) of results of one kind, such as the Limits of a batch, and lists of such
lists.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from attnlab.batches import Limits
from attnlab.store.bundles import bundle, split
from attnlab.store.packing import (
    Arrays,
    Kind,
    Labelled,
    Packed,
    Words,
    kind_of,
    kinds,
    name_of_kind,
)
from attnlab.types import Limit
from attnlab.verdicts import BatchVerdicts, Verdict, Verdicts

TYPES: dict[str, type] = {
    "list": list,
    "tuple": tuple,
    "Limits": Limits,
    "Verdicts": Verdicts,
    "BatchVerdicts": BatchVerdicts,
}
ENTRIES: dict[str, type] = {"Limits": Limit, "Verdicts": Verdict, "BatchVerdicts": Verdicts}
"""What the entries of a list that has a summary must be."""


def is_one(thing: Any) -> bool:
    """Whether it is a list of things of one kind that can be stored; an empty one is."""
    if type(thing) not in TYPES.values():
        return False
    names = {name_of_kind(entry) for entry in thing}
    return len(names) <= 1 and None not in names


def pack(results: Sequence[Any]) -> Packed:
    """All members, side by side."""
    name = kind_of(results[0]) if results else None
    packed = [kinds[name].pack(one) for one in results] if name is not None else []
    common = frozenset().union(*(one.common for one in packed))
    variables, layout = bundle([one.variables for one in packed], _axis(results), common)
    kind = next(word for word, made in TYPES.items() if type(results) is made)
    content = {
        "type": kind,
        "of": name,
        "layout": layout,
        "words": [dict(one.words) for one in packed],
    }
    return Packed(variables, {"content": json.dumps(content)}, common)


def unpack(arrays: Arrays, words: Words) -> Any:
    """The list again."""
    content = json.loads(words["content"])
    members, said = split(arrays, content["layout"]), content["words"]
    if len(said) != len(members):
        raise ValueError(
            f"A list of {len(members)} members must have words for each, got {len(said)}."
        )
    kind = kinds[content["of"]] if members else None
    found = (
        [kind.unpack(member, one) for member, one in zip(members, said, strict=True)]
        if kind is not None
        else []
    )
    if not all(isinstance(one, ENTRIES.get(content["type"], object)) for one in found):
        raise ValueError(
            f"The entries of {content['type']} must be {ENTRIES[content['type']].__name__}."
        )
    return TYPES[content["type"]](found)


def label(results: Sequence[Any]) -> Labelled:
    """All members along one axis, as far as their arrays have equal shapes."""
    labelled = [kinds[kind_of(one)].label(one) for one in results]
    names = frozenset(name for one in labelled for name in one.coordinates)
    variables, _ = bundle([one.variables for one in labelled], _axis(results), names)
    same = {
        name: value
        for name, value in (labelled[0].words.items() if labelled else ())
        if all(one.words.get(name) == value for one in labelled)
    }
    coordinates = tuple(
        name for name in sorted(names) if name in variables and variables[name].axes == (name,)
    )
    return Labelled(variables, same, coordinates)


def view(results: Sequence[Any]) -> Labelled:
    """What the members have for other programs, along the same axis."""
    kind = kinds[kind_of(results[0])] if results else None
    if kind is None or kind.views is None:
        return Labelled({})
    variables, _ = bundle([kind.views(one).variables for one in results], _axis(results))
    return Labelled(variables)


def tabulate(results: Sequence[Any]) -> dict[str, np.ndarray]:
    """The tables of all members below each other, with the member's number in front."""
    if not results:
        raise ValueError("An empty list has no table.")
    kind = kinds[kind_of(results[0])]
    if kind.tabulate is None:
        raise ValueError(f"There is no table of {kind.title}. Save it as a .nc file.")
    tables = [kind.tabulate(one) for one in results]
    if any(list(table) != list(tables[0]) for table in tables):
        raise ValueError(
            "These results have different columns: save each as a .csv file of its own, or all as a"
            " .nc file."
        )
    lengths = [len(next(iter(table.values()), ())) for table in tables]
    axis = _axis(results)  # "verdict" and the like: the rows say themselves what they are about
    columns = (
        {axis: np.repeat(np.arange(len(tables)), lengths)}
        if max(lengths) > 1 or axis.startswith("member")
        else {}
    )
    return columns | {
        name: np.concatenate([np.atleast_1d(table[name]) for table in tables]) for name in tables[0]
    }


def record(results: Sequence[Any]) -> list[Any]:
    """The JSON of all members."""
    found = []
    for one in results:
        kind = kinds[kind_of(one)]
        if kind.record is None:
            raise ValueError(f"There is no JSON of {kind.title}. Save it as a .nc file.")
        found.append(kind.record(one))
    return found


def _axis(results: Sequence[Any]) -> str:
    """The axis of the members; a list of lists is a batch, and what is deeper gets an axis of its
    own.
    """
    if not _is_nested(results):
        return kinds[kind_of(results[0])].axis if results else "member"
    inner = _axis(next((one for one in results if one), results[0]))
    return "member" if not inner.startswith("member") else f"{inner}_list"


def _is_nested(results: Sequence[Any]) -> bool:
    return bool(results) and type(results[0]) in TYPES.values()


def _samples() -> Mapping[str, Any]:
    """A list of lists of everything, a list and a tuple, and nothing."""
    things = {name: list(kinds[name].samples().values()) for name in kinds if name != "list"}
    found: dict[str, Any] = {
        f"of lists of {name}": [some, some[::-1]] for name, some in things.items()
    }
    verdicts = Verdicts(things["verdict"])
    return found | {
        "of limits": Limits(things["limit"]),
        "tuple": tuple(things["verdict"]),
        "empty": [],
        "of verdicts": verdicts,
        "of verdicts of a batch": BatchVerdicts([verdicts, Verdicts(verdicts[:1])]),
    }


kinds.register("list")(
    Kind(
        title="a list of results of one kind",
        is_one=is_one,
        pack=pack,
        unpack=unpack,
        label=label,
        samples=_samples,
        tabulate=tabulate,
        record=record,
        views=view,
    )
)
