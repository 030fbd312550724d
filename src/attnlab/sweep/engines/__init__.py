"""Engines compute the tasks of a sweep: `here.py` in this process, `processes.py` in local workers,
`cluster.py` with Dask.

An engine is a context. The runner keeps `width` tasks submitted and uses only this interface:

    with engine:
        engine.submit(task)
        for news in engine.results():       # until nothing is in flight; more may be submitted meanwhile
            if news is not None:            # None: nothing has happened for a moment, so that progress can be shown
                task, outcome = news        # the rows of the task, or WorkerLost

Leaving the context ends all workers at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from attnlab.sweep.grid import Cell
from attnlab.sweep.rows import Row


@dataclass(frozen=True)
class Task:
    """Cells that one worker computes together: (digest, cell).

    is_timed: compute them one after another, to time each cell. tries: how many workers ended
    during this task.
    """

    cells: tuple[tuple[str, Cell], ...]
    is_timed: bool = False
    tries: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return the task as plain JSON values."""
        return {"cells": [list(cell) for cell in self.cells], "is_timed": self.is_timed}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Task:
        """Return the task that `to_json` wrote."""
        return cls(tuple((digest, cell) for digest, cell in data["cells"]), data["is_timed"])


@dataclass(frozen=True)
class WorkerLost:
    """The worker ended before the task was done; `reason` is a sentence."""

    reason: str


News = tuple[Task, list[Row] | WorkerLost] | None


class Engine(Protocol):
    """The interface of an engine for the runner."""

    @property
    def width(self) -> int:
        """The number of submitted tasks with which no worker waits."""

    @property
    def workers(self) -> int:
        """The number of tasks that are computed at the same time."""

    def __enter__(self) -> Any: ...

    def __exit__(self, *problem: Any) -> None: ...

    def submit(self, task: Task) -> None:
        """Take a task."""

    def results(self) -> Iterator[News]:
        """Yield each task with its rows, in any order, until none is in flight."""
