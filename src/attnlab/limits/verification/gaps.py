"""All gaps of a stored state, in plain NumPy: does each stay above G e^{mu s} for ever?

Row i follows its leader l. With x_i(s) = g e^{rates s} + o and x_l - x_k = a e^{rates s} + c, the
gap to another token k is

    f(s) = (g e^{rates s} + o)^T M (a e^{rates s} + c) + ln(copies of l) - ln(copies of k),

a sum of exponentials. Every product p m q is known up to (|p| + dp)(|m| + dm)(|q| + dq) - |p m q|,
and is lowered by that. One that oscillates counts as -|p m q|. Put in order of falling exponents,
with -G at the exponent mu, all partial sums must be >= 0: then f(s) >= G e^{mu s} for all s >= 0
(Abel). Compiled code does the same in engine/contacts.py, written apart from this.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from attnlab.limits.verification.equation import Equation

NUMBERS_AT_ONCE = 2_000_000
"""Products that are held at once."""


@dataclass(frozen=True, eq=False)
class Tokens:
    """The different tokens of one attempt at its time, in units of 2^shift, as limits/frozen.py
    stores them.
    """

    leader: np.ndarray
    root: np.ndarray
    base: np.ndarray
    is_alive: np.ndarray
    Y: np.ndarray
    E: np.ndarray
    D: np.ndarray
    Y_error: np.ndarray
    E_error: np.ndarray
    D_error: np.ndarray
    t: float
    shift: int
    copies: np.ndarray  # (n,): how many equal tokens each stands for

    @property
    def grown(self) -> np.ndarray:
        """The part that grows, (n, d)."""
        return self.Y[self.base[self.root]] + self.E[self.root]

    @property
    def grown_error(self) -> np.ndarray:
        """Its error."""
        return self.Y_error[self.base[self.root]] + self.E_error[self.root]

    @property
    def log_size(self) -> float:
        """log max |x|."""
        return float(np.log(np.abs(self.grown + self.D).max())) + self.shift * float(np.log(2.0))


@dataclass(frozen=True, eq=False)
class Gaps:
    """The smallest gap, and the smallest partial sum from the exponent mu on, both over G; and
    where each is.
    """

    margin: float  # G
    mu: float
    pairs: int  # that were looked at
    smallest: float  # (gap - its error) / G, of all pairs
    slack: float  # the smallest partial sum over G: >= 0 if the certificate holds
    row: int  # where the slack is
    column: int


@dataclass(frozen=True, eq=False)
class Order:
    """The exponents in falling order; those that count as equal share a place."""

    pair: np.ndarray  # (d, d): the place of rate_a + rate_b
    single: np.ndarray  # (d,): the place of rate_a
    constant: int
    margin: int
    count: int


def falling_order(rates: np.ndarray, mu: float, same: float) -> Order:
    """The Order of all exponents that occur in a gap."""
    d = len(rates)
    exponents = np.concatenate(
        [(rates[:, None] + rates[None, :]).real.ravel(), rates.real, [0.0, mu]]
    )
    falling = np.argsort(-exponents, kind="stable")
    place = np.empty(len(exponents), int)
    place[falling] = np.cumsum(np.concatenate([[0], -np.diff(exponents[falling]) > same]))
    return Order(
        place[: d * d].reshape(d, d),
        place[d * d : -2],
        int(place[-2]),
        int(place[-1]),
        int(place.max()) + 1,
    )


def measure_gaps(
    equation: Equation,
    tokens: Tokens,
    is_causal: bool,
    numbers: Mapping[str, float],
    rows: np.ndarray,
) -> Gaps:
    """The Gaps of these rows; numbers: least_margin, rounding, leak, as limits/certificate.py
    explains them.
    """
    rates, clock = equation.rates, float(np.abs(equation.rates).max())
    mu = 0.5 * float(rates.real[equation.is_growing].min())
    n, d = tokens.D.shape
    margin = (
        max(numbers["least_margin"], 4.0 * clock / mu)
        + np.log(max(tokens.copies.sum(), 2))
        + max(tokens.log_size, 0.0)
    )
    unit = 2.0 ** (-2.0 * tokens.shift)  # of scores: gaps are formed from what is stored
    leak = numbers["leak"] * np.abs(rates) / clock * 2.0**-tokens.shift
    order = falling_order(rates, mu, equation.same_rate)
    bonus = np.log(tokens.copies) * unit
    largest, where, smallest, pairs = np.inf, (-1, -1), np.inf, 0
    for i in rows:
        seen = tokens.is_alive.copy()
        seen[tokens.leader[i]] = False
        if is_causal:
            seen[i + 1 :] = False
        columns = np.flatnonzero(seen)
        block = max(1, NUMBERS_AT_ONCE // (d * d))
        for start in range(0, len(columns), block):
            some = columns[start : start + block]
            sums = _sums(equation, tokens, order, leak, int(i), some, numbers["rounding"])
            sums[:, order.constant] += bonus[tokens.leader[i]] - bonus[some]
            smallest = min(smallest, float(sums.sum(axis=1).min()) / (margin * unit))
            sums[:, order.margin] -= margin * unit
            partial = np.cumsum(sums, axis=1)
            lowest = np.where(
                np.arange(order.count) >= order.margin,
                partial,
                np.where(partial < 0.0, partial, np.inf),
            ).min(axis=1)
            lowest = np.where(np.isnan(partial).any(axis=1), -np.inf, lowest) / (margin * unit)
            worst = int(np.argmin(lowest))
            if lowest[worst] < largest:
                largest, where = float(lowest[worst]), (int(i), int(some[worst]))
            pairs += len(some)
    return Gaps(float(margin), mu, pairs, smallest, largest, *where)


def _sums(
    equation: Equation,
    tokens: Tokens,
    order: Order,
    leak: np.ndarray,
    i: int,
    columns: np.ndarray,
    rounding: float,
):
    """The lowered coefficients of row i against columns, by place of their exponents: (K, places),
    without the constants.
    """
    d, l = len(leak), int(tokens.leader[i])
    turns = np.abs(equation.rates.imag) > equation.same_rate
    turns_pair = (
        np.abs((equation.rates[:, None] + equation.rates[None, :]).imag) > equation.same_rate
    )
    # g and o of the row, a and c of the columns, each with its error; what is 0 by definition has
    # none
    g, dg = tokens.grown[i], tokens.grown_error[i] + 2.0 * leak
    o, do = tokens.D[i], np.where(tokens.D_error[i] > 0.0, tokens.D_error[i] + leak, 0.0)
    r, roots = int(tokens.root[l]), tokens.root[columns]
    is_other, is_far = roots != r, tokens.base[roots] != tokens.base[r]
    far = np.where(is_far[:, None], tokens.Y[tokens.base[r]] - tokens.Y[tokens.base[roots]], 0.0)
    far_error = np.where(
        is_far[:, None],
        tokens.Y_error[tokens.base[r]] + tokens.Y_error[tokens.base[roots]] + 2.0 * leak,
        0.0,
    )
    a = np.where(is_other[:, None], tokens.E[r] - tokens.E[roots] + far, 0.0)
    da = np.where(
        is_other[:, None], tokens.E_error[r] + tokens.E_error[roots] + 2.0 * leak + far_error, 0.0
    )
    D_error = np.where(tokens.D_error > 0.0, tokens.D_error + leak, 0.0)
    c, dc = tokens.D[l] - tokens.D[columns], D_error[l] + D_error[columns]
    M, size, most = equation.M, np.abs(equation.M), np.abs(equation.M) + equation.M_error
    sums = np.zeros((len(columns), order.count))
    # g_a M_ab a_b, at the exponent rate_a + rate_b
    value = (g[:, None] * M)[None] * a[:, None, :]  # (K, d, d)
    plain = np.abs(value)
    worst = ((np.abs(g) + dg)[:, None] * most)[None] * (np.abs(a) + da)[:, None, :] - plain
    lowered = np.where(turns_pair, -plain, value.real) - worst - rounding * plain
    _add(sums, order.pair.ravel(), lowered.reshape(len(columns), d * d))
    # g_a M_ab c_b, summed over b, at the exponent rate_a; and o_a M_ab a_b, summed over a, at the
    # exponent rate_b
    _add(
        sums,
        order.single,
        _lowered(g, dg, c @ M.T, np.abs(c) @ size.T, (np.abs(c) + dc) @ most.T, turns, rounding),
    )
    _add(
        sums,
        order.single,
        _lowered(a, da, o @ M, np.abs(o) @ size, (np.abs(o) + do) @ most, turns, rounding),
    )
    # o_a M_ab c_b, constant
    plain = np.abs(c) @ (np.abs(o) @ size)
    worst = (np.abs(c) + dc) @ ((np.abs(o) + do) @ most) - plain
    sums[:, order.constant] += (c @ (o @ M)).real - worst - rounding * plain
    return sums


def _lowered(
    p: np.ndarray,
    dp: np.ndarray,
    total: np.ndarray,
    size: np.ndarray,
    most: np.ndarray,
    turns: np.ndarray,
    rounding: float,
):
    """The lowered coefficients p_a (total)_a, where `total` is a sum of products, `size` of their
    moduli, `most` with errors.
    """
    plain = np.abs(p) * size
    worst = (np.abs(p) + dp) * most - plain
    return np.where(turns, -plain, (p * total).real) - worst - rounding * plain


def _add(sums: np.ndarray, places: np.ndarray, values: np.ndarray) -> None:
    """Add the columns of values (K, m) to the columns of sums that `places` (m,) names."""
    order = np.argsort(places, kind="stable")
    found, first = np.unique(places[order], return_index=True)
    sums[:, found] += np.add.reduceat(values[:, order], first, axis=1)
