"""The JavaScript of the explorer as text: boundaries between its modules, nothing that runs text, small files."""

from __future__ import annotations

import re
from functools import cache

import pytest

from attnlab.explorer.join import WEB

MODULES = sorted(path.name for path in WEB.glob("*.js"))
IMPORT = re.compile(r"^import\s[^'\"]*'\./([\w.]+\.js)'", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"/\*.*?\*/|(?<!:)//[^\n]*", re.DOTALL)
DOM = re.compile(r"\b(?:document|window|HTMLElement|addEventListener|requestAnimationFrame|matchMedia|navigator)\b")

NUMERICS = {"stepper.js", "field.js", "record.js", "engine.js", "worker.js", "run.js", "desk.js", "frozen.js"}
WITHOUT_DOM = [
    "rng", "ziggurat", "starts", "linear", "weights", "field", "stepper", "frozen", "record", "theory", "address", "copies",
    "equal", "types", "refusal", "eigenvalues", "outcome", "framing",
]  # fmt: skip
PICTURES = [
    "stage", "worldlines", "scenery", "limits", "hull", "trails", "marks", "labels", "camera", "clock", "plane", "heat", "sweep",
]  # fmt: skip


def code_of(name: str) -> str:
    return COMMENT.sub("", (WEB / name).read_text(encoding="utf-8"))


@cache
def closure(name: str) -> frozenset[str]:
    """A module and everything that it imports, at any distance."""
    found = {name}
    for other in IMPORT.findall((WEB / name).read_text(encoding="utf-8")):
        found |= closure(other)
    return frozenset(found)


def test_the_walk_finds_imports():
    assert {"marks.js", "camera.js", "theme.js"} <= closure("stage.js") and "viewer.js" not in closure("stage.js")


@pytest.mark.parametrize("name", WITHOUT_DOM)
def test_numbers_do_without_a_page(name):
    for module in closure(f"{name}.js"):
        assert not DOM.search(code_of(module)), (name, module)


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_never_integrate(name):
    assert not closure(f"{name}.js") & NUMERICS
    assert "session.js" not in closure(f"{name}.js")


def test_only_the_page_knows_engine_and_viewer():
    both = {name for name in MODULES if {"engine.js", "viewer.js"} <= closure(name)}
    assert both <= {"page_main.js", "afm.js"}
    assert not closure("viewer.js") & (NUMERICS - {"frozen.js"})          # it is given an engine


@pytest.mark.parametrize("name", MODULES)
def test_nothing_runs_text(name):
    bad = (r"\b(?:innerHTML|outerHTML|insertAdjacentHTML|srcdoc)\b", r"\bdocument\.write", r"\beval\s*\(", r"\bnew\s+Function\b")
    assert [words for words in bad if re.search(words, code_of(name))] == []


@pytest.mark.parametrize("name", MODULES)
def test_modules_are_small(name):
    lines = (WEB / name).read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 300
    assert [number for number, line in enumerate(lines, 1) if len(line) > 145] == []
