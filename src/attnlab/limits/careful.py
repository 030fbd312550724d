"""The softmax flow with any number of digits, keeping an exact symmetry where there is one. Slow,
for few tokens.

Tokens are in the user's coordinates, in which V, Q^T K and the start are exact. Steps are
extrapolated midpoint rules (Gragg, Bulirsch, Stoer) of fixed order; the step size follows from the
difference of the last two columns.
"""

from __future__ import annotations

import math

import numpy as np

from attnlab.limits.allowance import Allowance, price_of_careful_evaluation
from attnlab.limits.arithmetic import Arithmetic, doubles
from attnlab.limits.double import pattern
from attnlab.limits.problem import Problem
from attnlab.limits.settings import Settings
from attnlab.limits.symmetry import Symmetry
from attnlab.types import Status


class _Stopped(Exception):
    """Raised when work or time is used up inside a step. The partial step must not be used."""


class CarefulFlow:
    """The different tokens of a problem at time t, with the interface of DoubleFlow."""

    def __init__(
        self,
        problem: Problem,
        x0: np.ndarray,
        settings: Settings,
        allowance: Allowance,
        symmetry: Symmetry | None = None,
    ):
        assert settings.digits is not None
        self.problem, self.allowance, self.symmetry = problem, allowance, symmetry
        self.numbers = numbers = Arithmetic(settings.digits)
        self.rtol, self.t, self.steps = settings.rtol, 0.0, 0
        self.columns = 6 if numbers.is_double else 3 + numbers.digits // 3
        self.tolerance = max(10.0 * settings.rtol, 1e-15)  # of what is rounded to double
        self.largest_log_size = 11.0 if numbers.is_double else 2.3 * (numbers.digits - 22)
        weights, tokens = problem.dynamics.weights, problem.tokens
        coordinates = problem.coordinates
        assert coordinates.inverse is not None and coordinates.basis is not None
        with numbers.precision():
            Q, K = numbers.array(weights.Q[0]), numbers.array(weights.K[0])
            self.M = numbers.array(problem.dynamics.beta) * (Q.T @ K)
            self.V = (
                numbers.array(weights.V[0][0]) @ numbers.array(weights.V[1][0])
                if weights.is_factored
                else (numbers.array(weights.V[0]))
            )
            start = x0 @ coordinates.inverse.T
            # a coordinate that is 0 up to rounding is pushed as far as the largest: whether it is 0
            # is what replicas must tell
            sizes = np.abs(start).max(axis=0)
            sizes = np.where((sizes <= problem.noise(x0)) & ~problem.is_exact, sizes.max(), sizes)
            push = (pattern(start, problem.same_as) * sizes)[tokens] @ coordinates.basis.T
            self.x = numbers.array(x0[tokens]) + numbers.array(settings.push) * numbers.array(push)
            self.inverse = self._exact_coordinates()
            self.bonus = numbers.array(problem.bonus)
            self._symmetrise(self.x)
            self.step = 0.1 / problem.clock
        self.start_size = np.abs(self.values()).max(axis=0)
        self.start_noise = numbers.epsilon * self.start_size.max() * np.ones(len(self.start_size))
        everyone = np.arange(len(tokens))
        self.rows = everyone if symmetry is None else np.unique(symmetry.representative)
        self.price = price_of_careful_evaluation(
            len(self.rows), len(tokens), self.x.shape[1], numbers.digits
        )
        self.columns_seen = None
        if problem.dynamics.mask.is_causal:
            self.columns_seen = tokens[None, :] <= tokens[self.rows][:, None]

    @property
    def log_size(self) -> float:
        """log max |x|, in eigen-coordinates."""
        return math.log(np.abs(self.values()).max())

    def advance(self, duration: float, times: np.ndarray) -> tuple[Status, np.ndarray]:
        """(status, tokens (T, n, d) in c at `times` counted from now), going on by `duration`."""
        states: list[np.ndarray] = []
        with self.numbers.precision():
            end = self.t + duration
            for stop in [*(self.t + times), end]:
                try:
                    status = self._advance_to(float(stop))
                except _Stopped:
                    status = Status.INTERRUPTED
                if status is not Status.OK:
                    break
                if len(states) < len(times):
                    states.append(self.values())
        return status, np.array(states).reshape(-1, *self.x.shape)

    def leaders(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(leader, gap, rival) of every row; with a symmetry, tokens tied with the leader by it are
        no rivals.
        """
        self.allowance.spend(self.price)
        with self.numbers.precision():
            scores = (self.x @ self.M) @ self.x.T + self.bonus  # (n, n)
            count = len(self.x)
            leader, rival, gap = (
                np.zeros(count, np.int64),
                np.full(count, -1),
                np.full(count, math.inf),
            )
            for i in range(count):
                seen = (
                    np.arange(count)
                    if self.columns_seen is None
                    else np.flatnonzero(self.columns_seen[i])
                )
                leader[i] = max(seen, key=lambda j: scores[i, j])
                if self.symmetry is not None:
                    leader[i] = min(self.symmetry.tied(i, int(leader[i])))
                tied = (
                    {int(leader[i])}
                    if self.symmetry is None
                    else self.symmetry.tied(i, int(leader[i]))
                )
                for j in seen:
                    if (
                        j not in tied
                        and (distance := float(scores[i, leader[i]] - scores[i, j])) < gap[i]
                    ):
                        gap[i], rival[i] = distance, j
        return leader, gap, rival

    def is_mixed(self, row: int) -> bool:
        """False: with so few tokens as are computed like this all rows are looked at each time."""
        return False

    def values(self) -> np.ndarray:
        """The tokens in the coordinates c, rounded to double, (n, d)."""
        with self.numbers.precision():
            return doubles(self.x @ self.inverse.T)

    def apart(self, i: np.ndarray, k: np.ndarray) -> np.ndarray:
        """x_i - x_k in the coordinates c, subtracted with all digits and then rounded to double."""
        with self.numbers.precision():
            return doubles((self.x[i] - self.x[k]) @ self.inverse.T)

    def velocity(self, x: np.ndarray) -> np.ndarray:
        """x' (n, d)."""
        if self.allowance.is_over:
            raise _Stopped
        self.allowance.spend(self.price)
        query = x[self.rows] @ self.M  # (rows, d)
        best = self._seen(query @ x.T + self.bonus).argmax(axis=1)
        # differences to the best token: scores of almost equal tokens then keep their digits, and
        # in double precision followers of one leader receive equal increments
        apart = x[None, :, :] - x[best][:, None, :]  # (rows, n, d)
        gaps = (apart * query[:, None, :]).sum(axis=2) + (self.bonus - self.bonus[best][:, None])
        weights = self.numbers.exp(self._seen(gaps))
        mean = x[best] + (weights[:, :, None] * apart).sum(axis=1) / weights.sum(axis=1)[:, None]
        out = np.empty_like(x)
        out[self.rows] = mean @ self.V.T
        self._symmetrise(out)
        return out

    def _seen(self, scores: np.ndarray) -> np.ndarray:
        """scores (rows, n), -infinity where the mask hides a token."""
        if self.columns_seen is not None:
            scores[~self.columns_seen] = self.numbers.array(-math.inf)
        return scores

    def _symmetrise(self, x: np.ndarray) -> None:
        if self.symmetry is not None:
            self.symmetry.impose(x)

    def _exact_coordinates(self) -> np.ndarray:
        """The matrix x -> c with all digits: c = X^-1 x, the columns of X being eigenvectors
        refined by Newton's iteration.
        """
        numbers, problem = self.numbers, self.problem
        assert problem.coordinates.basis is not None
        basis = problem.coordinates.basis
        rough = basis if problem.from_real is None else basis @ np.linalg.inv(problem.from_real)
        X = numbers.array(rough)
        if numbers.is_double or np.array_equal(self.V, np.diag(np.diagonal(self.V))):
            return numbers.inverse(X)
        values = _plain_rates(problem)
        differences = values[None, :] - values[:, None]
        is_apart = np.abs(differences) > 1e-9 * np.abs(values).max()
        scale = numbers.array(np.where(is_apart, 1.0 / np.where(is_apart, differences, 1.0), 0.0))
        V = (
            self.V
            if problem.from_real is None
            else numbers.array(np.zeros((len(X), len(X)), complex)) + self.V
        )
        for _ in range(3 + int(math.log2(numbers.digits))):
            # X^-1 V X = diagonal + E; the columns move by E_ab / (lambda_b - lambda_a)
            X = X + X @ ((numbers.inverse(X) @ V @ X) * scale)
        return numbers.inverse(X)

    def _advance_to(self, stop: float) -> Status:
        dt = self.problem.dynamics.dt
        while self.t < stop * (1.0 - 1e-14):
            if self.allowance.is_over:
                return Status.INTERRUPTED
            if dt is not None:
                self.x = self.x + self.numbers.array(dt) * self.velocity(self.x)
                self.t += dt
                self.steps += 1
                continue
            step = min(self.step, stop - self.t)
            after, error = self._extrapolated(step)
            self.steps += 1
            ratio = (self.rtol / error) ** (1.0 / (2 * self.columns - 1)) if error > 0.0 else 4.0
            if not math.isfinite(error):
                ratio = 0.1
            if error <= self.rtol:
                self.x, self.t = after, (stop if step == stop - self.t else self.t + step)
                if step == self.step or ratio < 1.1:
                    self.step = step * min(4.0, max(0.2, 0.9 * ratio))
            else:
                self.step = step * max(0.1, 0.8 * ratio)
            if self.step < 1e-13 * max(self.t, 1e-3):
                return Status.STALLED
        return Status.OK

    def _extrapolated(self, step: float) -> tuple[np.ndarray, float]:
        """(the tokens a step later, the error estimate relative to the largest token in each
        eigen-coordinate).
        """
        numbers, x = self.numbers, self.x
        rows: list[list[np.ndarray]] = []
        first = self.velocity(x)
        for k in range(1, self.columns + 1):
            h = numbers.array(step) / (2 * k)
            before, now = x, x + h * first
            for _ in range(2 * k - 1):
                before, now = now, before + 2 * h * self.velocity(now)
            row = [(now + before + h * self.velocity(now)) / 2]
            for j in range(1, k):
                row.append(row[-1] + (row[-1] - rows[-1][j - 1]) * _factor(numbers, k, j))
            rows.append(row)
        after = rows[-1][-1]
        self._symmetrise(after)
        difference = np.abs(doubles((rows[-1][-1] - rows[-1][-2]) @ self.inverse.T))
        scale = np.abs(doubles(after @ self.inverse.T)).max(axis=0)
        return after, float((difference / np.where(scale > 0, scale, 1.0)).max())


def _factor(numbers: Arithmetic, k: int, j: int):
    """1 / ((k / (k - j))^2 - 1)."""
    return numbers.array(float((k - j) ** 2)) / numbers.array(float(k**2 - (k - j) ** 2))


def _plain_rates(problem: Problem) -> np.ndarray:
    """The eigenvalues of V in the order of the coordinates c (for layers, rates are their
    logarithms).
    """
    growth, turn = problem.coordinates.growth, problem.coordinates.turn
    assert growth is not None and turn is not None
    values = growth + 0j
    for row in np.flatnonzero(turn):
        values[row], values[row + 1] = (
            complex(growth[row], turn[row]),
            complex(growth[row], -turn[row]),
        )
    return values if problem.is_complex else values.real
