"""The recipes of docs/extending.md, one per axis, run as a newcomer would run them."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace

import pytest

from places import DOCS


def recipes():
    """The blocks of docs/extending.md about the axes, each a file of its own."""
    text = (DOCS / "extending.md").read_text(encoding="utf-8")
    part = text[text.index("## A kernel") : text.index("## A start law")]
    return re.findall(r"^```python\n(.*?)^```", part, re.DOTALL | re.MULTILINE)


def test_there_is_a_recipe_for_every_axis():
    text = "".join(recipes())
    assert all(
        f"al.{registry}.register(" in text
        for registry in (
            "kernels",
            "masks",
            "spaces",
            "scores",
            "reads",
            "writes",
            "speeds",
            "drifts",
            "noises",
        )
    )


@pytest.mark.parametrize(
    "recipe", recipes(), ids=lambda text: re.search(r'register\("(\w+)"', text)[1]
)
def test_each_recipe_runs_as_a_file_of_its_own(recipe, tmp_path):
    (tmp_path / "mine.py").write_text(recipe, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "error", "mine.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr


def test_the_command_line_imports_a_file_first(tmp_path, polytope):
    (tmp_path / "mine.py").write_text(recipes()[0], encoding="utf-8")
    replace(polytope, dynamics={"kernel": {"name": "my_sigmoid", "bias": -1.0}}).save(
        tmp_path / "a.toml"
    )

    def attnlab(*words):
        return subprocess.run(
            [sys.executable, "-m", "attnlab", *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
        )

    done = attnlab("--import", "mine.py", "run", "a.toml", "-o", "a.nc")
    assert done.returncode == 0 and "my_sigmoid" in done.stdout, done.stderr
    assert attnlab("--import", "mine.py", "plot", "a.nc", "-o", "a.png").returncode == 0
    without = attnlab("run", "a.toml", "-o", "b.nc")
    assert (
        without.returncode == 2
        and "Unknown kernel 'my_sigmoid'" in without.stderr
        and "Traceback" not in without.stderr
    )
    loaded = attnlab("plot", "a.nc", "-o", "b.png")
    assert (
        loaded.returncode == 2
        and "my_sigmoid" in loaded.stderr
        and "Traceback" not in loaded.stderr
    )
    assert "there is no such file" in attnlab("--import", "none.py", "list").stderr
    (tmp_path / "taken.py").write_text(
        "import attnlab as al\n@al.masks.register('full')\nclass A:\n    def seen(self, n): ...\n"
    )
    assert "The mask 'full' is registered already" in attnlab("--import", "taken.py", "list").stderr
