"""An engine that computes in this process, one task after another."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from attnlab.sweep.engines import News, Task
from attnlab.sweep.rows import Row


class Here:
    """Computes a task when its result is needed. compute: the function from a task to its rows."""

    width = 1
    workers = 1

    def __init__(self, compute: Callable[[Task], list[Row]]):
        self._compute = compute
        self._tasks: deque[Task] = deque()

    def __enter__(self) -> Here:
        return self

    def __exit__(self, *problem: Any) -> None:
        self._tasks.clear()

    def submit(self, task: Task) -> None:
        """Take a task."""
        self._tasks.append(task)

    def results(self) -> Iterator[News]:
        """Compute and yield, until no task is left."""
        while self._tasks:
            task = self._tasks.popleft()
            yield task, self._compute(task)
