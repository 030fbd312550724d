"""Experiments of declared parts: every case is measured once, whatever interrupts it, and what
comes back has the same bits.
"""

from __future__ import annotations

import inspect
import itertools
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray
from typer.testing import CliRunner

import attnlab as al
from attnlab.cli import app
from attnlab.experiments import experiments, reproduce
from attnlab.experiments.common.heads import Trained
from attnlab.experiments.datasets import table_of_rows
from attnlab.experiments.exact import from_text, to_text
from attnlab.experiments.kept_rows import KeptRows, digest_of, open_rows
from attnlab.experiments.measuring import CaseFailed
from attnlab.experiments.parts import Part, Parts, grids_of
from attnlab.experiments.record import Claim, Experiment
from attnlab.experiments.reproduce import _texts_outside, key_of
from attnlab.experiments.results import read_data
from attnlab.experiments.spoils import changed
from attnlab.registry import UnknownName
from attnlab.render.style import new_figure
from attnlab.sweep.grid import Grid
from clock import PATIENCE
from progress_record import recorded

GRID = Grid(
    {"law": ["cube", "ball"], "n": [2, 3, 5], "start": range(2)},
    small={"n": [2]},
    exclude=[{"law": "ball", "n": 5}],
)
measured: list[tuple] = []
trouble: dict = {}
OURS: dict[str, Experiment] = {}


def measure(context, law, n, start):
    """A number and a curve of each case; where `trouble` has one for it, that."""
    measured.append((law, n, start))
    if (law, n, start) in trouble:
        raise trouble[law, n, start]
    draw = np.random.default_rng([len(law), n, start]).normal(size=4)
    return {"value": draw[0], "count": np.int8(n), "curve": draw}


def prepare(size, factor=2.0, word="a"):
    return {"factor": factor, "word": word}


def assemble(results):
    attributes = {"why": results.why, "factor": results.shared["factor"]}
    return {"rows": table_of_rows(results.rows("rows"), axes={"curve": ["time"]}, **attributes)}


def claims(data):
    return [
        Claim(
            text="The mean.",
            measured=float(data["rows"]["value"].mean()),
            low=-9,
            high=9,
            because="normal",
        )
    ]


PARTS = Parts(
    {"rows": Part(measure, GRID, "{law}, n = {n}", work=lambda law, n, start: n)}, assemble, prepare
)
TINY = Experiment(
    "tiny",
    "A tiny one",
    "nobody",
    "For the tests.",
    PARTS,
    claims,
    lambda data: {"tiny": new_figure(1.0, 1.0)},
    {"other": changed("rows", lambda rows: rows + 20)},
)
ALL = [(case["law"], case["n"], case["start"]) for case in GRID]


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    OURS.update(
        {name: experiments[name] for name in experiments if name != "tiny"}
    )  # loaded before the table is replaced
    measured.clear()
    trouble.clear()
    monkeypatch.setattr(experiments, "_things", {"tiny": TINY})


def same(one, other):
    """Equal types, shapes and bits, at every depth."""
    if isinstance(one, xarray.Dataset):
        assert list(one.variables) == list(other.variables) and set(one.coords) == set(other.coords)
        assert all(one[name].dims == other[name].dims for name in one.variables)
        same(
            {name: one[name].values for name in one.variables},
            {name: other[name].values for name in other.variables},
        )
        same({**one.attrs}, {**other.attrs})
    elif isinstance(one, dict):
        assert list(one) == list(other)
        for key in one:
            same(one[key], other[key])
    elif isinstance(one, list | tuple):
        assert isinstance(other, list) and len(one) == len(other)
        for entry, its in zip(one, other, strict=True):
            same(entry, its)
    else:
        assert type(one) is type(other)
        a, b = np.asarray(one), np.asarray(other)
        assert (
            a.dtype == b.dtype
            and a.shape == b.shape
            and (a.dtype.kind in "UO" or a.tobytes() == b.tobytes())
        )
        assert a.dtype.kind not in "UO" or a.tolist() == b.tolist()


# ------------------------------------------------------------------------------------------- text

