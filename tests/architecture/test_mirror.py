"""The tests mirror the source: a folder for a folder, and for every module a test that imports it
or is declared here.
"""

from __future__ import annotations

import ast
import importlib
from functools import cache
from pathlib import Path

import pytest

import attnlab
from places import TESTS

SOURCE = Path(attnlab.__file__).parent

OWN = (
    "architecture",
    "attack",
    "bench",
    "browser",
    "conformance",
    "docs",
    "examples",
    "golden",
    "oldest",
    "parity",
    "truth",
)
"""Folders that mirror no folder of the source: what concerns all of it, other programs, other
folders of the repository.
"""

CONFORMANCE = {
    "axes": "conformance/test_axes.py",
    "engine.cores": "conformance/test_compiled_members.py",
    "experiments": "conformance/test_experiments.py",
    "limits.proof": "limits/proof/test_enclosures.py",
    "limits.verification": "limits/test_verification.py",
    "models.checkpoints.families": "conformance/test_families.py",
    "notebook": "notebook/test_displays.py",
    "render.kinds": "render/test_render.py",
    "render.panels": "render/test_render.py",
    "store.formats": "store/test_formats.py",
    "store.kinds": "conformance/test_storable.py",
    "sweep.engines": "sweep/test_processes.py",
    "theory.statements": "conformance/test_theorems.py",
    "tour": "tour/test_tour.py",
    "weights": "weights/test_weights.py",
}
"""Folders all of whose modules one file runs, because they are registered."""

THROUGH = {
    "test_glossary.py": "worded",
    "test_matrices.py": "matrices",
    "test_types.py": "frames",
    "analysis/test_analysis.py": "analysis.growing",
    "cli/test_cli.py": "__main__ cli.check cli.list cli.outputs cli.plot cli.predict cli.run",
    "cli/test_explore.py": "cli.explore",
    "cli/test_models.py": "cli.fetch cli.models",
    "cli/test_sentence.py": "cli.sentence cli.token_ids",
    "cli/test_survey.py": "cli.survey",
    "cli/test_sweep.py": "cli.sweep sweep.check",
    "conformance/test_axes_bad_members.py": "dynamics.culprit engine.given",
    "conformance/test_axes_pairs.py": "engine.reference",
    "axes/test_noises.py": "engine.noisy",
    "dynamics/test_dynamics.py": "engine.coordinates engine.field engine.products engine.unit_norm",
    "engine/test_extremes.py": "engine.extended engine.matrix_exponential engine.wall",
    "engine/test_interruption.py": "engine.observing",
    "engine/test_steppers.py": (
        "engine.dormand_prince engine.finish engine.fixed_steps engine.flow engine.large"
        " engine.options"
    ),
    "explorer/test_entry.py": "explorer.members explorer.packing",
    "limits/closed/test_entry.py": "limits.closed.answer",
    "limits/test_adversarial.py": "limits.quotient limits.arithmetic limits.ranks",
    "limits/test_entry.py": (
        "limits.answer limits.layers limits.reasons limits.report limits.sphere "
        "limits.sphere_tokens limits.trivial limits.undecided"
    ),
    "limits/test_groups.py": "limits.gathering limits.reach",
    "limits/heads/test_entry.py": (
        "limits.heads.answer limits.heads.attempt limits.heads.decision limits.heads.flow "
        "limits.heads.state"
    ),
    "limits/test_no_basis.py": "limits.no_basis",
    "limits/test_places.py": "limits.places",
    "limits/test_parts.py": "engine.leaders",
    "limits/test_verification.py": "cli.verify",
    "models/catalog/test_fetch.py": "models.catalog.clients",
    "models/checkpoints/test_files.py": "models.checkpoints.llama2c models.checkpoints.reading",
    "models/checkpoints/test_hostile.py": "models.checkpoints.tokenizer_child",
    "models/checkpoints/test_sources_in_memory.py": "models.checkpoints.tokenizers",
    "models/studies/test_dossier.py": "cli.dossier",
    "models/studies/test_findings.py": "models.studies.flow_findings",
    "models/studies/test_flows.py": "models.studies.flow_steps models.studies.idealised",
    "models/studies/test_spectra.py": "cli.spectra",
    "conformance/test_experiments.py": "render.heat_maps",
    "conformance/test_families.py": "models.checkpoints.slices",
    "docs/test_experiment_recipe.py": "cli.page",
    "render/test_limit_figure.py": "render.limit_figure",
    "render/test_paper.py": "render.wrap",
    "render/test_sweep_figure.py": "render.sweep_panels",
    "store/test_runs.py": "store.bundles store.equations store.run_checks store.trees",
    "sweep/test_compute.py": "sweep.run",
    "sweep/test_processes.py": "sweep.worker",
    "theory/test_verbs.py": "theory.claims theory.hypotheses theory.settled",
    "tour/test_tour.py": "cli.tour",
}
"""Test files, and the parts that they test through the function that a user calls."""


