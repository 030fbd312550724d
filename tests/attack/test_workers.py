"""The harness itself: it sees a hang, a death, a traceback, a warning and a bad message, and goes
on after each.
"""

from __future__ import annotations

import os
import random
import time
import warnings
from pathlib import Path

import workers
from worker import Fault

WAYS = ("result", "refused", "words", "traceback", "warning", "silent", "hang", "death")


def prepare(folder: Path) -> None:
    """Nothing is needed."""


def way_of(rng: random.Random) -> str:
    """What happens in a case."""
    return rng.choice(WAYS)


def attempt(rng: random.Random, folder: Path) -> None:
    """Let happen what the number says."""
    way = way_of(rng)
    if way == "refused":
        raise ValueError("n must be 1 or more, got 0.")
    if way == "words":
        raise ValueError("no")
    if way == "traceback":
        raise KeyError("states")
    if way == "warning":
        warnings.warn("overflow", RuntimeWarning, stacklevel=1)
    if way == "silent":
        raise Fault("silent", "another run was loaded")
    if way == "hang":
        time.sleep(60)
    if way == "death":
        os.abort()


def test_every_kind_of_outcome_is_told_from_the_others(tmp_path):
    expected = {number: way_of(random.Random(number)) for number in range(40)}
    first = {way: number for number, way in reversed(expected.items())}
    numbers = sorted(first.values())
    assert set(first) == set(WAYS)
    outcomes = workers.try_all("test_workers", numbers, tmp_path, limit=8.0)
    assert {number: one["outcome"] for number, one in outcomes.items()} == {
        number: expected[number] for number in numbers
    }
    assert len(list(workers.faults(outcomes))) == len(WAYS) - 2
