"""Every table of the command line stands below a legend that says what a row is and names every
column.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import attnlab as al
import tiny_models
from attnlab import experiments, tour
from attnlab.cli import app, summary, verbs
from attnlab.experiments import gallery
from attnlab.run import limit_of_spec
from attnlab.tour.record import Row
from package_clients import Clients

CLI = Path(al.__file__).parent / "cli"
RECORD = {
    "name": "tiny",
    "title": "A title",
    "holds": True,
    "claims": [
        {
            "holds": True,
            "text": "one is one",
            "measured": 1.0,
            "allowed": "1 to 1",
            "published": "",
            "differs": "",
        }
    ],
}

PLANE = {
    "weights": {"family": "spectrum", "eigenvalues": [1.0, -0.5]},
    "start": {"law": "normal", "n": 5, "rng": 1},
}
CHANGING = {
    "weights": {"family": "given", "V": [[1.0, 0.0], [0.0, 0.6]]},
    "start": {"law": "uniform_cube", "n": 20, "low": -5, "high": 5, "rng": 37},
}
"""Tokens change their leaders after the hand-over."""

FALLING = {
    "weights": {"family": "given", "V": [[-1.0, 0.0], [0.0, -1.0]]},
    "start": {"law": "normal", "n": 3},
}
"""The places at which x(t) comes to rest are certified."""


def write_spec(name, table, **start):
    al.Spec(
        weights=table["weights"],
        start={**table["start"], **start},
        solve={"t_end": 1.0, "saves": 3},
    ).save(name)
    return name


@pytest.fixture
def place(workplace, tmp_path, monkeypatch):
    """A folder with small Specs and a tiny model; nothing is fetched, reproduced or told in
    full.
    """
    Clients(tmp_path, monkeypatch)
    write_spec("plane.toml", PLANE)
    write_spec("batch.toml", PLANE, batch=2)
    al.save(limit_of_spec(al.Spec.load("batch.toml")), "limits.nc")
    write_spec("changing.toml", CHANGING)
    write_spec("falling.toml", FALLING)
    tiny_models.write_folder(workplace / "model", *tiny_models.bert())
    monkeypatch.setattr(summary, "WIDTH", 2000)  # headings on one line
    monkeypatch.setattr(experiments, "reproduce", lambda *_, **__: RECORD)
    monkeypatch.setattr(gallery, "reproduce_all", lambda *_, **__: {"tiny": RECORD})
    monkeypatch.setattr(gallery, "write_gallery", lambda *_: None)
    row = Row("theorems", "a", "b", "SUPPORTED", limits=3, decided_at=1.5, error=1e-8)
    monkeypatch.setattr(tour, "make_tour", lambda *_, **__: [row])
    return workplace


COMMANDS = {
    "run": ("run", "plane.toml"),
    "run of a batch": ("run", "batch.toml", "-o", "run.nc"),
    "limit": ("limit", "changing.toml"),
    "limit of a batch": ("limit", "batch.toml", "--member", "1"),
    "limit where nothing grows": ("limit", "falling.toml"),
    "verify": ("verify", "limits.nc"),
    "predict": ("predict", "batch.toml"),
    "check": ("check", "batch.toml", "--work", "1e4"),
    "list": ("list",),
    "list of a kind": ("list", "starts"),
    "list of keys": ("list", "solve"),
    "list of everything": ("list", "--all"),
    "models": ("models",),
    "spectra": ("spectra", "model", "--null", "2"),
    "sentence": ("sentence", "model", "--ids", "1,2,3"),
    "survey": ("survey", "model", "--ids", "1,2,3", "--ids", "4,5"),
    "compare": ("compare", "model", "model"),
    "compare on texts": ("compare", "model", "model", "--ids", "1,2,3", "--ids", "4,5"),
    "flow": ("flow", "model", "--ids", "1,2,3", "--no-limit", "--no-check"),
    "reproduce": ("reproduce", "polytope_2d"),
    "reproduce everything": ("reproduce", "--all"),
    "tour": ("tour",),
}
TITLES = {
    "limit": {"changing", "limits", "changes of leader"},
    "limit where nothing grows": {"falling", "places"},
    "limit of a batch": {"batch", "limits"},
    "list of keys": {"keys of [solve]"},
}
"""Tables that these commands must print, or the test would look at nothing."""

WITHOUT_TABLES = {"plot", "dossier", "fetch", "explore", "sweep", "page"}
"""Verbs that print sentences only; test_who_prints_tables finds out if that changes."""


def tables(text):
    """[(title, legend, columns)] of all tables in what a command printed."""
    lines = text.splitlines()
    found = []
    for number, line in enumerate(lines):
        if line.startswith("┏"):
            columns = [name.strip() for name in lines[number + 1].strip("┃").split("┃")]
            found.append(
                (
                    lines[number - 2] if number > 1 else "",
                    lines[number - 1] if number else "",
                    columns,
                )
            )
    return found


@pytest.mark.parametrize("name", COMMANDS)
def test_every_table_has_a_legend(name, place):
    found = tables(say(*COMMANDS[name]))
    assert found and TITLES.get(name, set()) <= {title for title, _, _ in found}
    for title, legend, columns in found:
        assert title and not title.startswith("┗")
        assert legend.startswith("One row per ") and legend.endswith("."), legend
        missing = [
            column
            for column in columns
            if not re.search(rf"(?<!\w){re.escape(column)}(?!\w)", legend)
        ]
        assert not missing, (legend, missing)


def say(*arguments):
    """What a command prints; limits may be undecided here, which is exit code 1."""
    result = CliRunner().invoke(app(), list(arguments))
    assert result.exit_code in (0, 1) and isinstance(result.exception, SystemExit | type(None)), (
        result.output
    )
    return result.stdout


def test_who_prints_tables():
    """Each verb that prints a table is among the commands above, and each printed table goes
    through print_table.
    """
    printing = set()
    for path in CLI.glob("*.py"):
        tree = ast.parse(path.read_text())
        names = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
        assert path.name == "summary.py" or not {"Table", "Console"} & {
            name.split(".")[-1] for name in names
        }, path.name
        if any(name.startswith("print_") for name in names):
            printing.add(path.stem)
    assert {command[0] for command in COMMANDS.values()} == set(verbs) - WITHOUT_TABLES
    assert not printing & WITHOUT_TABLES


def test_a_table_without_a_legend_cannot_be_printed():
    with pytest.raises(TypeError):
        summary.print_table("title", ["one"], [(1,)])
