"""Rows of the benchmark: who took how long, who was how accurate, and whether the goal is met."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from timing import fastest

OURS = "attnlab"


@dataclass
class Row:
    """One line of the table. ratios: peer's time by ours; goals: the least ratio asked for; errors:
    to the truth, relative.

    allowed: the seconds that it may take, where the goal is a time. part: the file of bench/ that
    measured it.
    """

    work: str
    seconds: dict[str, float]
    ratios: dict[str, float] = field(default_factory=dict)
    goals: dict[str, float] = field(default_factory=dict)
    errors: dict[str, float] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)
    allowed: float | None = None
    part: str = ""

    @property
    def missed(self) -> dict[str, float]:
        """The goals whose peer ran and that are not met; under our own name the time that was
        allowed.
        """
        ratios = {**self.ratios, "best": min(self.ratios.values(), default=float("nan"))}
        slow = {
            peer: goal
            for peer, goal in self.goals.items()
            if peer in ratios and not ratios[peer] >= goal
        }
        if self.allowed is not None and not self.seconds[OURS] <= self.allowed:
            slow[OURS] = self.allowed
        return slow

    @property
    def verdict(self) -> str:
        """What to print at the end of the line."""
        skipped = [peer for peer in self.goals if peer != "best" and peer not in self.ratios]
        words = [
            f"MISSED: {goal:.3g} s" if peer == OURS else f"MISSED: {goal:.3g}x {peer}"
            for peer, goal in self.missed.items()
        ]
        words += [f"not measured: {peer}" for peer in skipped]
        return (
            "; ".join(words)
            if words
            else "met"
            if self.goals or self.allowed is not None
            else "reported"
        )

    def record(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {**asdict(self), "verdict": self.verdict}


def compare(
    work: str,
    contenders: Mapping[str, Callable[[], Any] | None],
    truth: Any,
    accuracy: float,
    goals: dict[str, float],
    unchecked: tuple[str, ...] = (),
    seconds: float = 8.0,
    views: Mapping[str, Callable[[Any], Any]] | None = None,
) -> Row:
    """Race the contenders that are there. One that is less accurate than asked is a defect, of the
    bench or ours: it stops.
    """
    there = {name: call for name, call in contenders.items() if call is not None}
    errors = {}
    for name, call in there.items():
        if name in unchecked:
            call()
            continue
        off = float(
            np.abs((views or {}).get(name, np.asarray)(call()) - truth).max() / np.abs(truth).max()
        )
        errors[name] = off
        if not off <= accuracy:
            raise AssertionError(
                f"{work}: {name} is {off:.2g} from the truth, {accuracy:.2g} was asked."
            )
    best = fastest(there, seconds)
    ratios = {name: best[name] / best[OURS] for name in best if name != OURS}
    return Row(work, best, ratios, goals, errors)
