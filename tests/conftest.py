"""What the tests share: quiet drawing, repeatable hypothesis, folders of their own, and runs made by hand."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import platformdirs
import pytest
from hypothesis import settings

from attnlab import Dynamics, FeedForward, Solve, Spec, Status, Trajectory, Weights

os.environ.setdefault("MPLBACKEND", "Agg")
# Compiled code stays where it always is, also for tests that move the user's folders: a cache that starts empty costs minutes.
os.environ.setdefault("NUMBA_CACHE_DIR", platformdirs.user_cache_dir("attnlab"))

# A red run must be red again tomorrow, on any machine: examples are derived from the test's name, and no clock judges them.
settings.register_profile("attnlab", deadline=None, derandomize=True)
settings.load_profile("attnlab")


SHARED = ("test_experiments.py", "test_dossier.py", "test_docs_site.py")
"""Files whose tests share what takes seconds to make, one for each value of their last parameter."""


def worker_group(test: str) -> str:
    """The tests of one group run in one worker, which makes what they share once; most tests are a group of their own.

    The mark xdist_group would say it beside the tests, but without a word it stopped to work with pytest 9.2.
    """
    file = test.split("::")[0]
    if not file.endswith(SHARED):
        return test
    parameters = test.partition("[")[2].rstrip("]")
    return f"{file}[{parameters.rpartition('-')[2]}]"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: Any, log: Any) -> Any:
    """Give tests to workers by `worker_group`."""
    from xdist.scheduler import LoadScopeScheduling

    class Groups(LoadScopeScheduling):
        """The largest groups first."""

        def _split_scope(self, nodeid: str) -> str:
            return worker_group(nodeid)

    return Groups(config, log)


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, with the user's own folders inside it."""
    for name in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        folder = tmp_path / "user" / name.lower()
        folder.mkdir(parents=True)
        monkeypatch.setenv(name, str(folder))
    place = tmp_path / "work"
    place.mkdir()
    monkeypatch.chdir(place)
    return place


@pytest.fixture
def from_docs(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """Import a program of docs/ by its name; programs there import each other."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "docs"))
    return importlib.import_module


POLYTOPE = Spec(
    weights={"family": "identity"},
    start={"law": "uniform_cube", "n": 5, "d": 3, "low": -5, "high": 5, "rng": 0},
    solve={"t_end": 0.5, "saves": 3},
)


@pytest.fixture
def polytope() -> Spec:
    """A small Spec of the polytope."""
    return POLYTOPE


def hand_made(kind: str = "plain") -> Trajectory:
    """A Trajectory that no engine made, with something unusual of each kind in it."""
    rng = np.random.default_rng(3)
    times, n, d = np.array([0.0, 0.1, 0.3]), 4, 3
    V, Q, K = (rng.standard_normal(shape) for shape in ((d, d), (2, d), (2, d)))
    weights: dict[str, Any] = {"V": V, "Q": Q, "K": K}
    dynamics: dict[str, Any] = {}
    more: dict[str, Any] = {"status": Status.OK, "frame": "x"}
    shape: tuple[int, ...] = (3, n, d)
    if kind == "factored":
        weights = {"V": (rng.standard_normal((2, d, 1)), rng.standard_normal((2, 1, d)))}
        more["frame"] = "z"
    elif kind == "batch":
        shape = (2, 3, n, d)
        more |= {"status": np.array([Status.OK, Status.STALLED], dtype=object), "error": np.array([1e-9, np.nan])}
    elif kind == "sphere":
        dynamics["geometry"] = "sphere"
    elif kind == "layers":
        dynamics["dt"] = 0.1
    elif kind == "feedforward":
        dynamics["feedforward"] = FeedForward(W=rng.standard_normal((d, d)), sigma="tanh", bias=np.ones(d))
    elif kind == "huge":
        more["log_scale"] = np.array([0.0, 300.0, 900.0])
        weights = {"V": np.eye(d)}
    elif kind == "observed":
        numbers = rng.standard_normal((3, 2))
        counted = {"steps": np.int64(12), "evaluations": 84, "seconds": 0.1}
        more |= {
            "observed": {"real": numbers[:, 0], "complex": numbers + 1j * np.inf, "yes": numbers > 0, "counts": np.arange(7)},
            "spec": POLYTOPE,
            "error": 1.25e-9,
            "stats": {**counted, "path": "tiled", "each": np.arange(3), "more": {"a": [1, 2.5]}},
        }
    states = rng.standard_normal(shape)
    if kind == "batch":
        states[1, 2:] = np.nan
    log_scale = more.pop("log_scale", np.zeros(shape[:-2]))
    solve = Solve(t_end=1.0, times=np.linspace(0, 1, 5), rtol=1e-7, layers=10 if kind == "layers" else None, max_steps=99)
    return Trajectory(Dynamics(Weights(**weights), **dynamics), solve, times, states, log_scale=log_scale, **more)


KINDS = ("plain", "factored", "batch", "sphere", "layers", "feedforward", "huge", "observed")


@pytest.fixture(params=KINDS)
def any_run(request: pytest.FixtureRequest) -> Trajectory:
    """One hand-made run of each kind."""
    return hand_made(request.param)


@pytest.fixture
def make_run() -> Callable[[str], Trajectory]:
    """The maker of hand-made runs: plain, factored, batch, sphere, layers, feedforward, huge, observed."""
    return hand_made
