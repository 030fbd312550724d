"""The softmax flow in compiled double precision, tokens as hi + lo: what nearly every limit is
computed with.
"""

from __future__ import annotations

import numpy as np

from attnlab.engine.flow import Flow
from attnlab.engine.leaders import best_tokens
from attnlab.limits.allowance import Allowance, price_of_evaluation
from attnlab.limits.problem import Problem
from attnlab.limits.settings import BOOLEAN_GAP, MANY, Settings
from attnlab.types import Status

STAGES = 12
"""Evaluations in a step of the adaptive integrator; a layer is one."""


class DoubleFlow:
    """The different tokens of a problem at time t; values and differences in the coordinates c."""

    largest_log_size = 44.0
    """Beyond it hi + lo no longer hold offsets inside a cluster to the tolerance."""

    def __init__(self, problem: Problem, x0: np.ndarray, settings: Settings, allowance: Allowance):
        assert problem.coordinates.inverse is not None
        start = x0 @ problem.coordinates.inverse.T
        # replicas must also feel what the computed coordinates may be off by: a coordinate that
        # should be 0 is only that noise
        noise = problem.noise(x0)
        push = np.sign(settings.push) * np.maximum(
            abs(settings.push) * np.abs(start).max(axis=0), 10.0 * noise
        )
        start = start + push * pattern(start, problem.same_as)
        self.start_noise = np.abs(problem.complexified(np.diag(noise))).sum(axis=0)
        self.allowance = allowance
        self.problem, self.tokens, self.tolerance = problem, problem.tokens, 10.0 * settings.rtol
        self.flow = Flow(problem.coordinates, start, settings.rtol, allowance.flag)
        self.M = np.array(problem.coordinates.dynamics.weights.M[0])
        self.start_size = np.abs(problem.complexified(start)).max(axis=0)

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
        """log max |x|, in eigen-coordinates."""
        return self.flow.log_size

    def advance(self, duration: float, times: np.ndarray) -> tuple[Status, np.ndarray]:
        """(status, tokens (T, n, d) in c at `times` counted from now), going on by `duration`."""
        flow, end, parts = self.flow, self.flow.t + duration, list[np.ndarray]()
        stages = STAGES if self.problem.dynamics.dt is None else 1
        while True:
            begin, is_extended = flow.t, flow.is_extended
            evaluations, pairs = flow.evaluations, flow.pairs
            most = 1 + int(self.allowance.left / (stages * self._price()))  # if all pairs count
            done = sum(map(len, parts))
            status, states = flow.advance(
                end - begin, times[done:] + (end - duration - begin), most
            )
            parts.append(states)
            count = flow.evaluations - evaluations
            share = min((flow.pairs - pairs) / (count * float(flow.n) ** 2), 1.0) if count else 1.0
            self.allowance.spend(count * price_of_evaluation(flow.n, flow.d, is_extended, share))
            if status is not Status.MAX_STEPS or self.allowance.left < stages * self._price():
                break
        if status is Status.MAX_STEPS:
            self.allowance.spend(self.allowance.left)
        return status, self.problem.complexified(np.concatenate(parts)[:, self.tokens])

    def leaders(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(leader, gap, rival) of every row."""
        count = len(self.tokens)
        leader, rival, gap = np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count)
        hi_lo = np.ascontiguousarray(self.flow.tokens[:, :, self.tokens])
        query = np.ascontiguousarray((hi_lo[0].T @ self.M).T)
        is_causal = self.problem.dynamics.mask.is_causal
        if count >= MANY and not is_causal:
            from attnlab.engine.cells_extended import best_of_many

            share = best_of_many(query, hi_lo, self.problem.bonus, leader, gap, rival)
            self.allowance.spend(price_of_evaluation(count, len(self.M), True, share))
            return leader, gap, rival
        self.allowance.spend(price_of_evaluation(count, len(self.M), is_extended=True))
        best_tokens(
            query, hi_lo, self.problem.bonus, np.arange(count), is_causal, leader, gap, rival
        )
        return leader, gap, rival

    def _price(self) -> float:
        """The units of work that a velocity costs now."""
        return price_of_evaluation(self.flow.n, self.flow.d, self.flow.is_extended)

    def is_mixed(self, row: int) -> bool:
        """Whether this row listens to more than one token, so that nothing is decided yet."""
        return self.gap_of(row) <= BOOLEAN_GAP

    def gap_of(self, row: int) -> float:
        """The gap of one row as in `leaders`, without the n^2 pairs of the others; infinite where
        there is no other token.
        """
        seen = self.tokens[: row + 1] if self.problem.dynamics.mask.is_causal else self.tokens
        high, low, bonus = (
            self.flow.high[seen],
            self.flow.low[seen],
            self.problem.bonus[: len(seen)],
        )
        query, best = high[row] @ self.M, row
        for _ in range(
            3
        ):  # scores as differences to the best: their leading digits cancel before they count
            gaps = ((high - high[best]) + (low - low[best])) @ query + bonus - bonus[best]
            best = int(gaps.argmax())
        others = np.delete(gaps, best)
        return float(gaps[best] - others.max()) if others.size else float("inf")

    def values(self) -> np.ndarray:
        """The tokens, (n, d)."""
        return self.problem.complexified(self.flow.high[self.tokens] + self.flow.low[self.tokens])

    def apart(self, i: np.ndarray, k: np.ndarray) -> np.ndarray:
        """x_i - x_k for arrays of tokens, with all the digits of hi + lo."""
        high, low = self.flow.high[self.tokens], self.flow.low[self.tokens]
        return self.problem.complexified((high[i] - high[k]) + (low[i] - low[k]))


def pattern(start: np.ndarray, same_as: np.ndarray) -> np.ndarray:
    """Numbers in [-1, 1] to push tokens by, (n, d): equal tokens alike, and not at all along
    coordinates that are 0 for all.

    (A coordinate that is 0 for all tokens stays so: what is asked for is the limit inside that
    subspace.)
    """
    draw = np.random.default_rng(20230515).uniform(-1.0, 1.0, start.shape)
    return draw[same_as] * start.any(axis=0)