QUIET_NAN = np.array([0x7FF8000000000123], dtype="u8").view("f8")
VALUES = [
    None, True, 3, -(10**30), 0.1 + 0.2, -0.0, 5e-324, float("nan"), float("inf"), -float("inf"), "ü~\n\"\0", [], {},
    (1, [2.0, ("x",)]), np.float64(-0.0), np.int8(-3), np.bool_(True), np.float32(0.1), np.str_("word"), QUIET_NAN,
    np.zeros((0, 3)), np.arange(6).reshape(2, 3)[:, ::-1], np.array(2.5), np.array([1 + 2j]), np.array([True, False]),
    np.array(["a", "long word"]), np.array(["a", None or "b"], dtype=object), np.array([1, 2], dtype=">i4"),
    {"rows": [{"a": 1.5, "b": np.arange(3)}], "none": None},
    xarray.Dataset({"x": (("time", "k"), np.ones((2, 2)), {"units": "s"}), "name": ("k", ["a", "b"]), "one": ((), 2)},
                   coords={"time": [0.5, 1.0]}, attrs={"n": 3, "why": "", "size": np.int64(4), "t": np.float64("nan")}),
]  # fmt: skip


@pytest.mark.parametrize(
    "value", VALUES, ids=lambda value: f"{type(value).__name__} {str(value)[:20]!r}"
)
def test_values_come_back_with_the_same_bits(value):
    text = to_text(value)
    assert json.loads(text) is not ... and "NaN" not in text and "Infinity" not in text
    same(value, from_text(text))


@pytest.mark.parametrize(
    "value",
    [object(), {1: 2}, {"~": 1}, {1, 2}, np.array([object()]), 1j, np.array(["1"], dtype="S1")],
    ids=["object", "number as key", "tilde as key", "set", "array of objects", "complex", "bytes"],
)
def test_what_has_no_text_is_refused(value):
    with pytest.raises(TypeError, match="measure"):
        to_text({"a": [value]})


# ------------------------------------------------------------------------------------------- cases


def test_grids_of_are_nested_loops():
    places = [("cube", (10, 30), 3), (("ball", "cube"), 5, 1)]
    wanted = [("cube", n, start) for n in (10, 30) for start in (1, 2, 3)] + [
        (law, 5, 1) for law in ("ball", "cube")
    ]
    cases = Part(measure, grids_of("law, n, start", places, first=1)).cases("full")
    assert [tuple(case.values()) for case in cases] == wanted and list(cases[0]) == [
        "law",
        "n",
        "start",
    ]


def test_cases_of_both_sizes():
    part = Part(measure, GRID)
    assert [tuple(case.values()) for case in part.cases("full")] == ALL and len(ALL) == 10
    assert [tuple(case.values()) for case in part.cases("small")] == [
        one for one in ALL if one[1] == 2
    ]
    assert Part(measure, lambda size: Grid({"n": [1] if size == "small" else [1, 2]})).cases(
        "small"
    ) == [{"n": 1}]
    assert Part(measure).cases("full") == [{}]


def test_rows_are_those_of_a_loop():
    rows = [
        {"law": law, "n": n, "start": start, **measure(None, law, n, start)}
        for law, n, start in ALL
    ]
    data = PARTS("full", al.Progress())
    same(table_of_rows(rows, axes={"curve": ["time"]}, why="", factor=2.0), data["rows"])
    assert data["rows"]["curve"].dims == ("row", "time") and data["rows"]["count"].dtype == np.int8


def test_parts_without_assemble_are_tables_and_datasets():
    one = xarray.Dataset({"x": ("k", [1.0])}, attrs={"a": 1})
    parts = Parts(
        {
            "rows": Part(lambda _, n: [{"a": n}, {"a": -n}], Grid({"n": [1, 2]})),
            "run": Part(lambda _: one),
            "more": Part(lambda _: {"limit": one, "verdicts": one}),
        },
        leave_out=lambda shared, case: "no two" if case.get("n") == 2 else "",
    )
    data = parts("small")
    assert list(data) == ["rows", "run", "limit", "verdicts"] and data["rows"][
        "a"
    ].values.tolist() == [1, -1]
    assert data["rows"].attrs == {"why": "no two"} and data["run"].identical(one)


