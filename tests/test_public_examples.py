"""The examples in the docstrings of all public names run, and every public function has its parameters in numpydoc."""

from __future__ import annotations

import doctest
import functools
import inspect
import re

import numpy as np
import pytest

import attnlab as al
import tiny_models
from attnlab.registry import Registry

PUBLIC = [(module.__name__, name) for module in (al, al.models, al.sweep) for name in module.__all__
          if name not in ("models", "sweep")]
"""(module, name) of every public name."""

WITHOUT_EXAMPLES = {"Cancelled", "RunInterrupted", "Event", "Solve", "Prediction", "Verdict", "Verification", "BadModel", "Config", "Parts"}
"""Exceptions and records that attnlab makes, which the examples of the functions show."""


def find(module, name):
    return getattr(importlib_names[module], name)


importlib_names = {module.__name__: module for module in (al, al.models, al.sweep)}


@functools.cache
def tiny_model():
    state, raw = tiny_models.bert()
    return al.models.load(state, config=raw)


@pytest.mark.parametrize(("module", "name"), PUBLIC)
def test_the_examples_run(module, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    thing = find(module, name)
    given = {"model": tiny_model()} if module == "attnlab.models" else {}
    found = [one for one in doctest.DocTestFinder(recurse=inspect.isclass(thing)).find(thing, name, module=False, globs=given)
             if one.examples]
    for one in found:
        out: list[str] = []
        runner = doctest.DocTestRunner(optionflags=doctest.IGNORE_EXCEPTION_DETAIL if "Traceback" in one.docstring else 0)
        runner.run(one, out=out.append)
        assert not runner.summarize(verbose=False).failed, "".join(out)
    assert found or name in WITHOUT_EXAMPLES or isinstance(thing, Registry), name
