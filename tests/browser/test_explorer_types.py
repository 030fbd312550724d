"""The JavaScript of the explorer: types that hold under tsc --strict, modules of readable size,
boundaries between them.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import attnlab.explorer

WEB = Path(attnlab.explorer.__file__).parent / "web"
MODULES = sorted(WEB.glob("*.js"))
TYPESCRIPT = "typescript@5.9.3"
MOST_LINES, LONGEST_LINE = 300, 130
NO_PAGE = (
    "arithmetic", "attention", "checks", "eigen", "exponential", "field", "fixed", "frames", "frozen", "groups", "linear",
    "options", "pieces", "precision_wall", "problem", "record", "refusal", "request_handler", "rescaled", "rng", "run", "starts",
    "statuses", "stepper", "sweep_runs", "symmetric_start", "types", "weights", "worker", "ziggurat",
)  # fmt: skip
"""Modules of the numerics: they run in a worker, where there is no page."""


def find_tsc(folder: Path) -> list[str] | str:
    """The command of the TypeScript compiler, fetched by npm if need be; or why there is none."""
    if path := shutil.which("tsc"):
        return [path]
    if not (npm := shutil.which("npm")) or not shutil.which("node"):
        return "node and npm are not installed (apt-get install npm)"
    fetched = subprocess.run(
        [npm, "install", "--no-audit", "--no-fund", "--prefix", str(folder), TYPESCRIPT],
        capture_output=True,
        text=True,
        timeout=300,
    )
    if fetched.returncode:
        return f"npm could not fetch {TYPESCRIPT}: {fetched.stderr[-200:]}"
    return [str(folder / "node_modules" / ".bin" / "tsc")]


def test_types_hold(tmp_path_factory):
    command = find_tsc(tmp_path_factory.mktemp("tsc"))
    if isinstance(command, str):
        pytest.skip(f"types of the JavaScript are not checked: {command}")
    checked = subprocess.run(
        [*command, "-p", str(WEB / "jsconfig.json")], capture_output=True, text=True, timeout=300
    )
    assert checked.returncode == 0, checked.stdout


def without_comments(source: str) -> str:
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", source, flags=re.DOTALL)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_modules_are_short(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MOST_LINES


@pytest.mark.parametrize("name", NO_PAGE)
def test_the_numerics_have_no_page(name):
    """No document, no window, and lines that can be read; and they import no module that has a
    page.
    """
    source = (WEB / f"{name}.js").read_text(encoding="utf-8")
    assert max(map(len, source.splitlines())) <= LONGEST_LINE
    code = without_comments(source)
    found = set(
        re.findall(r"\b(?:window|document|localStorage|navigator|requestAnimationFrame)\b", code)
    )
    assert found <= (
        {"document"} if name == "worker" else set()
    )  # which asks whether it is in a worker
    assert {Path(file).stem for file in re.findall(r"from '\./([\w.]+)'", code)} <= set(NO_PAGE)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_nothing_is_made_into_code_or_markup(path):
    code = without_comments(path.read_text(encoding="utf-8"))
    assert not re.search(
        r"\beval\(|new Function|innerHTML|outerHTML|insertAdjacentHTML|document\.write", code
    )
