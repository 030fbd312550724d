"""No gap of any head ever closes: Abel's test with any exponents and powers.

The gap of row i of head h between its leader l and a token k is x_i^T M_h (x_l - x_k). Both factors
are sums of s^p e^{mu s}, so the gap is one, too. Each coefficient is lowered by its error. The errors
are those of the tokens at s = 0, carried through the closed form with the moduli of its numbers.
Differences are formed before anything is multiplied: x_l - x_k needs the rows of A only as A_l - A_k,
and tokens only as differences to x_l. So what two tokens have in common cancels exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from attnlab.limits.allowance import Allowance, price_of_doubt
from attnlab.limits.certificate import LEAST_MARGIN, ROUNDING
from attnlab.limits.closed.chain import smallest_sum
from attnlab.limits.closed.forms import Form
from attnlab.limits.closed.problem import ClosedProblem
from attnlab.limits.closed.solution import Key
from attnlab.limits.heads.flow import HeadsFlow

LEAK = 6.0 * math.exp(-LEAST_MARGIN)
"""What softmax moves the tokens of the state by at most, for ever."""

Part = tuple[np.ndarray, np.ndarray]
"""A value and its error."""


@dataclass(frozen=True, eq=False)
class ClosedEnding:
    """Tokens at time t with a closed form, and their certificate."""

    problem: ClosedProblem
    form: Form
    t: float
    leader: np.ndarray  # (H, m)
    parts: np.ndarray  # (2, m, d): hi and lo
    token_error: np.ndarray  # (d,)
    inside_error: np.ndarray  # (m, d): of differences to tokens that end together, one token's part

    @cached_property
    def x(self) -> np.ndarray:
        """The tokens, (m, d)."""
        return np.asarray(self.parts[0] + self.parts[1])

    @property
    def log_size(self) -> float:
        """log max |x|."""
        top = float(np.abs(self.x).max(initial=0.0))
        return math.log(top) if top > 0.0 else -math.inf

    @property
    def kind(self) -> np.ndarray:
        """(m,): equal where two tokens have the same limit."""
        return self.form.kind

    @property
    def is_mixed(self) -> np.ndarray:
        """(m,): whether the heads of a token choose leaders with different limits."""
        return self.form.is_mixed

    @property
    def points(self) -> np.ndarray:
        """The limits of z, (m, k)."""
        return np.asarray(self.form.points(self.x, self.t) @ self.problem.basis)

    @property
    def points_error(self) -> np.ndarray:
        """Their errors, (m, k)."""
        error = self.form.points_error(self.token_error + LEAK, self.t)
        return np.asarray(error @ self.problem.basis)

    @property
    def errors(self) -> tuple[float, float]:
        """The largest error of a token, and of a difference of two that end together."""
        return float(self.token_error.max()), float(self.inside_error.max())

    @property
    def margin(self) -> float:
        """G, above which all gaps stay."""
        return self.problem.margin_at(self.log_size)

    def rescaled(self, s: float) -> np.ndarray:
        """z of all tokens a time s later, (m, d)."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self.form.rescaled(self.x, self.t, s)

    def apart_from(self, i: int) -> Part:
        """(x_j - x_i for all j, their errors), (m, d)."""
        value = (self.parts[0] - self.parts[0][i]) + (self.parts[1] - self.parts[1][i])
        near = self.inside_error + self.inside_error[i] + 2.0 * LEAK
        far = np.broadcast_to(2.0 * (self.token_error + LEAK), near.shape)
        error = np.where((self.kind == self.kind[i])[:, None], near, far)
        error[i] = 0.0
        return value, error

    def find_doubt(self, allowance: Allowance) -> tuple[int, int, int] | None:
        """The (head, row, column) whose gap is shown the least to stay open; None: certified."""
        H, m = self.leader.shape
        terms = len(self.form.terms)
        allowance.spend(H * price_of_doubt(m * m * terms**2, 2 * self.x.shape[1], False))
        own = self._rows()
        worst, where = 0.0, None
        for leader in np.unique(self.leader):
            apart = self._apart(int(leader))
            for h in range(H):
                chosen = np.flatnonzero(self.leader[h] == leader)
                if not chosen.size:
                    continue
                slack = self._slack(h, int(leader), chosen, own, apart)
                row, column = np.unravel_index(np.argmin(slack), slack.shape)
                if not slack[row, column] >= worst:
                    worst, where = float(slack[row, column]), (h, int(chosen[row]), int(column))
                    if math.isnan(worst):
                        return where
        return where

    def _slack(
        self, h: int, leader: int, rows: np.ndarray, own: dict[Key, Part], apart: dict[Key, Part]
    ) -> np.ndarray:
        """The smallest partial sum of each gap of these rows, (rows, m); infinite where there is no
        gap.
        """
        problem, M, M_error = self.problem, self.problem.M[h], self.problem.M_error[h]
        size, lowest = np.abs(M), dict[Key, np.ndarray]()
        for (mu, p), (u, du) in own.items():
            u, du = u[rows], du[rows]
            for (nu, q), (w, dw) in apart.items():
                terms = np.abs(u) @ size @ np.abs(w).T
                off = du @ (size + M_error) + np.abs(u) @ M_error
                doubt = off @ np.abs(w).T + (np.abs(u) @ size + off) @ dw.T
                value = u @ M @ w.T - doubt - ROUNDING * terms
                key = (mu + nu, p + q)
                lowest[key] = lowest[key] + value if key in lowest else value
        bonus = problem.bonus[leader] - problem.bonus
        constant, margin = (Fraction(0), 0), (Fraction(problem.mu), 0)
        lowest[constant] = lowest.get(constant, 0.0) + bonus[None, :]
        lowest[margin] = lowest.get(margin, 0.0) - np.full((1, len(bonus)), self.margin)
        sums = smallest_sum(lowest, Fraction(problem.fastest))
        sums = np.array(np.broadcast_to(sums, (len(rows), len(bonus))))
        sums[:, leader] = np.inf
        if problem.is_causal:
            sums[np.arange(len(bonus))[None, :] > rows[:, None]] = np.inf
        return sums

    def _rows(self) -> dict[Key, Part]:
        """The tokens themselves, by term: (m, d) each, with errors."""
        m, d = self.x.shape
        out = {key: (np.zeros((m, d)), np.zeros((m, d))) for key in self.form.terms}
        for i in range(m):
            value, error = self.apart_from(i)
            for key, pieces in self.form.terms.items():
                for A, total, B in pieces:
                    own = A[i] @ value + total[i] * self.x[i]
                    doubt = np.abs(A[i]) @ error + abs(total[i]) * (self.token_error + LEAK)
                    doubt = doubt + ROUNDING * (
                        np.abs(A[i]) @ np.abs(value) + abs(total[i]) * np.abs(self.x[i])
                    )
                    out[key][0][i] += own @ B.T
                    out[key][1][i] += doubt @ np.abs(B).T
        return out

    def _apart(self, leader: int) -> dict[Key, Part]:
        """x_l - x_k for all k, by term: (m, d) each, with errors."""
        value, error = self.apart_from(leader)
        x, token = self.x[leader], self.token_error + LEAK
        out: dict[Key, Part] = {}
        for key, pieces in self.form.terms.items():
            found, doubts = np.zeros_like(value), np.zeros_like(value)
            for A, total, B in pieces:
                rows, rest = A[leader] - A, total[leader] - total
                # numbers of A are rounded once; where they are equal they cancel
                blur = ROUNDING * np.abs(rows) + 2.0**-52 * np.where(
                    rows != 0.0, np.abs(A) + np.abs(A[leader]), 0.0
                )
                found += (rows @ value + rest[:, None] * x) @ B.T
                doubt = np.abs(rows) @ error + blur @ (np.abs(value) + error)
                doubt += np.abs(rest)[:, None] * (token + 2.0 * ROUNDING * np.abs(x))
                doubts += doubt @ np.abs(B).T
            if found.any() or doubts.any():
                out[key] = found, doubts + ROUNDING * np.abs(found)
        return out


