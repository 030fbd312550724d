"""One control of fixed steps: the same run with steps half as long, and how far its numbers depend
on the step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from attnlab.displayed import Displayed, short_repr

Run = TypeVar("Run")


@dataclass(frozen=True)
class Halved(Displayed, Generic[Run]):
    """Two runs of one problem: coarse, with the step, and fine, with half of it; fine is None where
    it was not tried.

        runs = Halved.follow(lambda step: follow(weights, x0, step), STEP, when=rng < 3)
        runs.best                                               the fine run, where there is one
        runs.compare(distance_at_end)                           distance_at_end(coarse, fine), NaN without a fine run
        runs.agree(lambda run: slope_of(run), relative=0.05)    whether a number is settled: equal within a twentieth of the fine

    What is a run is up to `follow`: a Trajectory, an array of tokens, a record of curves. To
    compare with a step twice as long, start from that step: `best` is then the run with the usual
    one.
    """

    coarse: Run
    fine: Run | None
    step: float
    __repr__ = short_repr

    @classmethod
    def follow(
        cls, follow: Callable[[float], Run], step: float, *, when: bool = True
    ) -> Halved[Run]:
        """Run with the step, and where `when` is true with half of it."""
        return cls(follow(step), follow(step / 2) if when else None, step)

    @property
    def is_tried(self) -> bool:
        """Whether there is a fine run."""
        return self.fine is not None

    @property
    def best(self) -> Run:
        """The fine run, or the only one."""
        return self.coarse if self.fine is None else self.fine

    def compare(self, difference: Callable[[Run, Run], Any], missing: Any = float("nan")) -> Any:
        """difference(coarse, fine), or `missing` where the fine run was not tried."""
        return missing if self.fine is None else difference(self.coarse, self.fine)

    def agree(
        self, number: Callable[[Run], float], *, relative: float = 0.0, absolute: float = 0.0
    ) -> bool:
        """Whether a number of both runs is the same within the tolerances; relative is that to the
        fine run. NaN never agrees.
        """
        if self.fine is None:
            return False
        one, other = float(number(self.coarse)), float(number(self.fine))
        return bool(abs(one - other) <= absolute + relative * abs(other))
