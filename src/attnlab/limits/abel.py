"""Abel's test in plain NumPy: the readable form of engine/contacts.py, for one row against many
columns.

A gap is a sum of terms C e^{mu s}. Put in order of falling mu, if all partial sums of the C are >=
0 then the gap is >= 0 for all s >= 0. Each C is first lowered by its error; an oscillating one
counts as -|C|.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from attnlab.limits.ranks import Ranks


class Part(NamedTuple):
    """Something with a bound of its error, both (..., d)."""

    value: np.ndarray
    error: np.ndarray


def partial_sums(
    M: np.ndarray,
    M_error: np.ndarray,
    ranks: Ranks,
    grown: Part,
    offset: Part,
    apart: Part,
    constant: Part,
    bonus: np.ndarray,
    margin: float,
    rounding: float,
) -> np.ndarray:
    """The partial sums (K, ranks) of the gaps (grown e^{rates s} + offset)^T M (apart e^{rates s} +
    constant) + bonus - margin.

    grown, offset (d,) belong to the row; apart, constant (K, d) and bonus (K,) to the columns.
    """
    K, d = apart.value.shape
    sums = np.zeros((K, ranks.count))
    sums[:, ranks.margin] -= margin
    last = int(ranks.single[d])
    sums[:, last] += bonus

    def add(left: Part, right: Part, rank: np.ndarray, turns: np.ndarray) -> None:
        """left_a M_ab right_b for all a and b, to the ranks (d, d)."""
        for a in range(d):
            for b in range(d):
                blur = M_error[a, b]
                size = abs(M[a, b]) + blur
                term = left.value[a] * M[a, b] * right.value[:, b]
                value = -np.abs(term) if turns[a, b] else term.real
                beside = np.abs(right.value[:, b]) + right.error[:, b]
                doubt = size * (left.error[a] * beside + np.abs(left.value[a]) * right.error[:, b])
                doubt = doubt + blur * np.abs(left.value[a]) * np.abs(right.value[:, b])
                sums[:, rank[a, b]] += value - doubt - rounding * np.abs(term)

    by_row = np.repeat(ranks.single[:d, None], d, axis=1)  # the exponential is the row's
    turns_by_row = np.repeat(ranks.single_turns[:, None], d, axis=1)
    add(grown, apart, ranks.pair, ranks.pair_turns)
    add(grown, constant, by_row, turns_by_row)
    add(offset, apart, by_row.T, turns_by_row.T)
    add(offset, constant, np.full((d, d), last), np.zeros((d, d), bool))
    return np.cumsum(sums, axis=1)
