"""What a check may look at: the run, its error, and where the flow from its own start must go."""

from __future__ import annotations

import dataclasses
from functools import cached_property

import numpy as np

from attnlab.limits import limit as limit_of
from attnlab.types import Limit, Trajectory


class Evidence:
    """One run (no batch) with what is derived from it, each computed once and only when asked for."""

    def __init__(self, run: Trajectory, budget: float = 30.0):
        self.run, self.budget = run, budget

    @cached_property
    def start(self) -> np.ndarray:
        """The tokens at the first saved time, (n, d)."""
        return np.array(self.run.x[0])

    @cached_property
    def z(self) -> np.ndarray:
        """The rescaled tokens, (T, n, d)."""
        z = self.run.z
        if z is None:
            raise ValueError("This result is about z = e^{-tV} x, which a run on the sphere does not have.")
        return z

    @cached_property
    def error(self) -> float:
        """The error of the run relative to the largest token: run.error, or that of a second, finer run from the same start."""
        return float(self.run.error) if self.run.error is not None else self.departure

    @cached_property
    def departure(self) -> float:
        """How far the data are from a finer solution of their own equation from their own start, relative to the largest token."""
        from attnlab.engine.simulation import certified

        return float(certified(self.run, self.start).error)

    @cached_property
    def scale(self) -> float:
        """The size of the rescaled tokens at the start: distances are judged beside it."""
        return float(np.abs(self.z[0]).max())

    @cached_property
    def limit(self) -> Limit:
        """The certified limit, with the tokens at the last saved time in it."""
        return limit_of(dataclasses.replace(self.run), times=[float(self.run.times[-1])], budget=self.budget)

    @property
    def t_end(self) -> float:
        """The last saved time."""
        return float(self.run.times[-1])

    @property
    def finer_words(self) -> str:
        """What to change for a smaller error."""
        solve = self.run.solve
        if solve.stepper != "adaptive":
            return f'use stepper="adaptive" instead of "{solve.stepper}"'
        return f"use rtol={max(solve.rtol / 100, 1e-13):.0e} instead of {solve.rtol:.0e}"
