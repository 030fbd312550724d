"""An engine of local worker processes, which exchange JSON over pipes.

It uses processes, not threads: resolving Specs and evaluating observables is Python code, which
threads would run one after another. Each worker uses one thread for compiled code, so the workers
together use all cores. They are separate sessions, so Ctrl-C reaches only this process. They end
when their standard input closes, which happens whenever this process ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attnlab
from attnlab.sweep.engines import News, Task, WorkerLost
from attnlab.sweep.rows import Row

DEPTH = 2
"""Tasks per worker: one that it computes and one that waits, so that the worker never waits for
this process.
"""

MOST_STARTS = 5
"""If so many workers end one after another before one is ready, something is wrong with all of
them.
"""

KEPT_LINES = 20
"""Lines of a worker's standard error that are kept for the message when it ends."""

WAIT_SECONDS = 0.2
"""The most seconds to wait for news, so that progress is shown."""


class WorkerFailed(OSError):
    """Raised when workers end before they begin."""


class Processes:
    """Local workers. head: the result of `Sweep.head`, with the "first" cell. threads: the number
    per worker.
    """

    def __init__(self, head: Mapping[str, Any], workers: int, threads: int = 1):
        self.workers, self.width = workers, DEPTH * workers
        self._head = json.dumps(head, allow_nan=False).encode() + b"\n"
        self._threads, self._failed_starts = threads, 0
        self._news: queue.SimpleQueue[tuple[_Worker, Any]] = queue.SimpleQueue()
        self._alive: list[_Worker] = []
        self._waiting: deque[Task] = deque()

    def __enter__(self) -> Processes:
        try:
            for _ in range(self.workers):
                self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *problem: Any) -> None:
        for worker in self._alive:
            worker.end()
        self._alive.clear()
        self._waiting.clear()

    def submit(self, task: Task) -> None:
        """Take a task."""
        self._waiting.append(task)
        self._hand_out()

    def results(self) -> Iterator[News]:
        """Yield each task with its rows, in the order of finishing."""
        while self._waiting or any(worker.tasks for worker in self._alive):
            try:
                worker, message = self._news.get(timeout=WAIT_SECONDS)
            except queue.Empty:
                yield None
                continue
            if message is None:
                yield from self._replace(worker)
            elif "problem" in message:
                raise LookupError(message["problem"])
            elif "ready" in message:
                self._failed_starts = 0
                worker.is_ready = True
            else:
                task = worker.tasks.popleft()
                self._hand_out()
                yield task, [Row.from_json(row) for row in message["rows"]]

    def _start(self) -> None:
        self._alive.append(_Worker(self._head, self._threads, self._news))

    def _hand_out(self) -> None:
        """Give waiting tasks to the workers with the fewest."""
        while self._waiting:
            worker = min(self._alive, key=lambda one: len(one.tasks))
            if len(worker.tasks) >= DEPTH:
                return
            worker.tasks.append(self._waiting.popleft())
            worker.send(json.dumps(worker.tasks[-1].to_json(), allow_nan=False).encode() + b"\n")

    def _replace(self, worker: _Worker) -> Iterator[News]:
        """Start another worker for one that has ended, and yield its lost task. Tasks that it had
        not begun are kept.
        """
        reason = worker.end()
        self._alive.remove(worker)
        if not worker.is_ready:
            self._failed_starts += 1
            if self._failed_starts >= MOST_STARTS:
                raise WorkerFailed(f"{MOST_STARTS} workers ended before they were ready. {reason}")
        lost = worker.tasks.popleft() if worker.tasks and worker.is_ready else None
        self._waiting.extendleft(reversed(worker.tasks))
        self._start()
        if lost is not None:
            yield lost, WorkerLost(reason)
        self._hand_out()


class _Worker:
    """One process, its pipes, and the tasks that it has: the first one is being computed."""

    def __init__(self, head: bytes, threads: int, news: queue.SimpleQueue[tuple[_Worker, Any]]):
        self.tasks: deque[Task] = deque()
        self.is_ready = False
        self._said: deque[bytes] = deque(maxlen=KEPT_LINES)
        # -P: files in the user's folder must not hide modules of Python
        command = [sys.executable, "-P", "-m", "attnlab.sweep.worker"]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_environment(threads),
            start_new_session=True,
        )
        self._errors = threading.Thread(target=self._keep_errors, daemon=True)
        self._errors.start()
        threading.Thread(target=self._listen, args=(news,), daemon=True).start()
        self.send(head)

    def send(self, line: bytes) -> None:
        """Send one line. If the worker has ended, the news say so."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError, ValueError):
            self._process.stdin.write(line)
            self._process.stdin.flush()

    def end(self) -> str:
        """End the process and its children, and return a sentence about how it ended."""
        with contextlib.suppress(OSError):
            if hasattr(os, "killpg"):
                os.killpg(self._process.pid, signal.SIGKILL)
            else:
                self._process.kill()
        code = self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                pipe and pipe.close()
        self._errors.join(timeout=1.0)
        said = b"".join(self._said).decode(errors="replace").strip().splitlines()
        words = f" It said: {' '.join(said[-3:])}" if said else ""
        return f"The worker that computed it ended {_ending(code)}.{words}"

    def _listen(self, news: queue.SimpleQueue[tuple[_Worker, Any]]) -> None:
        assert self._process.stdout is not None
        with contextlib.suppress(OSError, ValueError):  # also half a line from a killed worker
            for line in self._process.stdout:
                news.put((self, json.loads(line)))
        self._process.wait()  # so that its own exit code is known, not that of our kill
        news.put((self, None))

    def _keep_errors(self) -> None:
        assert self._process.stderr is not None
        with contextlib.suppress(OSError, ValueError):
            self._said.extend(self._process.stderr)
        self._process.stderr.close()


def _ending(code: int) -> str:
    """Describe the exit code of a process."""
    if code >= 0:
        return f"with the exit code {code}"
    with contextlib.suppress(ValueError):
        return f"by the signal {signal.Signals(-code).name}"
    return f"by the signal {-code}"


def _environment(threads: int) -> dict[str, str]:
    """Return the environment of a worker: this attnlab, and the number of threads."""
    names = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    places = [str(Path(attnlab.__path__[0]).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **os.environ,
        **dict.fromkeys(names, str(threads)),
        "PYTHONPATH": os.pathsep.join(places),
    }
