"""Observables that are computed time by time. They need the memory of one time only, and partial
results can be read.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from attnlab.types import Trajectory

ValueAt = Callable[[int], np.ndarray]


class Measurement:
    """An unfinished observable. Another thread may set `is_stopped` and read `values` (*batch, T,
    ...), NaN where missing.
    """

    def __init__(self) -> None:
        self.is_stopped = False
        self.fraction = 0.0
        self.values: np.ndarray | None = None


class TimeByTime:
    """An observable f(run) made of `prepare(run)`, which returns the function at -> (*batch, ...)
    of the number of a saved time.

    numbers_a_pair: how many numbers for each pair of tokens of each head it holds at once, so that
    memory can be asked before.
    """

    def __init__(self, prepare: Callable[[Trajectory], ValueAt], numbers_a_pair: int = 0):
        self.prepare, self.numbers_a_pair = prepare, numbers_a_pair
        functools.update_wrapper(self, prepare)

    def __call__(self, run: Trajectory) -> np.ndarray:
        """The values at all times, (*batch, T, ...)."""
        return self.measure(run, Measurement())

    def measure(self, run: Trajectory, measurement: Measurement) -> np.ndarray:
        """The values (*batch, T, ...), put into `measurement` one time after the other, until it is
        stopped.
        """
        value_at, count, axis = self.prepare(run), len(run.times), len(run.batch)
        values = np.full((*run.batch, count), np.nan)
        for at in range(count):
            if measurement.is_stopped:
                break
            with np.errstate(all="ignore"):  # what is not finite ends the run, see engine.observing
                found = np.asarray(value_at(at), dtype=float)
            if at == 0:
                values = np.full((*found.shape[:axis], count, *found.shape[axis:]), np.nan)
            np.moveaxis(values, axis, 0)[at] = found
            measurement.values, measurement.fraction = values, (at + 1) / count
        return values


def time_by_time(
    numbers_a_pair: int = 0,
) -> Callable[[Callable[[Trajectory], ValueAt]], TimeByTime]:
    """A decorator that makes a TimeByTime of its `prepare`."""
    return lambda prepare: TimeByTime(prepare, numbers_a_pair)
