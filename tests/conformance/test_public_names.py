"""Docstrings of public names: their examples run, and every argument of a function stands in its
Parameters.
"""

from __future__ import annotations

import doctest
import functools
import inspect
import re

import pytest

import attnlab as al
import tiny_models
from attnlab.registry import Registry

PUBLIC = {
    f"{module.__name__}.{name}": getattr(module, name)
    for module in (al, al.models, al.sweep)
    for name in module.__all__
    if name not in ("models", "sweep")
}
"""{name: the thing} of every public name."""

SHOWN_ELSEWHERE = {
    "Cancelled",
    "RunInterrupted",
    "Event",
    "Solve",
    "Prediction",
    "Verdict",
    "Verification",
    "BadModel",
    "Config",
    "Parts",
    "Flow",
}
"""Exceptions and records that users only receive: the examples of the functions that make them show
them.
"""


@functools.cache
def tiny_model():
    state, raw = tiny_models.bert()
    return al.models.load(state, config=raw)


def swept():
    """A sweep with results, in the current folder."""
    base = {
        "weights": {"family": "identity"},
        "start": {"law": "uniform_cube", "n": 4, "d": 2},
        "solve": {"t_end": 0.5},
    }
    sweep = al.Sweep.from_dict(
        {
            "base": base,
            "axes": {"dynamics.beta": [1.0, 4.0]},
            "seeds": 4,
            "numbers": {"spread": {"observable": "diameter", "at": "last"}},
        },
        "phase.toml",
    )
    sweep.run(workers=0)
    return sweep


def examples_of(thing, name, given):
    tests = doctest.DocTestFinder(recurse=inspect.isclass(thing)).find(
        thing, name, module=False, globs=given
    )
    return [one for one in tests if one.examples]


@pytest.mark.parametrize("name", PUBLIC)
def test_the_examples_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    thing = PUBLIC[name]
    if isinstance(thing, Registry):
        return
    given = {"model": tiny_model()} if name.startswith("attnlab.models") else {}
    if name.startswith("attnlab.sweep") and inspect.isfunction(thing):
        given = {"sweep": swept()}
    found = examples_of(thing, name, given)
    for one in found:
        words: list[str] = []
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
        assert not runner.run(one, out=words.append).failed, "".join(words)
    assert found or name.rpartition(".")[2] in SHOWN_ELSEWHERE, (
        "Give it an example, or say here what shows it."
    )


def functions():
    """{name: function} of public functions, and of the methods of public classes."""
    found = {}
    for name, thing in PUBLIC.items():
        if inspect.isfunction(thing):
            found[name] = thing
        elif inspect.isclass(thing):
            for method, value in vars(thing).items():
                value = getattr(value, "__func__", value)
                if (
                    inspect.isfunction(value)
                    and not method.startswith("_")
                    and value.__module__.startswith("attnlab")
                ):
                    found[f"{name}.{method}"] = value
    return found


INTERNAL = {"attnlab.Explorer.set_state", "attnlab.FeedForward.check_dimension"}
"""Methods that others than users call."""


@pytest.mark.parametrize("name", sorted(functions().keys() - INTERNAL))
def test_every_argument_is_explained(name):
    function = functions()[name]
    text = inspect.getdoc(function) or ""
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\w+\n-+\n|\Z)", text, re.MULTILINE | re.DOTALL)
    heads = re.findall(r"^(\S.*)$", section[1], re.MULTILINE) if section else []
    explained = [name.strip(" *") for head in heads for name in head.partition(" : ")[0].split(",")]
    known = [one for one in inspect.signature(function).parameters if one not in ("self", "cls")]
    assert sorted(explained) == sorted(known)
    assert inspect.signature(function).return_annotation not in ("Any", inspect.Signature.empty)
    assert (
        len(known) < 2
        or inspect.signature(function).return_annotation == "None"
        or "\nReturns\n-------\n" in text
    )
