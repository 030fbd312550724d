"""The modules of the page: small, no library, no markup from words, and numbers apart from
pictures.
"""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from attnlab.explorer.join import WEB, _read_module, join_page
from attnlab.explorer.tighten import blank_texts

MODULES = sorted(path for path in WEB.iterdir() if path.suffix == ".js")
WITHOUT_DOM = ("rng", "ziggurat", "starts", "linear", "weights", "field", "stepper", "frozen", "record", "theory", "address",
               "address_keys", "copies", "equal", "types", "refusal", "small_matrices", "run")  # fmt: skip
"""What is computed or read without a page, and what these import."""

DOM = re.compile(
    r"(?<![.\w])(document|window|localStorage|navigator|HTMLElement|CanvasRenderingContext2D|location)\b(?!\s*:)"
)
MARKUP = re.compile(
    r"\b(innerHTML|outerHTML|insertAdjacentHTML|createContextualFragment|DOMParser|setHTML)\b"
    r"|document\.write|\beval\s*\(|new Function\b"
)
NETWORK = re.compile(
    r"\b(fetch|XMLHttpRequest|WebSocket|EventSource|sendBeacon|importScripts)\s*\("
)


def name_of(path) -> str:
    return path.stem


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_is_small(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 300 and max(map(len, lines)) <= 130


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_words_never_become_markup_and_nothing_is_asked_for(path):
    code = blank_texts(path.read_text(encoding="utf-8"))
    assert not MARKUP.search(code) and not NETWORK.search(code)
    texts = re.findall(r"https?://[^\s'\"`)]+", path.read_text(encoding="utf-8"))
    assert all(text.startswith(("http://www.w3.org/", "https://www.w3.org/")) for text in texts), (
        texts
    )


@pytest.mark.parametrize("name", WITHOUT_DOM)
def test_numbers_need_no_page(name):
    """Neither the module nor anything that it imports knows the page."""
    modules: dict = {}
    _read_module(f"{name}.js", WEB, modules, above=())
    for other in modules:
        found = DOM.search(blank_texts((WEB / other).read_text(encoding="utf-8")))
        assert found is None, (name, other, found)


@pytest.mark.parametrize(
    "name",
    [
        "camera",
        "stage",
        "axes",
        "marks",
        "worldlines",
        "hull",
        "clock",
        "plane",
        "heat",
        "sweep_chart",
    ],
)
def test_pictures_do_not_integrate(name):
    modules: dict = {}
    _read_module(f"{name}.js", WEB, modules, above=())
    assert not {"stepper.js", "field.js", "engine.js", "worker.js", "record.js", "run.js"} & set(
        modules
    )


def test_everything_is_in_the_page():
    """No module is left over: each is part of the page, of viewers inside other pages, or of the
    widget.
    """
    modules: dict = {}
    for entry in ("page_main.js", "worker.js", "embed_main.js", "afm.js"):
        _read_module(entry, WEB, modules, above=())
    assert {path.name for path in MODULES} - set(modules) == {"loader.js"}


@pytest.mark.skipif(
    shutil.which("node") is None,
    reason="node is not installed: the joined script is not parsed here",
)
def test_the_joined_script_is_a_script(tmp_path):
    (tmp_path / "page.js").write_text(join_page(), encoding="utf-8")
    done = subprocess.run(["node", "--check", tmp_path / "page.js"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
