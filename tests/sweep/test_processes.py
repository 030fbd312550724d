"""Sweeps with real processes: local workers, and what is left of them after signals. No test
depends on the clock.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import attnlab as al
from attnlab.sweep.engines import Task, WorkerLost
from attnlab.sweep.engines.processes import Processes, WorkerFailed
from sweep_samples import TINY, changed, results

PATIENCE = 120.0
"""Seconds that a test waits for what happens in milliseconds on an idle machine."""

AWKWARD = """
import os, pathlib, signal
import numpy as np
from attnlab.analysis import observables
from attnlab.starts import start_laws

@start_laws.register("marked")
def marked(n, d, *, rng=None):
    "Unit vectors; n = 5 says which process draws them."
    if n == 5:
        (pathlib.Path(os.environ["SWEEP_TEST_FOLDER"]) / f"worker-{os.getpid()}").touch()
    x = np.random.default_rng(rng).normal(size=(n, d))
    return x / np.linalg.norm(x, axis=1)[:, None]

@observables.register("awkward")
def awkward(run):
    "n = 4 kills its process."
    if run.n == 4:
        os.kill(os.getpid(), signal.SIGKILL)
    print("this must not be among the answers")
    return np.full(len(run.times), float(run.n))
"""

SWEEP = """
seeds = {seeds}
axes = {{ "start.n, solve.t_end" = {n} }}
numbers = {{ a = {{ observable = "awkward" }} }}
[base]
weights = {{ family = "identity" }}
dynamics = {{ geometry = "sphere" }}
start = {{ law = "marked", d = 3 }}
solve = {{ stepper = "euler", dt = 1e-6, max_steps = 1_000_000_000, saves = 3 }}
"""

ENDLESS = 1e3
"""The time to which n = 5 is integrated: 10^9 steps of compiled code."""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with a file that registers an awkward observable."""
    monkeypatch.setenv("SWEEP_TEST_FOLDER", str(tmp_path))
    (tmp_path / "awkward.py").write_text(AWKWARD)
    return tmp_path


def write_sweep(place, n, seeds=2):
    ends = [[k, ENDLESS if k == 5 else 1e-5] for k in n]
    (place / "some.toml").write_text(SWEEP.format(n=ends, seeds=seeds))
    return place / "some.toml"


