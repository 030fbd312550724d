"""The layers: who may import whom, how long a file may be, and what `import attnlab` must not
load.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import attnlab
from tree import LAYERS

ROOT = Path(attnlab.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))

ONLY_IN = {"numba": ("engine",), "matplotlib": ("render", "experiments"), "typer": ("cli",)}
"""Libraries that only these folders know."""


def name_of(path: Path) -> str:
    """src/attnlab/render/kinds/a.py -> render.kinds.a"""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(tree: ast.AST, package: str) -> list[str]:
    """Full names of all that is imported, at the top or inside functions, relative imports resolved
    against `package`.
    """
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = (
                package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            )
            module = ".".join([*base, *([node.module] if node.module else [])])
            found += [f"{module}.{alias.name}" for alias in node.names]
    return found


def upward(layer: str, imported: list[str]) -> list[str]:
    """The layers of attnlab among `imported` that do not stand above `layer`."""
    ours = [name.split(".")[1] for name in imported if name.startswith("attnlab.")]
    return [
        other
        for other in ours
        if other in LAYERS and other != layer and LAYERS.index(other) > LAYERS.index(layer)
    ]


def package_of(path: Path) -> str:
    return ".".join(["attnlab", *path.relative_to(ROOT).parent.parts])


def at_run_time(tree: ast.Module) -> ast.Module:
    """The file without what only a type checker reads."""
    rest = [
        node
        for node in tree.body
        if not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    ]
    return ast.Module(rest, tree.type_ignores)


def foreign(imported: list[str], folder: str) -> list[str]:
    return [
        name
        for name in imported
        if (top := name.split(".")[0]) in ONLY_IN and folder not in ONLY_IN[top]
    ]


@cache
def parse(path: Path) -> ast.Module:
    """The tree of a file of the source. All tests of this file share it: there are 600 of them."""
    return ast.parse(path.read_text(encoding="utf-8"))


def test_nothing_is_imported_from_below():
    wrong = {}
    for path in FILES:
        layer, tree, package = name_of(path).split(".")[0], parse(path), package_of(path)
        if not layer:  # the front door of attnlab itself
            continue
        assert layer in LAYERS, (
            f"{layer} has no place in the order of layers: add it to docs/architecture.md."
        )
        if found := upward(layer, imports(tree, package)) + foreign(
            imports(at_run_time(tree), package), layer
        ):
            wrong[name_of(path)] = found
    assert wrong == {}


def test_the_walk_sees_what_it_must_see():
    text = (
        "def f():\n    import attnlab.cli\nfrom ..render import plot\nfrom . import x\nimport"
        " attnlab.store, numba.core\n"
    )
    imported = imports(ast.parse(text), "attnlab.analysis")
    assert imported[:2] == ["attnlab.render.plot", "attnlab.analysis.x"]
    assert sorted(upward("analysis", imported)) == ["cli", "render", "store"]
    assert upward("cli", imported) == []
    assert foreign(imported, "analysis") == ["numba.core"] and foreign(imported, "engine") == []


LOADS_ITSELF = {"": "first", "dynamics": "loaded by attnlab itself", "render": "kinds",
                "cli": "one thread", "experiments": "reproduce", "tour": "stops"}  # fmt: skip
"""Packages that may import modules of their own, and why. Among threads, that is a deadlock where a
module is asked for first.
"""


def test_a_package_does_not_import_its_own_modules():
    for path in (path for path in FILES if path.stem == "__init__"):
        package, tree = package_of(path), parse(path)
        at_once = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
        own = [
            name
            for name in imports(ast.Module(at_once, []), package)
            if name.startswith(f"{package}.")
        ]
        reason = LOADS_ITSELF.get(name_of(path))
        assert own == [] or reason is not None, package
        if reason in ("kinds", "reproduce", "stops"):
            assert {name.split(".")[2] for name in own} == {reason}


MOST_LINES = 650


def test_no_file_is_long():
    """Docstrings do not count: a public function explains each of its parameters."""
    lengths = {
        name_of(path): (
            len(path.read_text(encoding="utf-8").splitlines()) - docstring_lines(parse(path))
        )
        for path in FILES
    }
    assert {name: length for name, length in lengths.items() if length > MOST_LINES} == {}


def docstring_lines(tree: ast.Module) -> int:
    """The number of lines of all docstrings of a file."""
    owners = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    firsts = [
        node.body[0]
        for node in ast.walk(tree)
        if isinstance(node, owners) and ast.get_docstring(node) is not None
    ]
    return sum(first.end_lineno - first.lineno + 1 for first in firsts)


HEAVY = (
    "numpy",
    "numba",
    "matplotlib",
    "xarray",
    "pandas",
    "scipy.linalg",
    "h5py",
    "h5netcdf",
    "typer",
    "rich",
    "torch",
    "transformers",
)


def loaded_by(code: str) -> list[str]:
    """The heavy libraries that a fresh interpreter holds after running `code`."""
    code += f"\nimport sys; print([name for name in {HEAVY!r} if name in sys.modules])"
    return ast.literal_eval(
        subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, text=True
        ).stdout
    )


def test_importing_attnlab_loads_nothing_heavy():
    assert loaded_by("import attnlab, attnlab.bars") == []
    assert loaded_by("import matplotlib, xarray") != []


def test_the_command_line_loads_neither_the_compiler_nor_the_drawing():
    loaded = loaded_by("from attnlab.cli import app; app()")
    assert not {"numba", "matplotlib", "xarray"} & set(loaded)
    assert "typer" in loaded


@pytest.mark.parametrize(
    ("command", "loaded"),
    [
        ("--help", ["typer", "rich"]),
        ("list", ["numpy", "typer", "rich"]),
        ("list results", ["numpy", "typer", "rich"]),
        ("predict polytope_3d", ["numpy", "scipy.linalg", "typer"]),
    ],
)
def test_a_command_loads_no_more_than_it_needs(command, loaded):
    code = (
        "import contextlib, io, sys; from attnlab.cli import main\nsys.argv[1:] ="
        f" {command.split()!r}\nwith contextlib.suppress(SystemExit),"
        " contextlib.redirect_stdout(io.StringIO()) as said: main()\nassert len(said.getvalue()) >"
        " 100\n"
    )
    assert loaded_by(code) == loaded