@cache
def modules() -> list[str]:
    """The names, without "attnlab.", of all modules but the front doors of folders."""
    paths = [
        path.relative_to(SOURCE).with_suffix("")
        for path in SOURCE.rglob("*.py")
        if path.stem != "__init__"
    ]
    return sorted(".".join(path.parts) for path in paths)


def home(module: str, name: str = "") -> list[str]:
    """The module that is imported, and the one in which the name is defined."""
    try:
        thing = getattr(importlib.import_module(module), name) if name else None
    except (ImportError, AttributeError):
        thing = None
    places = [module, f"{module}.{name}", getattr(thing, "__module__", None) or ""]
    return [place.removeprefix("attnlab.") for place in places if place.startswith("attnlab.")]


def imported(text: str) -> set[str]:
    """The modules of attnlab that a text imports, or whose names it uses as al.name or
    al.models.name.
    """
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found.update(*(home(alias.name) for alias in node.names))
        elif (
            isinstance(node, ast.ImportFrom)
            and not node.level
            and (node.module or "").split(".")[0] == "attnlab"
        ):
            found.update(*(home(str(node.module), alias.name) for alias in node.names))
        elif isinstance(node, ast.Attribute):
            before = dotted(node.value)
            if before in ("al", "attnlab", "al.models"):
                found.update(
                    home(
                        before.replace("al.", "attnlab.") if "." in before else "attnlab", node.attr
                    )
                )
    return found


def dotted(node: ast.expr) -> str:
    """A name, or a name and one attribute, as it is written; "" for anything else."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


@cache
def tried() -> set[str]:
    """Every module that a test of `make test` imports."""
    files = [
        path
        for path in TESTS.rglob("test_*.py")
        if path.relative_to(TESTS).parts[0] not in ("browser", "oldest", "parity")
    ]
    return set().union(*(imported(path.read_text(encoding="utf-8")) for path in files))


def declared(name: str) -> str | None:
    """The file that is declared to test a module."""
    folder = next((one for one in CONFORMANCE if name.startswith(f"{one}.")), None)
    return (
        CONFORMANCE[folder]
        if folder
        else next((file for file, parts in THROUGH.items() if name in parts.split()), None)
    )


def test_every_module_is_imported_by_a_test_or_declared():
    forgotten = [name for name in modules() if name not in tried() and declared(name) is None]
    assert not forgotten, (
        f"No test imports {', '.join(forgotten)}: write one, or declare in THROUGH the file that"
        " tests it."
    )


def test_what_is_declared_is_there():
    assert [
        file for file in [*CONFORMANCE.values(), *THROUGH] if not (TESTS / file).is_file()
    ] == []
    assert all((SOURCE / folder.replace(".", "/")).is_dir() for folder in CONFORMANCE)
    gone = {part for parts in THROUGH.values() for part in parts.split()} - set(modules())
    assert not gone, f"THROUGH names modules that are not there: {', '.join(sorted(gone))}."


@pytest.mark.parametrize(
    "folder", sorted({str(path.parent.relative_to(TESTS)) for path in TESTS.rglob("test_*.py")})
)
def test_a_folder_of_tests_mirrors_one_of_the_source(folder):
    top = folder.split("/")[0]
    assert top in OWN or (SOURCE / folder).is_dir(), (
        f"tests/{folder} mirrors no folder of src/attnlab."
    )


def test_the_reader_of_imports_sees_what_it_must():
    text = (
        "import attnlab as al\ndef f():\n    from attnlab.limits import events\n    al.limit;"
        " al.models.load\n    from attnlab import Spec\n"
    )
    assert {"limits.events", "limits.entry", "spec"} <= imported(text)
    assert "models.load" in imported(text) and len(imported(text)) > 6
    assert "engine.wall" not in imported(text)
