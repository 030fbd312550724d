"""The tasks of a sweep on a cluster of Dask: a scheduler at an address, local processes under one,
or the user's own client.

    with Cluster("tcp://10.0.0.5:8786", head) as engine: ...        # also "local", or a dask.distributed.Client

Only texts are sent: the task and the shared data as JSON, and rows as JSON. Dask pickles them and
the name of a function of attnlab. No worker reads or writes a file of the sweep. If a worker is
lost, the scheduler gives its task to another one.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import queue
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from attnlab import __version__
from attnlab.checks import MissingLibrary
from attnlab.sweep.engines import News, Task, WorkerLost
from attnlab.sweep.rows import Row

CONNECT_SECONDS = 6.0
"""The most seconds for reaching a scheduler."""

GONE_SECONDS = 30.0
"""Seconds of silence after which a scheduler counts as gone."""

LOOK_SECONDS = 2.0
"""Seconds between two counts of the workers, whose number may change."""

LOCAL = "local"
"""The word for a cluster on this machine. It is started and ended here."""


class ClusterProblem(ValueError):
    """Raised for a cluster that cannot be used. The message names it and says what to do."""


class Cluster:
    """An engine whose workers are those of a Dask scheduler.

    scheduler: an address, "local", or a dask.distributed.Client, which stays open. head: what all
    tasks share, as JSON holds it.
    """

    def __init__(self, scheduler: Any, head: Mapping[str, Any]):
        self.scheduler = scheduler
        self._head = json.dumps(head, allow_nan=False)
        self._client: Any = None
        self._ours: contextlib.ExitStack = contextlib.ExitStack()
        self._tasks: dict[Any, Task] = {}  # future: task
        self._finished: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._workers, self._looked, self._heard = 1, 0.0, 0.0

    def __enter__(self) -> Cluster:
        import_dask()
        if isinstance(self.scheduler, str):
            self._client = self._ours.enter_context(_connect(self.scheduler, self._ours))
        else:
            self._client = check_client(self.scheduler)
        self._heard = time.monotonic()
        return self

    def __exit__(self, *problem: Any) -> None:
        with contextlib.suppress(Exception):  # a scheduler that is gone has nothing to cancel
            self._client.cancel(list(self._tasks), force=True)
        self._tasks.clear()
        self._ours.close()

    @property
    def workers(self) -> int:
        """The present number of workers, at least 1: others may join later."""
        now = time.monotonic()
        if self._client is not None and now - self._looked > LOOK_SECONDS:
            self._looked = now
            with contextlib.suppress(OSError, TimeoutError):
                self._workers = max(1, len(self._client.nthreads()))
        return self._workers

    @property
    def width(self) -> int:
        """The number of submitted tasks: three per worker, so that a worker never waits."""
        return 3 * self.workers

    def submit(self, task: Task) -> None:
        """Take a task."""
        future = self._client.submit(
            compute_text,
            self._head,
            json.dumps(task.to_json(), allow_nan=False),
            __version__,
            key=f"attnlab-{uuid.uuid4().hex}",
            pure=False,
        )
        self._tasks[future] = task
        future.add_done_callback(self._finished.put)

    def results(self) -> Iterator[News]:
        """Yield each task with its rows, in the order of finishing."""
        while self._tasks:
            try:
                future = self._finished.get(timeout=0.2)
            except queue.Empty:
                self._check_scheduler()
                yield None
                continue
            self._heard = time.monotonic()
            task = self._tasks.pop(future, None)
            if task is not None:  # else it was cancelled before
                yield task, self._outcome(future)

    def _outcome(self, future: Any) -> list[Row] | WorkerLost:
        """Return the rows of a finished future, or WorkerLost if the scheduler gave up on it."""
        from distributed import KilledWorker

        if future.status in ("cancelled", "lost"):
            raise ClusterProblem(self._gone())
        try:
            answer = json.loads(future.result(timeout=CONNECT_SECONDS))
        except KilledWorker as problem:
            return WorkerLost(
                f"The workers of the cluster ended with it: {' '.join(str(problem).split())[:200]}"
            )
        except ImportError as problem:
            raise ClusterProblem(
                f"A worker of {self._place()} cannot import attnlab as it is here, version"
                f" {__version__} ({problem}). The workers have {self._installed()}. Install attnlab"
                f" {__version__} there."
            ) from None
        if "version" in answer:
            raise ClusterProblem(
                f"The worker {answer['worker']} has attnlab {answer['version']}, but this is"
                f" attnlab {__version__}. Install the same version on both: rows must not depend on"
                " the worker."
            )
        if "problem" in answer:
            raise ClusterProblem(answer["problem"])
        return [Row.from_json(row) for row in answer["rows"]]

    def _check_scheduler(self) -> None:
        """Raise ClusterProblem if the scheduler has been gone for some time."""
        now = time.monotonic()
        if self._client.status == "running":
            self._heard = now
        elif now - self._heard > GONE_SECONDS or self._client.status in ("closed", "closing"):
            raise ClusterProblem(self._gone())

    def _gone(self) -> str:
        return (
            f"The scheduler of {self._place()} is gone, or has cancelled the tasks. The rows that"
            " had arrived are kept. Start the sweep again to compute the others."
        )

    def _place(self) -> str:
        if isinstance(self.scheduler, str):
            return self.scheduler
        return str(getattr(self._client.scheduler, "address", "the client"))

    def _installed(self) -> str:
        """Describe the versions of attnlab on the workers."""
        try:
            found = self._client.get_versions(packages=["attnlab"])["workers"].values()
        except Exception:  # only for the words of a message
            return "an unknown version"
        return (
            ", ".join(
                sorted({str(one["packages"].get("attnlab") or "no attnlab") for one in found})
            )
            or "no version at all"
        )


def compute_text(head: str, task: str, version: str) -> str:
    """Compute the rows of a task on a worker of the cluster, as JSON; or return its version if it
    differs.

    One task at a time in each process: the compiled code uses the cores of the machine itself.
    """
    with _ONE_AT_A_TIME:
        if __version__ != version:
            return json.dumps({"version": __version__, "worker": _worker_name()})
        from attnlab.sweep.compute import compute_json

        known = _read_head(head)
        if problem := _problem_with(head):
            return json.dumps({"problem": problem})
        return json.dumps({"rows": compute_json(known, json.loads(task))}, allow_nan=False)


_ONE_AT_A_TIME = threading.Lock()


@lru_cache(maxsize=2)
def _read_head(head: str) -> dict[str, Any]:
    return dict(json.loads(head))


@lru_cache(maxsize=2)
def _problem_with(head: str) -> str:
    """Return why this process cannot compute the cells of a head, or an empty text. Runs the user's
    files first.
    """
    from attnlab.imports import UserFile, run_once
    from attnlab.sweep.compute import check_worker

    known = _read_head(head)
    run_once([UserFile(name, text) for name, text, _ in known["imports"]])
    return check_worker(known, known["first"])


def _worker_name() -> str:
    from distributed import get_worker

    try:
        return str(get_worker().address)
    except ValueError:
        return "here"


def import_dask() -> Any:
    """Return the package `distributed`, or raise MissingLibrary with the command that installs
    it.
    """
    try:
        import distributed
    except ImportError as problem:
        raise MissingLibrary(
            "A cluster needs Dask, which is not installed: pip install 'attnlab[sweep]'. A sweep"
            " without --scheduler needs no Dask."
        ) from problem
    return distributed


def check_client(client: Any) -> Any:
    """Return the client. Raise TypeError unless it is an open dask.distributed.Client."""
    Client = import_dask().Client
    if not isinstance(client, Client) or getattr(client, "asynchronous", False):
        raise TypeError(
            "client must be a dask.distributed.Client (not an asynchronous one), got"
            f" {type(client).__name__}."
        )
    if client.status != "running":
        raise ClusterProblem(
            f"The client is {client.status}, not connected to a scheduler. Make a new one."
        )
    return client


def check_address(address: str) -> None:
    """Refuse a text that cannot be the address of a scheduler."""
    scheme, mark, place = address.partition("://")
    host, colon, port = place.rpartition(":")
    if address != LOCAL and not (
        mark and scheme in ("tcp", "tls", "ucx", "ws", "wss") and host and colon and port.isdigit()
    ):
        raise ClusterProblem(
            "--scheduler must be the address of a Dask scheduler, such as tcp://127.0.0.1:8786, or"
            f" the word local; got {address!r}."
        )


def _connect(address: str, stack: contextlib.ExitStack) -> Any:
    """Return a client of the scheduler at an address, or of a cluster of local processes that ends
    with the stack.
    """
    distributed = import_dask()
    check_address(address)
    if address == LOCAL:
        address = stack.enter_context(_local_cluster()).scheduler_address
    found: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def connect() -> None:
        try:
            found.put(distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False))
        except Exception as problem:
            found.put(problem)

    # in a separate thread: if another program listens and never answers, Dask waits forever, in
    # spite of the timeout
    with _quiet():
        threading.Thread(target=connect, daemon=True).start()
        try:
            client: Any = found.get(timeout=CONNECT_SECONDS + 0.5)
        except queue.Empty:
            client = TimeoutError(f"no answer in {CONNECT_SECONDS:g} s")
    if not isinstance(client, Exception):
        return client
    raise ClusterProblem(
        f"No Dask scheduler answers at {address} ({_short(client)}). Start one with `dask"
        " scheduler`, or check the address and the firewall."
    )


def _local_cluster() -> Any:
    """A scheduler and one worker process per core, all bound to this machine, without a
    dashboard.
    """
    from distributed import LocalCluster

    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    return LocalCluster(
        n_workers=cores,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        worker_dashboard_address=None,
        silence_logs=50,
        scheduler_kwargs={"dashboard": False},
        memory_limit=None,
    )


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Suppress the log lines of distributed for each failed attempt: our own message says it."""
    logger = logging.getLogger("distributed")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


def _short(problem: BaseException) -> str:
    return " ".join(str(problem).split())[:160].rstrip(".") or type(problem).__name__
