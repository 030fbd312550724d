"""A script that uses every public name passes mypy --strict, and what it says of results is not
Any.
"""

from __future__ import annotations

import ast
import importlib.util
import os
import subprocess
import sys

import pytest

import attnlab as al
from places import ROOT, TESTS

SCRIPT = TESTS / "typing_public_names.py"

needs_mypy = pytest.mark.skipif(
    importlib.util.find_spec("mypy") is None, reason="mypy is not installed (pip install '.[dev]')"
)


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """What mypy keeps: only the first check takes long."""
    return tmp_path_factory.mktemp("cache")


def check_types(path, cache):
    options = [
        "--strict",
        "--follow-imports=silent",
        "--ignore-missing-imports",
        "--config-file=",
        "--cache-dir",
        str(cache),
    ]
    return subprocess.run(
        [sys.executable, "-m", "mypy", *options, str(path)],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "MYPYPATH": str(ROOT / "src")},
    )


def test_the_script_uses_every_public_name():
    tree = ast.parse(SCRIPT.read_text(encoding="utf-8"))
    used = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert used >= {f"al.{name}" for name in al.__all__}
    assert used >= {
        f"al.{package.__name__.rpartition('.')[2]}.{name}"
        for package in (al.models, al.sweep)
        for name in package.__all__
    }


@needs_mypy
@pytest.mark.slow
def test_it_passes_mypy_strict_and_a_wrong_use_does_not(tmp_path, cache):
    done = check_types(SCRIPT, cache)
    assert done.returncode == 0, done.stdout
    lines = [
        "al.simulat",
        "al.models.floww",
        "al.simulate(al.Weights(V=1.0), 1.0).shapes",
        "al.check(1.0)",
        "al.limit(1.0, [[1.0]])",
        "al.verify(al.limit(al.Weights(V=1.0), [[1.0]]))[0]",
        "al.movie(al.run_spec(1), 'a.gif').pop()",
        "al.kernels.make('x').weight",
    ]
    (tmp_path / "wrong.py").write_text(
        "\n".join(["import attnlab as al", *lines]), encoding="utf-8"
    )
    done = check_types(tmp_path / "wrong.py", cache)
    for number in range(2, len(lines) + 2):
        assert f"wrong.py:{number}: error" in done.stdout, lines[number - 2]


@needs_mypy
@pytest.mark.slow
def test_no_public_function_returns_any(tmp_path, cache):
    # pandas comes without types
    untyped = {f"al.models.{name}" for name in ("spectra", "intervals", "compare", "table")}
    names = [f"al.{name}" for name in al.__all__ if name not in ("models", "sweep")]
    names += [
        f"al.{package}.{name}"
        for package in ("models", "sweep")
        for name in getattr(al, package).__all__
    ]
    names = sorted(set(names) - untyped)
    (tmp_path / "names.py").write_text(
        "\n".join(["import attnlab as al", *(f"reveal_type({name})" for name in names)]),
        encoding="utf-8",
    )
    shown = check_types(tmp_path / "names.py", cache).stdout.splitlines()
    assert sum("Revealed type" in line for line in shown) >= len(names)
    for line in shown:
        assert not line.endswith(('-> Any"', 'type is "Any"')), line