def test_what_is_left_out_has_a_reason(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "attnlab.experiments.common.heads.trained_model",
        lambda size, model: (None, "`attnlab fetch minilm` downloads it."),
    )
    grid = Grid({"family": ["synthetic", "trained"], "rng": range(2)})
    parts = Parts(
        {"rows": Part(lambda context, family, rng: {"value": rng}, grid)},
        prepare=Trained,
        leave_out=Trained.without,
    )
    monkeypatch.setattr(experiments, "_things", {"tiny": replace(TINY, compute=parts)})
    record = reproduce("tiny", tmp_path, size="small")
    assert record["without"] == "`attnlab fetch minilm` downloads it."
    rows = xarray.open_dataset(tmp_path / "tiny" / "data" / "rows.nc", engine="h5netcdf")
    assert rows["family"].values.tolist() == ["synthetic"] * 2


def test_options_are_those_of_prepare(tmp_path):
    assert list(inspect.signature(PARTS).parameters) == ["size", "progress", "factor", "word"]
    assert PARTS("small", factor=3.0)["rows"].attrs["factor"] == 3.0
    with pytest.raises(TypeError, match="factr"):
        PARTS("small", factr=3.0)
    with pytest.raises(
        UnknownName, match="option of the experiment tiny 'factr'. Did you mean 'factor'"
    ):
        reproduce("tiny", tmp_path, factr=3.0)


# -------------------------------------------------------------------------------------------
# interruptions


@pytest.mark.parametrize(
    "problem", [KeyboardInterrupt, SystemExit, ZeroDivisionError("by zero")], ids=repr
)
def test_what_was_measured_is_not_measured_again(tmp_path, problem):
    whole = PARTS("full")["rows"]
    measured.clear()
    for number in (1, 4, 7):  # three attempts end within a case
        trouble[ALL[number]] = problem
        with pytest.raises(CaseFailed if isinstance(problem, Exception) else problem):
            reproduce("tiny", tmp_path)
        trouble.clear()
        assert measured[-1] == ALL[number] and not (tmp_path / "tiny").exists()
    assert reproduce("tiny", tmp_path)["holds"]
    assert sorted(measured) == sorted(
        [*ALL, ALL[1], ALL[4], ALL[7]]
    )  # each once, and those that ended an attempt
    assert sorted(os.listdir(tmp_path)) == ["tiny"]
    assert sorted(os.listdir(tmp_path / "tiny" / "data")) == [
        "key.json",
        "rows.nc",
        "rows_by_row.csv",
        "rows_by_row_time.csv",
    ]
    kept = read_data(tmp_path / "tiny" / "data", key_of(TINY, "full", {}))["rows"]
    for name in ("value", "curve", "count"):
        same(whole[name].values, kept[name].values)


def test_a_measure_that_raises_is_a_sentence_that_names_the_case(tmp_path):
    trouble["ball", 3, 1] = ValueError("beta must be positive")
    with pytest.raises(
        CaseFailed,
        match=r"case law = 'ball', n = 3, start = 1 of the part 'rows' .*ValueError: beta must be "
        r"positive \(test_parts.py, line \d+\)",
    ) as caught:
        PARTS("full")
    assert isinstance(caught.value.__cause__, ValueError)
    done = CliRunner().invoke(app(), ["reproduce", "tiny", "-o", str(tmp_path)])
    assert (
        done.exit_code == 1
        and "n = 3, start = 1" in done.output
        and "command continues" in done.output
    )
    trouble.clear()
    measured.clear()
    assert CliRunner().invoke(app(), ["reproduce", "tiny", "-o", str(tmp_path)]).exit_code == 0
    assert measured == ALL[ALL.index(("ball", 3, 1)) :]


def test_rows_of_another_size_option_or_text_are_measured_again(tmp_path, monkeypatch):
    def interrupt_at(case, **options):
        measured.clear()
        trouble[case] = KeyboardInterrupt
        with pytest.raises(KeyboardInterrupt):
            reproduce("tiny", tmp_path, **options)
        trouble.clear()
        return measured[:-1]

    assert interrupt_at(ALL[3]) == ALL[:3]
    assert interrupt_at(ALL[5], factor=3.0) == ALL[:5]
    assert interrupt_at(ALL[1], size="small", factor=3.0) == ALL[:1]
    assert interrupt_at(ALL[6], factor=3.0) == [
        ALL[0],
        ALL[5],
    ]  # the first row was replaced on the way
    assert interrupt_at(ALL[8], factor=3.0) == ALL[6:8]
    monkeypatch.setattr(sys.modules[key_of.__module__], "_texts_outside", lambda *_: ["edited"])
    assert interrupt_at(ALL[2], factor=3.0) == ALL[:2]


