"""An engine that computes in threads of this process, for work in NumPy, which lets other threads
run.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any

from attnlab.progress import Progress, track
from attnlab.sweep.engines import News, Task
from attnlab.sweep.rows import Row

PAUSE = 0.2
"""Seconds between two checks whether the runner must stop."""


class Threads:
    """Computes `count` tasks at the same time. compute: the function from a task to its rows."""

    def __init__(self, compute: Callable[[Task], list[Row]], count: int):
        self.width = self.workers = count
        self._compute = compute
        self._stop = threading.Event()
        self._tasks: dict[Future[list[Row]], Task] = {}
        self._pool = ThreadPoolExecutor(count)

    def __enter__(self) -> Threads:
        return self

    def __exit__(self, *problem: Any) -> None:
        self._stop.set()  # runs of the engine end at their next step
        self._pool.shutdown(wait=True, cancel_futures=True)

    def submit(self, task: Task) -> None:
        """Take a task."""
        self._tasks[self._pool.submit(contextvars.copy_context().run, self._work, task)] = task

    def results(self) -> Iterator[News]:
        """Yield complete tasks until no task is left."""
        while self._tasks:
            complete, _ = wait(self._tasks, PAUSE, FIRST_COMPLETED)
            if not complete:
                yield None
            for future in complete:
                yield self._tasks.pop(future), future.result()

    def _work(self, task: Task) -> list[Row]:
        with track(
            Progress(cancel=self._stop)
        ):  # what is called here without a progress of its own stops with it
            return self._compute(task)
