"""Starting up: a second process compiles nothing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from attnlab.engine import compile as compiling

WORK = """
import json
from numba.core.event import install_recorder

with install_recorder("numba:compile") as recorder:
    import numpy as np
    import attnlab as al

    x = np.random.default_rng(0).uniform(-1.0, 1.0, (9, 2))
    on_sphere = x / np.linalg.norm(x, axis=1, keepdims=True)
    many = np.random.default_rng(1).uniform(-1.0, 1.0, (9, 10))
    turning = np.array([[0.5, 0.8], [-0.8, 0.5]])
    one, decaying = al.Weights(V=np.eye(2)), al.Weights(V=np.diag([1.0, 0.9]))
    runs = [
        al.simulate(one, x, t_end=1.0, measure_error=True),
        al.simulate(one, np.stack([x, 2.0 * x]), t_end=1.0, mask="causal"),
        al.simulate(one, x, t_end=0.1, kernel="exp_mean", stepper="rk4", dt=0.1),
        al.simulate(decaying, x, t_end=1.0, kernel="hardmax", stepper="euler", dt=0.1),
        al.simulate(decaying, x, t_end=40.0, throw=False),
        al.simulate(one, on_sphere, t_end=1.0, geometry="sphere"),
        al.simulate(one, x, layers=3, dt=0.5),
        al.simulate(al.Weights(V=[turning, np.eye(2)]), x, t_end=1.0, frame="z"),
        al.simulate(al.Weights(V=np.eye(10)), many, t_end=1.0),
        al.simulate(one, np.random.default_rng(2).uniform(-1.0, 1.0, (700, 2)), t_end=0.1, saves=2),
    ]
    limits = [
        al.limit(one, x),
        al.limit(decaying, x, mask="causal"),
        al.limit(al.Weights(V=turning), x, work=1e4),
        al.limit(one, on_sphere, geometry="sphere"),
        al.limit(al.Weights(V=np.eye(10)), many, work=1e4),
        al.limit(one, x, layers=True),
    ]
    verdicts = [str(verdict) for run in (runs[0], runs[5]) for verdict in al.check(run)]

sums = [float(run.states.sum()) for run in runs] + [float(limit.points.sum()) for limit in limits]
compiled = [event.data["dispatcher"].py_func.__qualname__ for _, event in recorder.buffer if event.is_start]
print(json.dumps({"sums": [value.hex() for value in sums], "verdicts": verdicts, "compiled": compiled}))
"""


def work_in(cache: Path) -> dict:
    """Simulate, limit and check in a process of its own: numbers to the last bit, and the functions
    that were compiled.
    """
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", WORK], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def listing(cache: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in cache.rglob("*") if path.is_file()}


@pytest.mark.slow
def test_a_second_process_compiles_nothing_and_leaves_no_file(tmp_path):
    # what other tests have compiled need not be compiled again here: with an empty cache the first
    # process takes 20 s
    known = Path(compiling.cache_folder())
    shutil.copytree(
        known, tmp_path / known.name, ignore=shutil.ignore_patterns(".attnlab-*")
    )  # files half written
    first = work_in(tmp_path)
    before = listing(tmp_path)
    assert len(before) > 80
    second = work_in(tmp_path)
    assert second["compiled"] == []
    assert listing(tmp_path) == before
    assert (second["sums"], second["verdicts"]) == (first["sums"], first["verdicts"])
    assert len(first["sums"]) == 16 and first["verdicts"]
