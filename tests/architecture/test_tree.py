"""docs/architecture.md shows the tree as it is, and the functions that a run goes through."""

from __future__ import annotations

import importlib
import sys

import pytest

import attnlab as al
from places import ROOT
from tree import FUNCTIONS, PATHS

SOURCE = ROOT / "src" / "attnlab"


def parts_of_the_tree() -> set[str]:
    """Every file at the top and every folder, but those of single experiments and what is inside
    them.
    """
    files = [
        path for path in SOURCE.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    ]
    experiments = {path.parent for path in files if path.name == "about.md"}
    folders = {folder for path in files for folder in path.parents if SOURCE in folder.parents}
    shown = [folder for folder in folders if not experiments & {folder, *folder.parents}]
    top = {
        path.name
        for path in files
        if path.parent == SOURCE and path.suffix == ".py" and path.name != "__init__.py"
    }
    return top | {f"{folder.relative_to(SOURCE).as_posix()}/" for folder in shown}


def test_the_page_shows_every_part_of_the_tree_once():
    assert len(PATHS) == len(set(PATHS)) and len(PATHS) > 50
    assert parts_of_the_tree() - set(PATHS) == set(), "Add these to docs/architecture.md."
    assert set(PATHS) - parts_of_the_tree() == set(), (
        "docs/architecture.md shows what is not there."
    )


def test_a_folder_stands_below_the_folder_that_it_is_in():
    for number, path in enumerate(PATHS):
        parent = path.removesuffix("/").rpartition("/")[0]
        if parent:
            above = PATHS[PATHS.index(f"{parent}/") : number]
            assert above and all(one.startswith(f"{parent}/") for one in above)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_path_of_a_run_names_what_exists(name):
    parts = name.split(".")
    for length in range(len(parts) - 1, 0, -1):
        place = SOURCE.joinpath(*parts[:length])
        if place.with_suffix(".py").is_file() or (place / "__init__.py").is_file():
            thing = importlib.import_module(f"attnlab.{'.'.join(parts[:length])}")
            for part in parts[length:]:
                thing = getattr(thing, part)
            return
    raise AssertionError(f"There is no module for {name}.")


def test_a_run_goes_through_them_in_this_order():
    """A run of a Spec, watched: the functions that Python calls stand on the page in the order of
    their first call.
    """
    called: list[str] = []

    def watch(frame, event, _):
        if event == "call" and (module := frame.f_globals.get("__name__", "")).startswith(
            "attnlab."
        ):
            called.append(f"{module.removeprefix('attnlab.')}.{frame.f_code.co_qualname}")

    spec = al.Spec(
        weights={"family": "identity"},
        start={"law": "uniform_cube", "n": 4, "d": 2},
        solve={"t_end": 0.5},
        observe=["diameter"],
    )
    al.run_spec(spec)  # compiles what there is to compile
    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        al.run_spec(spec)
    finally:
        sys.setprofile(before)
    begin, end = (
        FUNCTIONS.index("run.run_spec"),
        FUNCTIONS.index("engine.observing.add_observables"),
    )
    steps = [
        name
        for name in FUNCTIONS[begin : end + 1]
        if name.rpartition(".")[2] not in ("weights_families", "start_laws")
    ]
    missing = [name for name in steps if name not in called]
    assert missing == ["engine.stepper.integrate", "types.Trajectory"]  # compiled code, and a class
    seen = [name for name in steps if name in called]
    assert sorted(seen, key=called.index) == seen
