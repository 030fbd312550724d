"""For tests that need a clock. The least of a few times counts: other programs make work slower, and nothing makes it faster."""

from __future__ import annotations

import time
from collections.abc import Callable

TRIES = 3


def least_seconds(measure: Callable[[], float], enough: float, tries: int = TRIES) -> float:
    """The least of what `measure` returns, which is asked again, at most three times, until it is below `enough`."""
    least = float("inf")
    for _ in range(tries):
        least = min(least, measure())
        if least < enough:
            break
    return least


def seconds_of(function: Callable[[], object], clock: Callable[[], float] = time.monotonic) -> float:
    """How long a call takes, on the clock of the wall or, with time.process_time, on that of the processor."""
    began = clock()
    function()
    return clock() - began


def wait_until(is_so: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait until something is so, on a busy machine for long."""
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, f"It was not so after {seconds:g} seconds."
        time.sleep(0.01)