def test_the_key_depends_on_the_file_of_a_users_experiment(tmp_path):
    file = tmp_path / "mine.py"
    text = (
        "from attnlab.experiments.parts import *\ndef measure(_): return {'a': 1}\nparts ="
        " Parts({'one': Part(measure)})"
    )
    keys = set()
    for version in (text, text, text.replace("1", "2")):
        file.write_text(version)
        space: dict = {}
        exec(compile(version, file, "exec"), space)
        keys.add(key_of(replace(TINY, compute=space["parts"]), "full", {}))
    assert len(keys) == 2
    assert all(
        _texts_outside(experiment, Path(al.__file__).parent) == [] for experiment in OURS.values()
    )


@pytest.mark.parametrize("damage", ["cut", "nonsense", "row"])
def test_damaged_rows_are_measured_again(tmp_path, damage):
    trouble[ALL[4]] = KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt):
        reproduce("tiny", tmp_path)
    trouble.clear()
    measured.clear()
    path = tmp_path / ".tiny.unfinished" / "rows" / "rows.sqlite"
    if damage == "row":  # a number that SQLite cannot know to be wrong
        with sqlite3.connect(path) as connection:
            digest = digest_of("rows", {"law": "cube", "n": 2, "start": 1})
            (text,) = connection.execute(
                "SELECT numbers FROM cells WHERE digest = ?", [digest]
            ).fetchone()
            place = text.index("bytes") + 12  # within the bits of `value`
            text = text[:place] + ("A" if text[place] != "A" else "B") + text[place + 1 :]
            connection.execute("UPDATE cells SET numbers = ? WHERE digest = ?", [text, digest])
        connection.close()
    else:
        path.write_bytes(path.read_bytes()[:-4000] if damage == "cut" else b"nonsense")
    assert reproduce("tiny", tmp_path)["holds"]
    assert measured == (ALL if damage != "row" else [ALL[1], *ALL[4:]])


SCRIPT = """
import os, signal, sys, time
from pathlib import Path
from attnlab.experiments.kept_rows import open_rows
from attnlab.experiments.parts import Part, Parts
from attnlab.sweep.grid import Grid

def interrupted(*_):
    os.write(1, b"interrupted\\n")
    raise KeyboardInterrupt

def measure(context, n):
    with open(sys.argv[2], "a") as log:
        log.write(f"{n}\\n")
    os.write(1, b"%d\\n" % n)                                # one write: threads do not mix their lines
    while n >= 5 and not Path(sys.argv[3]).exists():         # until the signal has done its work
        time.sleep(0.01)
    return {"value": n / 3}

signal.signal(signal.SIGINT, interrupted)

parts = Parts({"rows": Part(measure, Grid({"n": range(12)}), at_once=int(sys.argv[4]))}, lambda results: results.rows("rows"))
with open_rows(Path(sys.argv[1]), "key") as kept:
    print(parts("full", kept=kept) == [{"n": n, "value": n / 3} for n in range(12)], flush=True)
"""


