"""A Flow of a trained head: its run, its numbers over time, its limit and its verdicts. Each is
stored as its own kind.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab.models.studies.head_numbers import HeadNumbers
from attnlab.netcdf import Variable
from attnlab.store.kinds.table import tabulate as tabulate_frame
from attnlab.store.packing import (
    Arrays,
    Kind,
    Labelled,
    Packed,
    Words,
    add_prefix,
    is_instance,
    kinds,
    without_prefix,
)
from attnlab.store.trees import decode, encode

if TYPE_CHECKING:
    from attnlab.models.studies.flows import Flow

PARTS = {"run": "trajectory", "data": "dataset", "limit": "limit", "verdicts": "list"}
"""The parts of a Flow that are results of another kind."""

REST = ("words", "no_limit", "heads", "no_check")


def pack(flow: Flow) -> Packed:
    """All parts."""
    variables: dict[str, Variable] = {}
    said: dict[str, Any] = {}
    for name, kind in PARTS.items():
        part = getattr(flow, name)
        if part is not None:
            packed = kinds[kind].pack(part)
            said[name] = dict(packed.words)
            variables |= add_prefix(packed, f"{name}__")
    tree, arrays = encode({name: getattr(flow, name) for name in REST}, "rest")
    return Packed(variables | arrays, {"content": json.dumps({"parts": said, "rest": tree})})


def unpack(arrays: Arrays, words: Words) -> Flow:
    """The Flow of arrays and words."""
    from attnlab.models.studies.flows import Flow
    from attnlab.models.studies.spectra_table import MeasuredHead

    content = json.loads(words["content"])
    parts: dict[str, Any] = {
        name: kinds[kind].unpack(without_prefix(arrays, f"{name}__"), content["parts"][name])
        for name, kind in PARTS.items()
        if name in content["parts"]
    }
    rest = decode(content["rest"], arrays)
    if (
        set(rest) != set(REST)
        or not isinstance(rest["words"], tuple)
        or not all(isinstance(one, MeasuredHead) for one in rest["heads"])
    ):
        raise ValueError("A flow must have words, and heads with their numbers.")
    return Flow(**parts, **rest)


def label(flow: Flow) -> Labelled:
    """The numbers over time."""
    return kinds["dataset"].label(flow.data)


def tabulate(flow: Flow) -> Mapping[str, np.ndarray]:
    """One row per saved time, as `al.models.table` has it."""
    from attnlab.models.studies.tidy import table

    return tabulate_frame(table(flow))


def _samples() -> Mapping[str, Any]:
    from attnlab.models.studies.flows import Flow, measure_flow
    from attnlab.models.studies.spectra_table import MeasuredHead

    run = kinds["trajectory"].samples()["one"]
    types: dict[str, Any] = {
        "complex": 1 + 2j,
        "float": 0.25,
        "int": 3,
        "np.ndarray": np.array([1 + 2j, 1 - 2j]),
    }
    numbers = HeadNumbers(**{field.name: types[str(field.type)] for field in fields(HeadNumbers)})
    words = ("a", "cat", "sat", "down", ".")
    data, verdicts = measure_flow(run, words), tuple(kinds["verdict"].samples().values())
    data.attrs |= {"model": "tiny", "layer": 0, "head": 1, "text": "a cat sat down."}
    whole = Flow(
        run,
        data,
        words,
        limit=kinds["limit"].samples()["exact"],
        verdicts=verdicts,
        heads=(MeasuredHead(0, 1, run.dynamics.weights, numbers),),
    )
    return {
        "whole": whole,
        "without a limit": Flow(
            run, data, words, no_limit="Several heads.", no_check="not asked for"
        ),
    }


kinds.register("flow")(
    Kind(
        title="a Flow",
        is_one=lambda thing: is_instance(thing, "attnlab.models.studies.flows", "Flow"),
        pack=pack,
        unpack=unpack,
        label=label,
        samples=_samples,
        tabulate=tabulate,
        views=label,
    )
)