def start_sweep(place, *options):
    """`attnlab sweep` in a process of its own."""
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from attnlab.cli"
        " import main; main()"
    )
    command = [
        sys.executable,
        "-c",
        code,
        "--import",
        place / "awkward.py",
        "sweep",
        place / "some.toml",
        *options,
    ]
    return subprocess.Popen(
        list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def wait_for(found, what):
    """Wait until found() is true."""
    end = time.monotonic() + PATIENCE
    while not (answer := found()):
        assert time.monotonic() < end, what
        time.sleep(0.05)
    return answer


def workers_in(place, process):
    """The workers of a process that are in the middle of n = 5; the process itself has tried that
    cell before.
    """
    return [
        number
        for file in place.glob("worker-*")
        if (number := int(file.name.split("-")[1])) != process.pid
    ]


def is_running(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_workers_compute_what_one_process_computes(tmp_path):
    here, there = (
        al.Sweep.from_dict(changed(TINY, seeds=20), tmp_path / f"{name}.toml")
        for name in ("here", "there")
    )
    here.run(workers=0)
    tally = there.run(workers=2)
    assert tally.computed == 40 and tally.is_ok
    assert results(there.rows_path) == results(here.rows_path)
    assert there.run(workers=2).computed == 0
    assert sorted(os.listdir(tmp_path)) == ["here.sqlite", "there.sqlite"]


def test_a_cell_that_kills_its_worker_is_crashed_alone_and_files_of_the_user_travel(place):
    write_sweep(place, [3, 4, 6])
    process = start_sweep(place, "--workers", 2)
    said, complained = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    found = {(int(key[0]), int(key[2])): row for key, row in results(place / "some.sqlite").items()}
    assert {key: row[1] for key, row in found.items()} == {
        (n, seed): "crashed" if n == 4 else "ok" for n in (3, 4, 6) for seed in (0, 1)
    }
    assert all(row[2] == {"a": float(n)} for (n, _), row in found.items() if row[1] == "ok")
    assert "SIGKILL" in found[4, 0][3]
    assert "2 failed" in said and "--retry failed" in complained
    assert "start.n = 4, solve.t_end = 1e-05, start.rng = 0: crashed" in complained


def test_workers_that_do_not_know_a_name_say_so_before_any_cell(tmp_path, monkeypatch):
    from attnlab.analysis import observables

    monkeypatch.setitem(observables._things, "known_here", lambda run: run.times)
    sweep = al.Sweep.from_dict(
        changed(TINY, numbers={"a": {"observable": "known_here"}}), tmp_path / "some.toml"
    )
    with pytest.raises(LookupError, match=r"known_here.*imports="):
        sweep.run(workers=1)
    assert results(sweep.rows_path) == {}


@pytest.mark.parametrize(
    ("end", "code"),
    [
        pytest.param(signal.SIGINT, 130, marks=pytest.mark.slow),
        pytest.param(signal.SIGTERM, 143, marks=pytest.mark.slow),
        (signal.SIGKILL, -9),
    ],
)
def test_signals_keep_the_rows_and_end_the_workers(place, end, code):
    write_sweep(place, [3, 6, 5], seeds=4)  # n = 5 never ends
    process = start_sweep(place, "--workers", 2)
    try:
        workers = wait_for(
            lambda: len(found := workers_in(place, process)) == 2 and found,
            "both workers should be at work",
        )
        if end == signal.SIGKILL:
            second = start_sweep(place)
            _, words = second.communicate(timeout=PATIENCE)
            assert (
                second.returncode == 2
                and f"Process {process.pid} is writing" in words
                and "\n" not in words.strip()
            )
        process.send_signal(end)
        _, words = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert process.returncode == code and "Traceback" not in words
    assert code == -9 or "the same command continues" in words
    before = results(place / "some.sqlite")
    assert 3 <= len(before) <= 8 and all(
        row[2] == {"a": float(key[0])} for key, row in before.items()
    )
    write_sweep(place, [3, 6], seeds=4)
    again = start_sweep(place, "--workers", 0)  # at once: neither lock nor database is held
    words, _ = again.communicate(timeout=PATIENCE)
    assert again.returncode == 0 and f"{8 - len(before)} cells computed" in words
    after = results(place / "some.sqlite")
    assert len(after) == 8 and after.items() >= before.items()
    wait_for(lambda: not any(map(is_running, workers)), "the workers should end by themselves")


def test_workers_that_cannot_start_are_an_error_that_says_what_they_said(monkeypatch):
    monkeypatch.setenv("PYTHONHOME", "/nonexistent")
    with (
        Processes({"first": {}}, workers=1) as engine,
        pytest.raises(WorkerFailed, match="ended before they were ready"),
    ):
        engine.submit(Task((("a", {}),)))
        list(engine.results())


def test_a_worker_that_ends_costs_only_the_task_that_it_was_at(tmp_path):
    sweep = al.Sweep.from_dict(TINY, tmp_path / "some.toml")
    cells = [(sweep.digest_of(cell), cell) for cell in sweep.grid]
    with Processes({**sweep.head(), "first": cells[0][1]}, workers=1) as engine:
        for cell in cells:
            engine.submit(Task((cell,)))
        found, killed = [], 0
        for news in engine.results():
            if news is not None:
                found.append(news)
                if not killed:
                    killed = engine._alive[0]._process.pid
                    os.kill(killed, signal.SIGKILL)
    assert sorted(task.cells[0][0] for task, _ in found) == sorted(digest for digest, _ in cells)
    assert sum(isinstance(outcome, WorkerLost) for _, outcome in found) <= 1
    wait_for(lambda: not is_running(killed), "the killed worker should be gone")
