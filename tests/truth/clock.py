"""For tests that need a clock. The least of a few times counts: other programs make work slower,
and nothing makes it faster.

No test may depend on the speed of the machine. A test that must see that work ends early compares
with SOON, which is far above what an idle machine takes and far below what the work would take to
its end.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

TRIES = 3

SOON = 10.0
"""Seconds within which work that is told to stop has stopped, on a machine that is slow and busy.
An idle one takes 0.2 to 1.
"""

PATIENCE = 300.0
"""Seconds that a test waits for what is certain to happen, and happens in milliseconds on an idle
machine.
"""


def least_seconds(measure: Callable[[], float], enough: float, tries: int = TRIES) -> float:
    """The least of what `measure` returns, which is asked again, at most three times, until it is
    below `enough`.
    """
    least = float("inf")
    for _ in range(tries):
        least = min(least, measure())
        if least < enough:
            break
    return least


def seconds_of(
    function: Callable[[], object], clock: Callable[[], float] = time.monotonic
) -> float:
    """How long a call takes, on the clock of the wall or, with time.process_time, on that of the
    processor.
    """
    began = clock()
    function()
    return clock() - began


def is_soon(measure: Callable[[], float]) -> bool:
    """Whether the least of what `measure` returns, in seconds, is below SOON."""
    return least_seconds(measure, SOON) < SOON


def wait_until(is_so: Callable[[], object], seconds: float = PATIENCE) -> None:
    """Wait until something is so, on a busy machine for long."""
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, f"It was not so after {seconds:g} seconds."
        time.sleep(0.01)


def wait_until_at_work(process: int, seconds: float) -> None:
    """Wait until a process, which never ends by itself, has used so many more seconds of
    processors, however long that takes.
    """
    stat = Path(f"/proc/{process}/stat")
    if not stat.exists():  # only Linux tells
        time.sleep(seconds)
        return

    def used() -> float:
        numbers = stat.read_text().rpartition(")")[2].split()
        return (int(numbers[11]) + int(numbers[12])) / os.sysconf("SC_CLK_TCK")

    before = used()
    wait_until(lambda: used() - before >= seconds)
