"""The exponents of a gap in falling order: the bookkeeping that Abel's partial sums need."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attnlab.limits.problem import Problem


@dataclass(frozen=True, eq=False)
class Ranks:
    """Where in the order of falling growth each product of exponentials stands; equal exponents
    share a rank.
    """

    pair: np.ndarray  # (d, d): of e^{(rate_a + rate_b) s}
    single: np.ndarray  # (d + 1,): of e^{rate_a s}, and of the constants
    pair_turns: np.ndarray  # (d, d) bool: whether it oscillates
    single_turns: np.ndarray  # (d,) bool
    margin: int  # of the margin e^{mu s}
    count: int


def make_ranks(problem: Problem, mu: float) -> Ranks:
    """The Ranks of this problem with a margin that grows like e^{mu s}."""
    rates = problem.rates
    d = len(rates)
    pairs = rates[:, None] + rates[None, :]
    exponents = np.concatenate([pairs.real.ravel(), rates.real, [0.0, mu]])
    order = np.argsort(-exponents, kind="stable")
    rank = np.empty(len(exponents), np.int64)
    tolerance = problem.same_rate
    jumps = -np.diff(exponents[order]) > tolerance
    rank[order] = np.concatenate([[0], np.cumsum(jumps)])
    return Ranks(
        pair=np.ascontiguousarray(rank[: d * d].reshape(d, d)),
        single=np.ascontiguousarray(rank[d * d : -1]),
        pair_turns=np.ascontiguousarray(np.abs(pairs.imag) > tolerance),
        single_turns=np.ascontiguousarray(np.abs(rates.imag) > tolerance),
        margin=int(rank[-1]),
        count=int(rank.max()) + 1,
    )
