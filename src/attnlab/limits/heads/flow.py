"""The softmax flow of several heads in compiled double precision, tokens as hi + lo."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.engine.flow import Flow
from attnlab.engine.leaders import best_tokens
from attnlab.limits.allowance import Allowance, price_of_evaluation
from attnlab.limits.double import STAGES, pattern
from attnlab.limits.heads.classes import in_classes
from attnlab.limits.settings import BOOLEAN_GAP, Settings
from attnlab.types import Status


class HeadsFlow:
    """The different tokens of a problem at time t."""

    largest_log_size = 44.0
    """Beyond it hi + lo no longer hold offsets inside a class to the tolerance."""

    def __init__(self, problem: Any, x0: np.ndarray, settings: Settings, allowance: Allowance):
        start = x0 + settings.push * np.abs(x0).max(axis=0) * pattern(x0, problem.same_as)
        self.problem, self.allowance, self.tokens = problem, allowance, problem.tokens
        self.tolerance = 10.0 * settings.rtol
        self.flow = Flow(problem.coordinates, start, settings.rtol, allowance.flag)
        self.start_size = problem.size_of(start)
        self.mixed_size = (
            self.start_size
        )  # of the tokens when rows were last mixed, or leaders not in classes
        self._last: np.ndarray | None = None

    @property
    def t(self) -> float:
        """The time reached."""
        return self.flow.t

    @property
    def steps(self) -> int:
        """Steps taken, rejected ones too."""
        return self.flow.steps

    @property
    def log_size(self) -> float:
        """log max |x|."""
        return self.flow.log_size

    def advance(self, duration: float, times: np.ndarray) -> tuple[Status, np.ndarray]:
        """(status, tokens (T, m, d) at `times` counted from now), going on by `duration`."""
        before, flow = self.flow.evaluations, self.flow
        stages = STAGES if flow.dynamics.dt is None else 1
        price = len(self.problem.M) * price_of_evaluation(flow.n, flow.d, flow.is_extended)
        status, states = flow.advance(
            duration, times, 1 + int(self.allowance.left / (stages * price))
        )
        self.allowance.spend(
            self.allowance.left
            if status is Status.MAX_STEPS
            else (flow.evaluations - before) * price
        )
        return status, states[:, self.tokens]

    def leaders(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(leader, gap, rival), (H, m) each, of every row of every head."""
        H, m, d = len(self.problem.M), len(self.tokens), self.flow.d
        leader, rival, gap = (
            np.zeros((H, m), np.int64),
            np.zeros((H, m), np.int64),
            np.zeros((H, m)),
        )
        hi_lo = np.ascontiguousarray(self.flow.y[:, :, self.tokens])
        bonus, everyone = self.problem.bonus, np.arange(m)
        self.allowance.spend(H * price_of_evaluation(m, d, is_extended=True))
        for h, M in enumerate(self.problem.M):
            query = np.ascontiguousarray((self.flow.high[self.tokens] @ M).T)
            best_tokens(
                query, hi_lo, bonus, everyone, self.problem.is_causal, leader[h], gap[h], rival[h]
            )
        is_settled = bool((gap > BOOLEAN_GAP).all()) and in_classes(leader)
        if not is_settled or self._last is None or not np.array_equal(self._last, leader):
            self.mixed_size = np.maximum(self.mixed_size, self.problem.size_of(self.flow.high))
        self._last = leader if is_settled else None
        return leader, gap, rival

    def parts(self) -> np.ndarray:
        """The tokens as hi and lo, (2, m, d)."""
        return np.stack([self.flow.high[self.tokens], self.flow.low[self.tokens]])
