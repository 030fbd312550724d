"""A sweep on a cluster of Dask: real schedulers and workers, a worker that is killed, and what
cannot be used.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import attnlab as al
from attnlab.checks import MissingLibrary
from attnlab.sweep import Rows, Sweep

distributed = pytest.importorskip("distributed")

from attnlab.sweep.engines import cluster  # noqa: E402  (it is of no use without distributed)

PATIENCE = 240.0
"""Seconds: other processes may take the machine away for long."""

DATA: dict[str, Any] = {
    "base": {
        "weights": {"family": "identity"},
        "start": {"law": "uniform_cube", "n": 6, "d": 2},
        "solve": {"t_end": 1.0, "saves": 3},
    },
    "axes": {"dynamics.beta": [0.5, 1.0, 2.0]},
    "seeds": 8,
    "numbers": {"spread": {"observable": "diameter"}},
}


def environment() -> dict[str, str]:
    """The environment of workers: they import the same attnlab as this process."""
    return {
        **os.environ,
        "PYTHONPATH": str(Path(al.__file__).parents[1]),
        "DASK_DISTRIBUTED__LOGGING__DISTRIBUTED": "critical",
    }


def start(folder: Path, name: str, *arguments: str) -> subprocess.Popen:
    with (folder / f"{name}.log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", *arguments],
            env=environment(),
            cwd=folder,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def kill(process: subprocess.Popen) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(PATIENCE)


def wait_for(what: Any, why: str) -> Any:
    deadline = time.monotonic() + PATIENCE
    while not (found := what()):
        assert time.monotonic() < deadline, f"no {why} after {PATIENCE:g} s"
        time.sleep(0.05)
    return found


class Place:
    """A scheduler in a process of its own, and its workers."""

    def __init__(self, folder: Path):
        self.folder, self.workers = folder, []
        file = folder / "scheduler.json"
        self.scheduler = start(
            folder,
            "scheduler",
            "distributed.cli.dask_scheduler",
            "--host",
            "127.0.0.1",
            "--port",
            "0",
            "--no-dashboard",
            "--no-show",
            "--scheduler-file",
            str(file),
        )
        wait_for(file.exists, "scheduler")
        self.address = json.loads(wait_for(file.read_text, "address"))["address"]

    def add_worker(self, *more: str) -> subprocess.Popen:
        made = start(
            self.folder,
            f"worker{len(self.workers)}",
            "distributed.cli.dask_worker",
            self.address,
            "--host",
            "127.0.0.1",
            "--nthreads",
            "1",
            "--no-nanny",
            "--no-dashboard",
            "--local-directory",
            str(self.folder),
            *more,
        )
        self.workers.append(made)
        return made

    def close(self) -> None:
        for process in [*self.workers, self.scheduler]:
            kill(process)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    folder = tmp_path / "cluster"
    folder.mkdir()
    made = Place(folder)
    yield made
    made.close()


def contents(sweep: Sweep) -> list[tuple]:
    """What a sweep has computed, without times."""
    return sorted(
        (
            row.digest,
            row.status,
            row.error,
            row.seed,
            json.dumps(dict(row.axes)),
            json.dumps(dict(row.numbers)),
        )
        for row in Rows(sweep.rows_path).read()
    )


@pytest.mark.slow
def test_a_worker_is_killed_in_the_middle_and_every_row_is_there_once(place, tmp_path):
    local = Sweep.from_dict(DATA, tmp_path / "local.toml")
    assert local.run(workers=0).is_ok
    far = Sweep.from_dict(DATA, tmp_path / "far.toml")
    slow = tmp_path / "slow.py"
    slow.write_text(
        "import time\nfrom attnlab.analysis import observables\n"
        "from attnlab.analysis.distances import observe_diameter\n"
        "@observables.register('slow_diameter')\n"
        "def slow_diameter(run):\n    time.sleep(0.3)\n    return observe_diameter(run)\n"
    )
    slowly = Sweep.from_dict(
        {**DATA, "numbers": {"spread": {"observable": "slow_diameter"}}}, tmp_path / "far.toml"
    )
    first, _ = place.add_worker(), place.add_worker()
    problems: list[BaseException] = []

    def run() -> None:
        try:
            from attnlab.imports import UserFile

            UserFile.read(slow).run()
            slowly.run(client=place.address, imports=[slow])
        except BaseException as problem:  # shown below, in the thread of the test
            problems.append(problem)

    thread = threading.Thread(target=run)
    thread.start()
    wait_for(
        lambda: (
            problems
            or (slowly.rows_path.exists() and len(list(Rows(slowly.rows_path).read())) >= 4)
        ),
        "row",
    )
    assert len(list(Rows(slowly.rows_path).read())) < len(far.grid)  # it is in the middle
    kill(first)
    thread.join(PATIENCE)
    assert not thread.is_alive() and not problems
    assert contents(slowly) == contents(local)
    assert len(contents(local)) == len(far.grid) == 24


@pytest.mark.slow
def test_another_version_of_attnlab_is_refused_with_both(place, tmp_path):
    preload = tmp_path / "older.py"
    preload.write_text("import attnlab\nattnlab.__version__ = '0.0.7'\n")
    place.add_worker("--preload", str(preload))
    sweep = Sweep.from_dict(DATA, tmp_path / "a.toml")
    with pytest.raises(cluster.ClusterProblem, match=rf"0\.0\.7.*{al.__version__}"):
        sweep.run(client=place.address)
    assert list(Rows(sweep.rows_path).read()) == []


@pytest.mark.slow
def test_a_local_cluster_listens_on_this_machine_only_and_ends_with_the_sweep(tmp_path):
    psutil = pytest.importorskip("psutil")
    script = tmp_path / "script.py"
    script.write_text(f"""
