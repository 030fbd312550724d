"""No gap of any head ever closes: Abel's test with polynomial factors.

The gap of row i of head h between its leader l and a token k is

    f(s) = C2 e^{2vs} + (S1 s + C1) e^{vs} + Q2 s^2 + Q1 s + Q0.

With y = vs / 2, p_1 = 1 + y and p_2 = 1 + y + y^2 / 2 the functions

    e^{2vs}  >=  (1 + vs) e^{vs}  >=  e^{vs}  >=  e^{vs/2}  >=  p_2(y)  >=  p_1(y)  >=  1

fall from left to right for all s >= 0, and s e^{vs}, s^2 and s are combinations of neighbours. If
all partial sums of the coefficients of f - G e^{vs/2} in this chain are >= 0, then f >= G e^{vs/2}
for ever. Each coefficient is first lowered by its error, in which there is what softmax leaks
(docs/limits.md, "Several heads").
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from attnlab.limits.allowance import Allowance, price_of_doubt
from attnlab.limits.certificate import LEAST_MARGIN, ROUNDING
from attnlab.limits.heads.classes import Frozen, find_map, freeze
from attnlab.limits.heads.flow import HeadsFlow
from attnlab.limits.heads.problem import HeadsProblem

MOST_NUMBERS = 2_000_000
"""Differences of tokens that are held at once: rows are taken in blocks."""

LEAK = math.exp(-LEAST_MARGIN)
"""What softmax moves Y and D by at most, for ever; K by v times this."""


@dataclass(frozen=True, eq=False)
class ClassEnding:
    """Tokens in classes of leaders, with their certificate."""

    problem: HeadsProblem
    frozen: Frozen

    @property
    def t(self) -> float:
        """The time of the state."""
        return self.frozen.t

    @property
    def log_size(self) -> float:
        """log max |x|."""
        return self.frozen.log_size

    @property
    def parts(self) -> np.ndarray:
        """The tokens as hi and lo, (2, m, d)."""
        return self.frozen.parts

    @property
    def leader(self) -> np.ndarray:
        """The leaders of each head, (H, m)."""
        return self.frozen.map.leader

    @property
    def kind(self) -> np.ndarray:
        """(m,): equal where two tokens have the same limit."""
        return self.frozen.map.kind

    @property
    def is_mixed(self) -> np.ndarray:
        """(m,): whether the heads of a token choose different classes."""
        return self.frozen.map.is_mixed

    @property
    def points(self) -> np.ndarray:
        """The limits of z, (m, d)."""
        return np.asarray(self.frozen.Y * np.exp(-self.problem.rate * self.frozen.t))

    @property
    def points_error(self) -> np.ndarray:
        """Their errors, (m, d)."""
        error = (self.frozen.Y_error + LEAK) * np.exp(-self.problem.rate * self.frozen.t)
        return np.broadcast_to(error, self.frozen.Y.shape)

    @property
    def errors(self) -> tuple[float, float]:
        """The largest error of a token, and of a difference inside a class."""
        return float(self.frozen.Y_error.max()), float(self.frozen.D_error.max())

    @property
    def margin(self) -> float:
        """G, above which all gaps stay."""
        return self.problem.margin_at(self.frozen.log_size)

    def find_doubt(self, allowance: Allowance) -> tuple[int, int, int] | None:
        """The gap that is shown the least to stay open; None: certified."""
        return find_doubt(self.problem, self.frozen, allowance)

    def rescaled(self, s: float) -> np.ndarray:
        """z of all tokens a time s later, (m, d)."""
        return self.frozen.at(self.problem.rate, s)


def end_in_classes(
    problem: HeadsProblem, flow: HeadsFlow, leader: np.ndarray, tolerance: float
) -> ClassEnding | None:
    """The closed form from where `flow` is; None where leaders are not in classes."""
    map = find_map(problem, leader)
    if map is None:
        return None
    sizes = flow.start_size, flow.mixed_size
    return ClassEnding(problem, freeze(problem, map, flow.parts(), flow.t, tolerance, *sizes))


def find_doubt(
    problem: HeadsProblem, frozen: Frozen, allowance: Allowance
) -> tuple[int, int, int] | None:
    """The (head, row, column) whose gap is shown the least to stay open; None where all are:
    certified.
    """
    m, d = frozen.Y.shape
    allowance.spend(len(problem.v) * price_of_doubt(m * m, 2 * d, False))
    block = max(1, MOST_NUMBERS // (m * d))
    worst, where = 0.0, None
    for h in range(len(problem.v)):
        for begin in range(0, m, block):
            slack = _slack(problem, frozen, h, np.arange(begin, min(begin + block, m)))
            row, column = np.unravel_index(np.argmin(slack), slack.shape)
            if not slack[row, column] >= worst:
                worst, where = float(slack[row, column]), (h, begin + int(row), int(column))
                if math.isnan(worst):
                    return where
    return where


def _slack(problem: HeadsProblem, frozen: Frozen, h: int, rows: np.ndarray) -> np.ndarray:
    """The smallest partial sum of each gap of these rows, (rows, m); infinite at the leader
    itself.
    """
    map, v, M = frozen.map, problem.rate, (problem.M[h], problem.M_error[h])
    lead, parts = map.leader[h, rows], frozen.parts
    x_error, D_error = frozen.Y_error + LEAK, frozen.D_error + LEAK
    K_error = np.where(map.is_steady[:, None], 0.0, frozen.K_error + problem.total * LEAK)
    is_same = (map.kind[lead][:, None] == map.kind[None, :])[:, :, None]
    dY = np.where(is_same, 0.0, frozen.Y[lead][:, None] - frozen.Y[None])
    dY_error = np.where(is_same, 0.0, 2.0 * x_error)
    dK, dK_error = (
        np.broadcast_to(-frozen.K[None], dY.shape),
        np.broadcast_to(K_error[None], dY.shape),
    )
    near = (parts[0][lead][:, None] - parts[0][None]) + (parts[1][lead][:, None] - parts[1][None])
    dD = np.where(is_same, near, frozen.D[lead][:, None] - frozen.D[None])
    dD_error = np.where(is_same, D_error[lead][:, None] + D_error[None], 4.0 * x_error)
    Y, K, D = (
        (frozen.Y[rows], x_error),
        (frozen.K[rows], K_error[rows]),
        (frozen.D[rows], D_error[rows] + 2.0 * x_error),
    )
    gap_Y, gap_K, gap_D = (dY, dY_error), (dK, dK_error), (dD, dD_error)
    C2 = _lowest(Y, M, gap_Y)
    S1 = _lowest(Y, M, gap_K) + _lowest(K, M, gap_Y)
    C1 = _lowest(Y, M, gap_D) + _lowest(D, M, gap_Y)
    Q2 = _lowest(K, M, gap_K)
    Q1 = _lowest(K, M, gap_D) + _lowest(D, M, gap_K)
    Q0 = _lowest(D, M, gap_D) + (problem.bonus[lead][:, None] - problem.bonus[None, :])
    grown = C2 + C1
    left = grown - problem.margin_at(frozen.log_size)
    sums = np.stack(
        [C2, C2 + S1 / v, grown, left, left + 8.0 / v**2 * Q2, left + 2.0 / v * Q1, left + Q0]
    ).min(axis=0)
    sums[np.arange(len(rows)), lead] = math.inf
    return np.asarray(sums)


def _lowest(
    left: tuple[np.ndarray, np.ndarray],
    scores: tuple[np.ndarray, np.ndarray],
    right: tuple[np.ndarray, np.ndarray],
) -> np.ndarray:
    """The least u^T M w for u (rows, d), M (d, d), w (rows, m, d) within their errors: (rows, m)."""
    (u, u_error), (M, M_error), (w, w_error) = left, scores, right
    size = np.abs(M)
    far = np.abs(u) @ size
    off = np.broadcast_to(u_error, u.shape) @ (size + M_error) + np.abs(u) @ M_error
    value = np.einsum("ib,ikb->ik", u @ M, w)
    terms = np.einsum("ib,ikb->ik", far, np.abs(w))
    doubt = np.einsum("ib,ikb->ik", off, np.abs(w)) + np.einsum(
        "ib,ikb->ik", far + off, np.broadcast_to(w_error, w.shape)
    )
    return np.asarray(value - doubt - ROUNDING * terms)
