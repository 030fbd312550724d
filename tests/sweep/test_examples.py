"""The ready-made sweeps: each has a page with its figure, its file is right, and its small version
runs.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from attnlab.sweep import Sweep, load, plot
from attnlab.sweep.drawing import check_columns
from places import DOCS, ROOT

NAMES = sorted(path.stem for path in (ROOT / "examples" / "sweeps").glob("*.toml"))


def small_run(name: str, folder: Path) -> Sweep:
    """The small version of a sweep, computed."""
    shutil.copyfile(ROOT / "examples" / "sweeps" / f"{name}.toml", folder / f"{name}.toml")
    sweep = Sweep.load(folder / f"{name}.toml")
    assert sweep.run(small=True, workers=0).is_ok
    return sweep


def test_there_are_sweeps_for_all_questions():
    assert len(NAMES) == 10


@pytest.mark.parametrize("name", NAMES)
def test_the_page_of_a_sweep_has_three_sentences_and_its_figure(name, from_docs):
    maker = from_docs("make_sweeps")
    page = (DOCS / "sweeps" / f"{name}.md").read_text()
    for head in ("What is asked.", "What is seen.", "What a theorem says."):
        assert f"**{head}** " in page
    assert f"(../images/sweeps/{name}.png)" in page and f"examples/sweeps/{name}.toml" in page
    assert 5_000 < (maker.IMAGES / f"{name}.png").stat().st_size < 200_000
    assert re.search(rf"^{name}$", (DOCS / "sweeps" / "index.md").read_text(), re.MULTILINE)
    check_columns(Sweep.load(maker.SWEEPS / f"{name}.toml"), maker.columns(name))


@pytest.mark.parametrize("name", ["pairs_circle", "causal", "step"])
def test_the_small_version_of_a_sweep_runs_and_is_drawn(name, tmp_path, from_docs):
    sweep = small_run(name, tmp_path)
    figure = plot(sweep, *from_docs("make_sweeps").columns(name), small=True)
    assert len(load(sweep, small=True)) == len(sweep.reduced().grid) and figure.caption


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(NAMES) - {"pairs_circle", "causal", "step"}))
def test_the_small_version_of_a_longer_sweep_runs_and_is_drawn(name, tmp_path, from_docs):
    test_the_small_version_of_a_sweep_runs_and_is_drawn(name, tmp_path, from_docs)


def test_small_beta_has_met_and_large_beta_has_not(tmp_path):
    """What the figure of the circle shows: at t = 30 all pairs have met for beta = 0.5, and some
    have not for beta = 4.
    """
    table = load(small_run("pairs_circle", tmp_path), small=True)
    assert (table.loc[table["dynamics.beta"] == 0.5, "share@30.0"] == 1).all()
    assert (table.loc[table["dynamics.beta"] == 4, "share@30.0"] < 1).all()
    assert (table["share@0.0"] < 0.2).all()


def test_the_number_of_limits_does_not_change_where_the_gap_does(tmp_path):
    table = load(small_run("gap", tmp_path), small=True)
    assert table.groupby("weights.eigenvalues.1")["limits"].min().tolist()[0] == 2
    assert table.groupby("weights.eigenvalues.1")["limits"].min().tolist()[1] > 2