import json, psutil, sys
from attnlab.sweep import Sweep
from attnlab.sweep.engines import cluster

places, make = set(), cluster._connect
def connect(address, stack):
    client = make(address, stack)
    me = psutil.Process()
    for process in [me, *me.children(recursive=True)]:
        places.update(one.laddr.ip for one in process.net_connections() if one.status == "LISTEN")
    return client
cluster._connect = connect
if __name__ == "__main__":
    sweep = Sweep.from_dict({DATA!r}, "a.toml")
    tally = sweep.run(client="local")
    print(json.dumps([sorted(places), tally.computed, len(psutil.Process().children(recursive=True))]))
""")
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        env=environment(),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    places, computed, left = json.loads(done.stdout.splitlines()[-1])
    assert (
        places == ["127.0.0.1"] and computed == 24 and left <= 1
    )  # multiprocessing's own tracker of resources may be left
    assert psutil is not None


def test_a_client_of_the_user_computes_the_same_rows_and_stays_open(tmp_path):
    """In this process: a scheduler and a worker as threads, which is quick, and no other
    process.
    """
    local, far = (Sweep.from_dict(DATA, tmp_path / f"{name}.toml") for name in ("local", "far"))
    assert local.run(workers=0).is_ok
    with distributed.Client(
        processes=False,
        n_workers=1,
        threads_per_worker=2,
        dashboard_address=None,
        set_as_default=False,
    ) as client:
        tally = far.run(client=client)
        assert tally.computed == 24 and tally.is_ok and client.status == "running"
        assert far.run(client=client).computed == 0
    assert contents(far) == contents(local)


@pytest.mark.parametrize("listens", [False, True], ids=["nobody there", "another program there"])
def test_an_unreachable_scheduler_is_named_within_ten_seconds(listens, tmp_path, monkeypatch):
    assert cluster.CONNECT_SECONDS < 10
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 0.5)  # the same path, without the waiting
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        if listens:
            other.listen()  # it takes connections and never answers
        address = f"tcp://127.0.0.1:{other.getsockname()[1]}"
        sweep = Sweep.from_dict(DATA, tmp_path / "a.toml")
        with pytest.raises(cluster.ClusterProblem, match=f"No Dask scheduler answers at {address}"):
            sweep.run(client=address)
    assert list(Rows(sweep.rows_path).read()) == []


@pytest.mark.parametrize(
    "address", ["127.0.0.1:8786", "tcp://127.0.0.1", "tcp://:1", "lokal", "file:///etc/passwd"]
)
def test_what_is_no_address_is_refused(address):
    with pytest.raises(cluster.ClusterProblem, match="tcp://127.0.0.1:8786"):
        cluster.check_address(address)


def test_what_is_no_client_is_refused(tmp_path):
    with pytest.raises(TypeError, match="dask.distributed.Client"):
        cluster.check_client(7)


def test_without_dask_the_message_has_the_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingLibrary, match=r"pip install 'attnlab\[sweep\]'"):
        cluster.import_dask()
