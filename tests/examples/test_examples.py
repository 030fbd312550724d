"""examples/: every script runs as a reader would run it, leaves its one figure, says one line, and
uses what is public.
"""

from __future__ import annotations

import ast
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

import attnlab as al
from attnlab.models.catalog.catalog import is_cached
from places import ROOT

SCRIPTS = sorted((ROOT / "examples").glob("*.py"))
TRAINED = ("sentence", "trained_head")
REGISTRIES = {"attnlab.starts": {"start_laws"}, "attnlab.analysis": {"observables"}}
"""What a script may take from inside: the registries that docs/extending.md names."""


def run_script(script: Path, folder: Path, **environment: str) -> subprocess.CompletedProcess:
    """The script run in a process of its own, with a folder of its own as the current one."""
    return subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "MPLBACKEND": "Agg", **environment},
    )


def size_of_png(path: Path) -> tuple[int, int]:
    head = path.read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    return struct.unpack(">II", head[16:24])


def test_there_are_ten():
    assert len(SCRIPTS) == 10


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_it_makes_its_figure_and_says_one_line(script, tmp_path):
    if script.stem in TRAINED and not is_cached("minilm"):
        pytest.skip("minilm is not here: attnlab fetch minilm")
    done = run_script(script, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{script.stem}.png: ") and done.stdout.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == [f"{script.stem}.png"]
    width, height = size_of_png(tmp_path / f"{script.stem}.png")
    assert 800 <= width <= 1600 and 500 <= height <= 1000


@pytest.mark.slow
@pytest.mark.parametrize("name", TRAINED)
def test_without_the_model_it_says_so_and_is_no_failure(name, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "work").mkdir()
    done = run_script(
        ROOT / "examples" / f"{name}.py", tmp_path / "work", ATTNLAB_MODELS=str(tmp_path / "empty")
    )
    assert done.returncode == 0, done.stderr
    assert "attnlab fetch minilm" in done.stdout and done.stdout.count("\n") == 1
    assert not list((tmp_path / "work").iterdir())


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_it_is_short_and_says_its_idea_in_two_sentences(script):
    text = script.read_text(encoding="utf-8")
    assert 10 <= len(text.splitlines()) <= 40
    assert max(map(len, text.splitlines())) <= 130
    idea = ast.get_docstring(ast.parse(text))
    assert (
        idea is not None
        and idea.count("\n\n") == 1
        and all(part.endswith(".") for part in idea.split("\n\n"))
    )


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_it_uses_public_names_only(script):
    tree = ast.parse(script.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "al"
        ):
            assert node.attr in al.__all__, node.attr
        if isinstance(node, ast.ImportFrom) and node.module.startswith("attnlab"):
            assert {alias.name for alias in node.names} <= REGISTRIES.get(node.module, set()), (
                node.module
            )
        if isinstance(node, ast.Import):
            assert not [alias.name for alias in node.names if alias.name.startswith("attnlab.")]
    assert "import attnlab as al\n" in script.read_text(encoding="utf-8")
