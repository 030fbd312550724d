"""What the tests share: quiet drawing, repeatable hypothesis, folders of their own, and runs made
by hand.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Before NumPy comes: workers share the cores, and threads of BLAS that wait for a core spend most
# of their time spinning.
if "PYTEST_XDIST_WORKER" in os.environ:
    for _library in ("OPENBLAS", "OMP", "MKL"):
        os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

import platformdirs
import pytest
from hypothesis import settings

from attnlab import Spec, Trajectory
from hand_made import KINDS, POLYTOPE, hand_made
from places import ROOT

os.environ.setdefault("MPLBACKEND", "Agg")
# Compiled code stays where it always is, also for tests that move the user's folders: a cache that
# starts empty costs minutes.
os.environ.setdefault("NUMBA_CACHE_DIR", platformdirs.user_cache_dir("attnlab"))

# A red run must be red again tomorrow, on any machine: examples are derived from the test's name,
# and no clock judges them.
settings.register_profile("attnlab", deadline=None, derandomize=True)
settings.load_profile("attnlab")


SHARED = ("conformance/test_experiments.py", "models/studies/test_dossier.py", "docs/test_site.py")
"""Files whose tests share what takes seconds to make, one for each value of their last
parameter.
"""


def worker_group(test: str) -> str:
    """The tests of one group run in one worker, which makes what they share once; most tests are a
    group of their own.

    The mark xdist_group would say it beside the tests, but without a word it stopped to work with
    pytest 9.2.
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
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    return importlib.import_module


@pytest.fixture
def polytope() -> Spec:
    """A small Spec of the polytope."""
    return POLYTOPE


@pytest.fixture(params=KINDS)
def any_run(request: pytest.FixtureRequest) -> Trajectory:
    """One hand-made run of each kind."""
    return hand_made(request.param)


@pytest.fixture
def make_run() -> Callable[[str], Trajectory]:
    """The maker of hand-made runs: plain, factored, batch, sphere, layers, feedforward, huge,
    observed.
    """
    return hand_made


MOST_SECONDS = 10.0
"""No test of `make test` should take longer; those that do are named at the end of the run."""


def pytest_terminal_summary(terminalreporter: Any, config: Any) -> None:
    """Name the tests that took longer than they should."""
    if config.option.markexpr != "not slow":
        return
    seconds: dict[str, float] = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            if hasattr(report, "duration"):
                seconds[report.nodeid] = seconds.get(report.nodeid, 0.0) + report.duration
    long = {test: took for test, took in seconds.items() if took > MOST_SECONDS}
    for test, took in sorted(long.items(), key=lambda item: -item[1]):
        terminalreporter.write_line(
            f"{took:.0f} s, and {MOST_SECONDS:.0f} are allowed: {test}. Make it smaller, or mark it"
            " slow."
        )