@pytest.mark.parametrize(
    ("kind", "at_once"),
    [(signal.SIGKILL, 1), (signal.SIGTERM, 1), (signal.SIGINT, 2), (signal.SIGKILL, 2)],
)
def test_a_killed_process_loses_only_the_rows_in_flight(tmp_path, kind, at_once):
    (tmp_path / "script.py").write_text(SCRIPT)

    def start():
        words = [*(tmp_path / name for name in ("script.py", "rows", "log", "go")), str(at_once)]
        return subprocess.Popen(
            [sys.executable, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    with start() as first:
        waited = set(
            range(5, 5 + at_once)
        )  # all that are in flight have begun, whichever thread is first
        while waited:
            waited.discard(int(first.stdout.readline()))
        first.send_signal(kind)
        if kind == signal.SIGINT:
            assert first.stdout.readline() == "interrupted\n"
        else:
            first.wait(timeout=PATIENCE)
        (tmp_path / "go").touch()  # threads of an interrupted process may end what they are at
        first.stdout.read()
        assert first.wait(timeout=PATIENCE) != 0
    begun = [int(line) for line in (tmp_path / "log").read_text().split()]
    with start() as second:
        assert second.stdout.read().split()[-1] == "True" and second.wait(timeout=PATIENCE) == 0
    again = [int(line) for line in (tmp_path / "log").read_text().split()][len(begun) :]
    assert (
        len(begun) == len(set(begun))
        and len(again) == len(set(again))
        and set(begun) | set(again) == set(range(12))
    )
    assert set(begun) & set(again) == set(range(5, 5 + at_once))


# -------------------------------------------------------------------------------------------
# threads and progress


def test_cases_at_once_come_in_order_and_meet(tmp_path):
    meet, threads = threading.Barrier(2, timeout=PATIENCE), set()

    def slow(context, n):
        threads.add(threading.get_ident())
        meet.wait()
        context.progress(0.5, "half")  # tells nobody: it is not the caller's thread
        return {"value": n}

    with recorded() as heard:
        data = Parts({"rows": Part(slow, Grid({"n": range(6)}), "n = {n}", at_once=2)})(
            "full", al.Progress(heard)
        )
    assert data["rows"]["value"].values.tolist() == list(range(6)) and len(threads) == 2
    assert threading.get_ident() not in threads and heard.wrong == [] and heard.fractions[-1] == 1.0


def test_cancelling_ends_the_threads():
    progress, begun = al.Progress(), threading.Event()

    def endless(context, n):
        begun.set()
        run = al.simulate(
            al.Weights(V=np.eye(2)),
            np.eye(2),
            t_end=1e5,
            stepper="rk4",
            dt=1e-4,
            frame="z",
            times=[0.0, 1e5],
            max_steps=10**10,
        )
        return {"value": run.n}

    def cancel():
        begun.wait(PATIENCE)
        progress.cancel()

    threading.Thread(target=cancel).start()
    with pytest.raises(al.Cancelled):
        Parts({"rows": Part(endless, Grid({"n": range(4)}), at_once=2)})("full", progress)


def test_progress_follows_the_work_and_goes_on_where_it_was(tmp_path):
    heard: list[tuple[float, str]] = []
    parts = replace(
        PARTS,
        parts={"first": Part(lambda _: {"a": 1}), "rows": replace(PARTS.parts["rows"], share=3.0)},
    )
    parts("full", al.Progress(lambda *news: heard.append(news)))
    fractions = [fraction for fraction, _ in heard]
    assert fractions == sorted(fractions) and fractions[0] == 0.0 and fractions[-1] == 1.0
    whole = sum(n for _, n, _ in ALL)
    begun = list(itertools.accumulate([n for _, n, _ in ALL], initial=0))[:-1]
    for done, (law, n, _) in zip(begun, ALL, strict=True):
        assert any(
            abs(fraction - 0.25 - 0.75 * done / whole) < 1e-12 and words == f"{law}, n = {n}"
            for fraction, words in heard
        )
    with open_rows(tmp_path / "rows", "key") as kept:
        trouble[ALL[7]] = KeyboardInterrupt
        with pytest.raises(KeyboardInterrupt):
            PARTS("full", kept=kept)
    trouble.clear()
    heard.clear()
    with open_rows(tmp_path / "rows", "key") as kept:
        PARTS("full", al.Progress(lambda *news: heard.append(news)), kept=kept)
    assert min(fraction for fraction, words in heard if words.startswith("ball")) == pytest.approx(
        begun[7] / whole
    )


def test_rows_are_kept_before_the_next_case_begins(tmp_path):
    """Another process sees each row as soon as the next case begins."""
    seen = []

    def look(context, n):
        with sqlite3.connect(f"file:{tmp_path}/rows/rows.sqlite?mode=ro", uri=True) as connection:
            seen.append(connection.execute("SELECT count(*) FROM cells").fetchone()[0])
        connection.close()
        return {"n": n}

    with open_rows(tmp_path / "rows", "key") as kept:
        Parts({"rows": Part(look, Grid({"n": range(5)}))})("full", kept=kept)
    assert seen == [0, 1, 2, 3, 4]


def test_rows_in_memory_are_read_from_their_text():
    kept = KeptRows()
    kept.write([kept.row("d", {"n": 1}, (1, 2.0))])
    assert (
        "d" in kept
        and "e" not in kept
        and kept.value("d") == [1, 2.0]
        and kept.value("d") is not kept.value("d")
    )
