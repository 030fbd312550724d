"""The certificate: from a computed state on, no row ever changes its leader again.

All leaders lead themselves, and every gap f_ik(s) stays above G e^{mu s} for all s >= 0, by Abel's
partial sums, each term lowered by the error bound of the state. Then softmax leaks less than n
e^{-G e^{mu s}} into the other tokens, which moves no token by more than `leak`, and that too is
inside the error bounds: the frozen flow is the flow.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from attnlab.engine.contacts import kernels
from attnlab.engine.doubts import cell_kernels, gap_cells, with_stand_ins
from attnlab.limits.allowance import Allowance, price_of_doubt
from attnlab.limits.frozen import Frozen
from attnlab.limits.problem import Problem
from attnlab.limits.ranks import Ranks, make_ranks
from attnlab.limits.settings import LEAST_MARGIN as LEAST_MARGIN
from attnlab.limits.settings import MANY

ROUNDING = 4e-15
"""Of a term formed from three doubles, and of the sum of the terms."""


@dataclass(frozen=True, eq=False)
class Certificate:
    """The thresholds of one problem."""

    problem: Problem  # replicas are varied; the gaps are those of the problem itself
    ranks: Ranks
    mu: float
    margin: float  # without what is added for the size of the tokens
    is_causal: bool
    find_doubt: Any

    def margin_at(self, frozen: Frozen) -> float:
        """G: so large that what leaks is below e^{-50} in absolute terms, whatever the size of the
        tokens.
        """
        return (
            self.margin
            + math.log(max(float(np.exp(frozen.bonus).sum()), 2.0))
            + max(frozen.log_size, 0.0)
        )

    def doubt(self, frozen: Frozen, allowance: Allowance, first: int = 0) -> tuple[int, int]:
        """The first (row, column) that is not shown to stay as it is; (-1, -1): certified."""
        problem, ranks = self.problem, self.ranks
        # what leaks: 2 |rate| |x| n e^{-G} / (G mu - fastest), with G >= 4 fastest / mu below 2
        # e^{-50}
        leak = np.ldexp(
            2.0 * math.exp(-LEAST_MARGIN) * np.abs(problem.rates) / problem.clock, -frozen.shift
        )
        D_error = np.where(frozen.D_error > 0, frozen.D_error + leak, 0.0)
        margin = math.ldexp(self.margin_at(frozen), -2 * frozen.shift)
        if frozen.n >= MANY and not self.is_causal:
            begin, order = gap_cells(frozen.leader, frozen.D, frozen.is_alive)
            parts = (
                begin,
                order,
                frozen.leader,
                frozen.root,
                frozen.D,
                D_error,
                frozen.scaled_bonus,
            )
            leader, root, D, D_error, bonus = with_stand_ins(*parts)
            counted = np.zeros(1, np.int64)
            row, column = cell_kernels(problem.is_complex).find_doubt_in_cells(
                problem.M,
                problem.M_error,
                leader,
                root,
                frozen.base,
                frozen.Y,
                frozen.E,
                D,
                frozen.Y_error + leak,
                frozen.E_error + leak,
                D_error,
                bonus,
                ranks.pair,
                ranks.single,
                ranks.pair_turns,
                ranks.single_turns,
                margin,
                ranks.margin,
                ROUNDING,
                ranks.count,
                begin,
                order,
                first,
                allowance.flag,
                counted,
            )
            allowance.spend(price_of_doubt(int(counted[0]), len(problem.rates), problem.is_complex))
            return int(row), int(column)
        row, column = self.find_doubt(
            problem.M,
            problem.M_error,
            frozen.leader,
            frozen.root,
            frozen.base,
            frozen.Y,
            frozen.E,
            frozen.D,
            frozen.Y_error + leak,
            frozen.E_error + leak,
            D_error,
            frozen.scaled_bonus,
            ranks.pair,
            ranks.single,
            ranks.pair_turns,
            ranks.single_turns,
            margin,
            ranks.margin,
            ROUNDING,
            ranks.count,
            frozen.is_alive,
            self.is_causal,
            first,
            allowance.flag,
        )
        tested = frozen.n if row < 0 else (int(row) - first) % frozen.n + 1  # rows
        allowance.spend(price_of_doubt(tested * frozen.n, len(problem.rates), problem.is_complex))
        return int(row), int(column)


def make_certificate(problem: Problem, least_margin: float = LEAST_MARGIN) -> Certificate:
    """The Certificate of a problem with a growing direction."""
    mu = 0.5 * problem.slowest
    margin = max(least_margin, 4.0 * problem.clock / mu)
    is_causal = problem.dynamics.mask.is_causal
    return Certificate(
        problem,
        make_ranks(problem, mu),
        mu,
        margin,
        is_causal,
        kernels(problem.is_complex).find_doubt,
    )