def end_in_closed_form(
    problem: ClosedProblem, flow: HeadsFlow, leader: np.ndarray, tolerance: float
) -> ClosedEnding | None:
    """The closed form from where `flow` is; None where leaders have none, or z has no limit."""
    form = problem.form(leader)
    if form is None or not form.converges:
        return None
    parts = flow.parts()
    return make_ending(
        problem, form, parts, flow.t, leader, tolerance, flow.start_size, flow.mixed_size
    )


def make_ending(
    problem: ClosedProblem,
    form: Form,
    parts: np.ndarray,
    t: float,
    leader: np.ndarray,
    tolerance: float,
    start_size: np.ndarray,
    mixed_size: np.ndarray,
) -> ClosedEnding:
    """The ClosedEnding of tokens hi + lo, parts (2, m, d), with the errors of its tokens.

    Errors: of a token relative to the largest one, for each rate. Of a difference of two tokens that
    end together relative to their extent, and to the size that tokens had when rows were last mixed,
    or leaders not in classes: since then tokens with equal leaders have received equal increments. A
    token with other leaders receives increments that are rounded otherwise.
    """
    x = parts[0] + parts[1]
    scale, extent = problem.size_of(x), np.zeros_like(x)
    for number in np.unique(form.kind):
        members = np.flatnonzero(form.kind == number)
        beside = (parts[0][members] - parts[0][members[0]]) + (
            parts[1][members] - parts[1][members[0]]
        )
        extent[members] = problem.size_of(beside)
    floor = tolerance * np.maximum(start_size, mixed_size) + 2.0**-96 * scale
    inside = floor + tolerance * extent + np.where(form.is_steady[:, None], 0.0, 2.0**-50 * scale)
    return ClosedEnding(problem, form, t, leader.copy(), parts, tolerance * scale, inside)
