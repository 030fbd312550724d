"""What is wrong with a sweep is said in a sentence before anything runs, and nothing is changed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from mutations import hostile_values  # noqa: E402

import attnlab as al
from attnlab.registry import UnknownName
from attnlab.sweep import Rows
from command_line import attnlab, refused
from sweep_samples import BASE, TINY, changed, results

TOML = """
seeds = 3
small = { seeds = 1 }
[base.weights]
family = "identity"
[base.dynamics]
geometry = "sphere"
[base.start]
law = "sphere"
n = 4
d = 3
[base.solve]
t_end = 1.0
saves = 3
[axes]
"dynamics.beta" = [0.5, 2.0]
[numbers]
spread = { observable = "diameter" }
"""


def base(**sections):
    return {**BASE, **sections}


WRONG = {
    "no base": ({key: TINY[key] for key in ("axes", "numbers")}, ["[base]"]),
    "no numbers": ({key: TINY[key] for key in ("axes", "base")}, ["[numbers]"]),
    "no axes": (changed({key: TINY[key] for key in ("base", "numbers")}), ["[axes]", "seeds"]),
    "unknown key": (changed(TINY, axis={}), ["'axis'", "'axes'"]),
    "unknown section of base": (changed(TINY, base={**BASE, "strat": {}}), ["'strat'", "'start'"]),
    "unknown section of an axis": (
        changed(TINY, axes={"dynamic.beta": [1]}),
        ["'dynamic'", "'dynamics'"],
    ),
    "unknown key of an axis": (
        changed(TINY, axes={"dynamics.betaa": [1]}),
        ["'betaa'", "'beta'", "dynamics.betaa = 1"],
    ),
    "unknown key of base": (
        changed(TINY, base=base(solve={"t_ende": 1.0})),
        ["'t_ende'", "'t_end'"],
    ),
    "empty axis": (changed(TINY, axes={"dynamics.beta": []}), ["dynamics.beta", "empty"]),
    "both seeds": (changed(TINY, axes={"start.rng": [1]}), ["seeds", "start.rng"]),
    "no seeds": (changed(TINY, seeds=0), ["seeds", "0"]),
    "seeds are words": (changed(TINY, seeds="ten"), ["seeds", "'ten'"]),
    "a batch": (
        changed(TINY, base=base(start={**BASE["start"], "batch": 3})),
        ["seeds instead of start.batch"],
    ),
    "an axis of batches": (
        changed(TINY, axes={"start.batch": [1, 2]}),
        ["seeds instead of start.batch"],
    ),
    "an axis in an axis": (
        changed(TINY, axes={"dynamics": [{}], "dynamics.beta": [1, 2]}),
        ["'dynamics.beta'", "part"],
    ),
    "an axis into a number": (
        changed(TINY, axes={"start.n.x": [1, 2]}),
        ["start.n.x", "neither a table nor a list"],
    ),
    "an axis beyond a list": (
        changed(
            TINY,
            base=base(weights={"family": "spectrum", "eigenvalues": [1.0, 0.5, 0.2]}),
            axes={"weights.eigenvalues.3": [1, 2]},
        ),
        ["number of an entry", "list of 3"],
    ),
    "an axis of one word": (changed(TINY, axes={"beta": [1]}), ["'beta'", "section"]),
    "small of no axis": (
        changed(TINY, small={"dynamics.bet": [1]}),
        ["'dynamics.bet'", "'dynamics.beta'"],
    ),
    "excluded by no axis": (
        changed(TINY, exclude=[{"dynamics.bet": 1}]),
        ["'dynamics.bet'", "'dynamics.beta'"],
    ),
    "all excluded": (changed(TINY, exclude=[{"dynamics.beta": [0.5, 2]}]), ["at least one cell"]),
    "unknown observable": (
        changed(TINY, numbers={"a": {"observable": "diametre"}}),
        ["'diametre'", "'diameter'"],
    ),
    "unknown theorem": (
        changed(TINY, numbers={"a": {"verdict": "politope"}}),
        ["'politope'", "'polytope'"],
    ),
    "unknown field": (changed(TINY, numbers={"a": {"limit": "cuont"}}), ["'cuont'", "'count'"]),
    "a field of many numbers": (
        changed(TINY, numbers={"a": {"limit": "points"}}),
        ["'points'", "Known"],
    ),
    "unknown kind": (
        changed(TINY, numbers={"a": {"observabel": "diameter"}}),
        ["'observabel'", "'observable'"],
    ),
    "two kinds": (
        changed(TINY, numbers={"a": {"observable": "diameter", "limit": "count"}}),
        ["observable and limit"],
    ),
    "no kind": (changed(TINY, numbers={"a": {"at": "last"}}), ["one of", "none"]),
    "unknown place": (
        changed(TINY, numbers={"a": {"observable": "diameter", "at": "lst"}}),
        ["'lst'", "'last'"],
    ),
    "a time before": (
        changed(TINY, numbers={"a": {"observable": "diameter", "at": -1}}),
        ["0 or more", "-1"],
    ),
    "a time that is none": (
        changed(TINY, numbers={"a": {"observable": "diameter", "at": float("nan")}}),
        ["at must be"],
    ),
    "unknown passage": (
        changed(TINY, numbers={"a": {"observable": "diameter", "at": {"belw": 1}}}),
        ["'belw'", "'below'"],
    ),
    "at of a limit": (
        changed(TINY, numbers={"a": {"limit": "count", "at": "last"}}),
        ["at is only for an observable"],
    ),
    "the name of a column": (
        changed(TINY, numbers={"status": {"limit": "count"}}),
        ["'status'", "another name"],
    ),
    "a number that is none": (changed(TINY, numbers={"a": "diameter"}), ["table such as"]),
    "an invalid first cell": (
        changed(TINY, base=base(solve={"t_end": -1.0})),
        ["t_end must be a positive number", "dynamics.beta = 0.5"],
    ),
    "an invalid later value": (
        changed(TINY, axes={"start.n": [3, 0, 4]}),
        ["start.n = 0", "exclude"],
    ),
    "a word for a number": (
        changed(TINY, axes={"dynamics.beta": [1.0, "two"]}),
        ["dynamics.beta = 'two'"],
    ),
    "nan": (changed(TINY, axes={"dynamics.beta": [1.0, float("nan")]}), ["finite", "nan"]),
    "nan in base": (
        changed(TINY, base=base(solve={"t_end": float("nan")})),
        ["Spec.solve.t_end", "finite"],
    ),
    "a file that was not read": (
        changed(TINY, axes={"weights.V": ["none.npy"]}, base=base(weights={"family": "given"})),
        ["none.npy"],
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_sweeps(case, tmp_path):
    data, words = WRONG[case]
    with pytest.raises((ValueError, UnknownName)) as caught:
        al.Sweep.from_dict(data, tmp_path / "some.toml").run(workers=0)
    assert all(word in str(caught.value) for word in words), str(caught.value)
    assert os.listdir(tmp_path) == []


def test_an_observable_with_many_values_is_refused_with_its_shape(tmp_path, monkeypatch):
    from attnlab.analysis import observables

    monkeypatch.setitem(observables._things, "norms", lambda run: np.linalg.norm(run.x, axis=-1))
    sweep = al.Sweep.from_dict(
        changed(TINY, numbers={"a": {"observable": "norms"}}), tmp_path / "some.toml"
    )
    with pytest.raises(ValueError, match=r"one value at each time.*has 5 values.*\(1, 5\)"):
        sweep.run()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "options",
    [
        {"workers": -1},
        {"workers": 1.5},
        {"workers": True},
        {"workers": 10**6},
        {"retry": "nothing"},
        {"workers": 1, "client": "local"},
        {"imports": ["none.py"]},
        {"progress": "bar"},
    ],
)
def test_wrong_options(tmp_path, options):
    with pytest.raises((ValueError, UnknownName, OSError, TypeError)):
        al.Sweep.from_dict(TINY, tmp_path / "some.toml").run(**options)
    assert os.listdir(tmp_path) == []


def test_a_sweep_without_a_file_has_no_place_for_its_results():
    with pytest.raises(ValueError, match="has no file"):
        al.Sweep.from_dict(TINY).run()


def test_more_than_a_million_cells_need_a_yes(workplace):
    Path("some.toml").write_text(TOML.replace("seeds = 3", "seeds = 600_000"))
    assert "1,200,000 cells" in (message := refused("sweep", "some.toml")) and "--yes" in message
    assert os.listdir() == ["some.toml"]


def test_files_that_are_no_sweep(workplace):
    Path("twice.toml").write_text(TOML + "[base.start]\nn = 3\n")
    Path("key.toml").write_text(TOML.replace("n = 4", "n = 4\nn = 5"))
    Path("word.toml").write_bytes(b"\xff\xfe")
    Path("deep.toml").write_text("a = " + "[" * 5000 + "]" * 5000)
    Path("spec.toml").write_text('[weights]\nfamily = "identity"\n')
    Path("folder.toml").mkdir()
    os.mkfifo("pipe.toml")
    for name, words in {
        "twice": "twice (at line 19",
        "key": "line 11",
        "word": "not a text file",
        "deep": "inside each other",
        "spec": "'weights'",
        "folder": "is a folder",
        "pipe": "device or a pipe",
        "none": "There is no sweep",
    }.items():
        assert words in refused("sweep", f"{name}.toml"), name
    assert "must end in .toml" in refused("sweep", __file__)


def test_results_that_are_not_ours_are_not_touched(workplace):
    Path("some.toml").write_text(TOML)
    Path("some.sqlite").write_bytes(b"a diary" * 100)
    assert "Nothing in it was changed" in refused("sweep", "some.toml")
    assert Path("some.sqlite").read_bytes() == b"a diary" * 100 and sorted(os.listdir()) == [
        "some.sqlite",
        "some.toml",
    ]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_refused(workplace):
    Path("some.toml").write_text(TOML)
    workplace.chmod(0o500)
    try:
        assert "You may not write to the folder" in refused("sweep", "some.toml")
    finally:
        workplace.chmod(0o700)


def test_wrong_options_of_the_command(workplace):
    Path("some.toml").write_text(TOML)
    for words, options in (
        ("must end in", ["--export", "a.doc"]),
        ("'dynamics.bet'", ["--plot", "dynamics.bet,spread"]),
        ("two or three", ["--plot", "spread"]),
        ("--plot X,Y", ["-o", "a.png"]),
        ("'failde'", ["--retry", "failde"]),
        ("-5", ["--workers", "-5"]),
        ("name of data", ["--plot", "dynamics.beta,spread", "-o", "a.nc"]),
    ):
        assert words in refused("sweep", "some.toml", *options), words
    assert os.listdir() == ["some.toml"]


def test_the_command_from_the_small_version_to_a_pruned_file(workplace):
    Path("some.toml").write_text(TOML)
    assert "2 cells computed" in attnlab("sweep", "some.toml", "--small", "--workers", 0).stdout
    said = attnlab("sweep", "some.toml", "--workers", 0, "--export", "all.csv").stdout
    assert (
        "6 cells, 2 of them are in some.sqlite already" in said
        and "4 cells computed" in said
        and "three timed cells" in said
    )
    assert len(Path("all.csv").read_text().splitlines()) == 7
    assert "exists already" in refused("sweep", "some.toml", "--export", "all.csv")
    changed_text = TOML.replace("[0.5, 2.0]", "[0.5, 3.0]").replace(
        "t_end = 1.0", "t_end = 1.0\nmax_steps = 100000"
    )
    Path("some.toml").write_text(changed_text)
    said = attnlab("sweep", "some.toml", "--workers", 0).stdout
    assert (
        "6 rows of cells that some.toml does not have: dynamics.beta = 0.5, start.rng = 0;" in said
        and "--prune" in said
    )
    assert len(list(Rows("some.sqlite").read())) == 12
    assert "Removed" in attnlab("sweep", "some.toml", "--workers", 0, "--prune").stdout
    assert {key[0] for key in results("some.sqlite")} == {"0.5", "3.0"} and len(
        results("some.sqlite")
    ) == 6


def test_the_exit_code_is_1_while_a_cell_has_failed(workplace):
    Path("some.toml").write_text(
        TOML.replace("t_end = 1.0", "t_end = 1000.0\nmax_steps = 5").replace(
            "seeds = 3", "seeds = 5"
        )
    )
    first = attnlab("sweep", "some.toml", "--workers", 0, code=1)
    again = attnlab("sweep", "some.toml", "--workers", 0, code=1)
    for said in (first, again):
        assert (
            "10 failed" in said.stdout
            and "dynamics.beta = 0.5, start.rng = 0: max_steps." in said.stderr
        )
        assert "7 more" in said.stderr and "--retry failed" in said.stderr
    assert "10 cells computed" in first.stdout and "0 cells computed" in again.stdout
    assert (
        "10 cells computed"
        in attnlab("sweep", "some.toml", "--workers", 0, "--retry", "failed", code=1).stdout
    )


def test_files_of_numbers_are_read_by_the_client(workplace):
    np.save("one.npy", np.diag([1.0, 0.5, 0.2]))
    np.save("two.npy", np.diag([1.0, 0.3, 0.2]))
    np.save("x.npy", np.random.default_rng(0).normal(size=(4, 3)))
    Path("some.toml").write_text("""
        axes = { "weights.V" = ["one.npy", "two.npy"] }
        numbers = { spread = { observable = "diameter" } }
        [base]
        weights = { family = "given" }
        start = { law = "given", x = "x.npy" }
        solve = { t_end = 1.0, saves = 3 }
    """)
    sweep = al.Sweep.load("some.toml")
    text = json.dumps(sweep.head())
    for name in ("one.npy", "two.npy", "x.npy"):
        Path(name).unlink()
    sweep.run(workers=0)
    assert ".npy" not in text.replace('"weights.V = one.npy"', "").replace(
        '"weights.V = two.npy"', ""
    )
    for key, row in results("some.sqlite").items():
        V = np.diag([1.0, 0.5 if key[0] == "one.npy" else 0.3, 0.2])
        x0 = np.random.default_rng(0).normal(size=(4, 3))
        run = al.simulate(al.Weights(V=V), x0, t_end=1.0, saves=3, observe=["diameter"])
        assert row[2] == {"spread": run.observed["diameter"][-1]}


@pytest.mark.parametrize(
    "place",
    [
        "seeds",
        "axes",
        "numbers",
        "small",
        "exclude",
        "base",
        "axis",
        "number",
        "at",
        "start",
        "value",
    ],
)
def test_hostile_values_are_refused_or_run(place, tmp_path):
    for number, value in enumerate(hostile_values()):
        data = changed(TINY, seeds=1, axes={"dynamics.beta": [1.0]})
        match place:
            case "axis":
                data["axes"]["dynamics.beta"] = value
            case "value":
                data["axes"]["dynamics.beta"] = [1.0, value]
            case "number":
                data["numbers"] = {"a": value}
            case "at":
                data["numbers"] = {"a": {"observable": "diameter", "at": value}}
            case "start":
                data["base"]["start"] = value
            case _:
                data[place] = value
        path = tmp_path / f"{number}.toml"
        try:
            sweep = al.Sweep.from_dict(data, path)
            if len(sweep.grid) <= 40:
                sweep.run(workers=0)
        except (ValueError, TypeError, UnknownName) as problem:
            assert 10 < len(str(problem)) < 100_000
            assert not path.with_suffix(".sqlite").exists()
        else:
            assert len(sweep.grid) > 40 or len(results(path.with_suffix(".sqlite"))) == len(
                sweep.grid
            )
