"""The layers: who may import whom, how long a file may be, and what `import attnlab` must not load."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import attnlab

ROOT = Path(attnlab.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))

ORDER = (
    "capacity", "checks", "controls", "displayed", "bars", "progress", "files", "glossary", "array_files", "exponential",
    "frames", "matrices", "registry", "imports", "worded", "axes", "equations", "spec", "types", "verdicts", "batches",
    "examples", "starts", "weights", "dynamics",
    "analysis", "engine", "limits", "theory", "models", "run", "render", "notebook", "netcdf", "store", "verification",
    "explorer", "sweep", "experiments", "tour", "cli", "__main__",
)  # fmt: skip
"""A line of the design imports only from lines above it."""

ONLY_IN = {"numba": ("engine",), "matplotlib": ("render",), "typer": ("cli",)}
"""Libraries that only these folders know."""


def name_of(path: Path) -> str:
    """src/attnlab/render/kinds/a.py -> render.kinds.a"""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(tree: ast.AST, package: str) -> list[str]:
    """Full names of all that is imported, at the top or inside functions, relative imports resolved against `package`."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            found += [f"{module}.{alias.name}" for alias in node.names]
    return found


def upward(layer: str, imported: list[str]) -> list[str]:
    """The layers of attnlab among `imported` that do not stand above `layer`."""
    ours = [name.split(".")[1] for name in imported if name.startswith("attnlab.")]
    return [other for other in ours if other in ORDER and other != layer and ORDER.index(other) > ORDER.index(layer)]


def package_of(path: Path) -> str:
    return ".".join(["attnlab", *path.relative_to(ROOT).parent.parts])


def foreign(imported: list[str], folder: str) -> list[str]:
    return [name for name in imported if (top := name.split(".")[0]) in ONLY_IN and folder not in ONLY_IN[top]]


@pytest.mark.parametrize("path", [path for path in FILES if path.parent != ROOT or path.stem != "__init__"], ids=name_of)
def test_nothing_is_imported_from_below(path):
    layer = name_of(path).split(".")[0]
    assert layer in ORDER, f"{layer} has no place in the order of layers: add it to ORDER here and to CONTRIBUTING.md."
    imported = imports(ast.parse(path.read_text()), package_of(path))
    assert upward(layer, imported) == []
    assert foreign(imported, layer) == []


def test_the_walk_sees_what_it_must_see():
    text = "def f():\n    import attnlab.cli\nfrom ..render import plot\nfrom . import x\nimport attnlab.store, numba.core\n"
    imported = imports(ast.parse(text), "attnlab.analysis")
    assert imported[:2] == ["attnlab.render.plot", "attnlab.analysis.x"]
    assert sorted(upward("analysis", imported)) == ["cli", "render", "store"]
    assert upward("cli", imported) == []
    assert foreign(imported, "analysis") == ["numba.core"] and foreign(imported, "engine") == []


LOADS_ITSELF = {"": "first", "dynamics": "loaded by attnlab itself", "render": "kinds",
                "cli": "one thread", "experiments": "reproduce", "tour": "stops"}  # fmt: skip
"""Packages that may import modules of their own, and why. Among threads, that is a deadlock where a module is asked for first."""


@pytest.mark.parametrize("path", [path for path in FILES if path.stem == "__init__"], ids=name_of)
def test_a_package_does_not_import_its_own_modules(path):
    package = package_of(path)
    tree = ast.parse(path.read_text())
    at_once = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    own = [name for name in imports(ast.Module(at_once, []), package) if name.startswith(f"{package}.")]
    reason = LOADS_ITSELF.get(name_of(path))
    assert own == [] or reason is not None
    if reason in ("kinds", "reproduce", "stops"):
        assert {name.split(".")[2] for name in own} == {reason}


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_no_file_is_long(path):
    assert len(path.read_text().splitlines()) <= 400


HEAVY = ("numpy", "numba", "matplotlib", "xarray", "pandas", "scipy.linalg", "h5py", "h5netcdf", "typer", "rich", "torch",
         "transformers")


def loaded_by(code: str) -> list[str]:
    """The heavy libraries that a fresh interpreter holds after running `code`."""
    code += f"\nimport sys; print([name for name in {HEAVY!r} if name in sys.modules])"
    return ast.literal_eval(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)


def test_importing_attnlab_loads_nothing_heavy():
    assert loaded_by("import attnlab, attnlab.bars") == []
    assert loaded_by("import matplotlib, xarray") != []


def test_the_command_line_loads_neither_the_compiler_nor_the_drawing():
    loaded = loaded_by("from attnlab.cli import app; app()")
    assert not {"numba", "matplotlib", "xarray"} & set(loaded)
    assert "typer" in loaded


@pytest.mark.parametrize(("command", "loaded"), [
    ("--help", ["typer", "rich"]),
    ("list", ["numpy", "typer", "rich"]),
    ("list results", ["numpy", "typer", "rich"]),
    ("predict polytope_3d", ["numpy", "scipy.linalg", "typer"]),
])
def test_a_command_loads_no_more_than_it_needs(command, loaded):
    code = ("import contextlib, io, sys; from attnlab.cli import main\n"
            f"sys.argv[1:] = {command.split()!r}\n"
            "with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()) as said: main()\n"
            "assert len(said.getvalue()) > 100\n")
    assert loaded_by(code) == loaded
