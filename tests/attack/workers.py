"""Run a corpus in processes of its own, with a time limit for each case: a case that hangs or kills
its process is counted.
"""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

Outcomes = dict[int, dict[str, str]]

START = 300.0
"""Seconds until a process must be ready; a first compilation is among them."""

GOOD = ("result", "refused")


class Worker:
    """One process that tries cases; it is started again after a case that it did not survive."""

    def __init__(self, module: str, folder: Path, limit: float):
        self.module, self.folder, self.limit = module, folder, limit
        self.said = folder / "said.txt"
        self.process: Any = None

    def try_case(self, number: int) -> dict[str, str]:
        """The outcome of one case."""
        if self.process is None:
            self._start()
        self.process.stdin.write(f"{number}\n")
        self.process.stdin.flush()
        try:
            line = self.lines.get(timeout=self.limit)
        except queue.Empty:
            self.stop()
            return {"outcome": "hang", "detail": f"no answer within {self.limit:g} s"}
        if not line:
            code = self.process.wait()
            self.stop()
            return {
                "outcome": "death",
                "detail": f"the process ended with {code}: {self.said.read_text()[-400:]!r}",
            }
        return json.loads(line)

    def stop(self) -> None:
        """End the process, if there is one."""
        if self.process is not None:
            self.process.kill()
            self.reader.join()
            self.process.stdin.close()
            self.process.stdout.close()
            self.process.wait()
            self.process = None

    def _start(self) -> None:
        script = Path(__file__).with_name("worker.py")
        with self.said.open("w") as said:
            self.process = subprocess.Popen(
                [sys.executable, str(script), self.module, str(self.folder)],
                text=True,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
            )
        self.lines: queue.Queue[str] = queue.Queue()
        self.reader = threading.Thread(
            target=self._read, args=(self.process.stdout, self.lines), daemon=True
        )
        self.reader.start()
        ready = self.lines.get(timeout=START)
        assert ready == "ready\n", f"{self.module} did not start: {self.said.read_text()}"

    @staticmethod
    def _read(answers: Any, lines: queue.Queue[str]) -> None:
        for line in answers:
            lines.put(line)
        lines.put("")  # the end


def try_all(
    module: str, numbers: Iterable[int], folder: Path, limit: float = 90.0, processes: int = 1
) -> Outcomes:
    """{number: {"outcome", "detail"}} of all cases of a corpus, a module with `prepare(folder)` and
    `attempt(rng, folder)`.
    """
    numbers = list(numbers)

    def some(first: int) -> list[tuple[int, dict[str, str]]]:
        own = folder / f"process_{first}"
        own.mkdir()
        worker = Worker(module, own, limit)
        try:
            return [(number, worker.try_case(number)) for number in numbers[first::processes]]
        finally:
            worker.stop()

    with ThreadPoolExecutor(processes) as pool:
        return dict(sorted(pair for found in pool.map(some, range(processes)) for pair in found))


def counted(outcomes: Outcomes) -> Counter[str]:
    """How many cases had which outcome."""
    return Counter(one["outcome"] for one in outcomes.values())


def faults(outcomes: Outcomes) -> Iterator[str]:
    """What must not have happened, in one line each, with the number of its case."""
    for number, one in outcomes.items():
        if one["outcome"] not in GOOD:
            yield " ".join(f"case {number}: {one['outcome']}: {one['detail']}".split())


def assert_clean(outcomes: Outcomes) -> None:
    """Fail with the counts and the first faults, where there is any."""
    found = list(faults(outcomes))
    assert not found, "\n".join([f"{len(found)} faults, {dict(counted(outcomes))}", *found[:40]])
