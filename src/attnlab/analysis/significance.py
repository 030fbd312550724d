"""Tests of differences: the sign test over pairs, exchanges of whole blocks of pairs, and Holm's
correction for the number of tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from attnlab.displayed import Displayed, short_repr

TIED = 1e-9
"""Numbers nearer than this are the same."""


@dataclass(frozen=True)
class Sign(Displayed):
    """In how many pairs something is more, less, the same; and the two-sided p of that by coin
    flips, ties left out.
    """

    wins: int
    losses: int
    ties: int
    p: float
    __repr__ = short_repr


def sign_test(more: Any, less: Any, tied: float = TIED) -> Sign:
    """Return the sign test of more > less over pairs (m,). What is no number is neither a win nor a
    loss.
    """
    from scipy.stats import binomtest

    difference = np.asarray(more, dtype=float) - np.asarray(less, dtype=float)
    wins, losses = int(np.sum(difference > tied)), int(np.sum(difference < -tied))
    p = float(binomtest(wins, wins + losses).pvalue) if wins + losses else 1.0
    return Sign(wins, losses, len(difference) - wins - losses, p)


def block_test(differences: Any, blocks: Sequence[Any]) -> float:
    """Return the exact two-sided p of a sum of whole differences (m,), if pairs come in blocks (m,).

    The two members of a pair may be exchanged, but only in all pairs of a block at once: then each
    block adds its sum, or minus its sum. p is the part of all exchanges whose sum is at least as far
    from 0. So pairs of one block may depend on each other in any way.
    """
    given = np.asarray(differences)
    sums = [int(given[[one == block for one in blocks]].sum()) for block in dict.fromkeys(blocks)]
    parts = {0: 1.0}  # {sum: its part of all exchanges}
    for own in sums:
        before, parts = parts, {}
        for total, part in before.items():
            for moved in (total - own, total + own):
                parts[moved] = parts.get(moved, 0.0) + 0.5 * part
    return float(
        min(sum(part for total, part in parts.items() if abs(total) >= abs(sum(sums))), 1.0)
    )


def holm(ps: Sequence[float]) -> np.ndarray:
    """Return the p of several tests (m,), corrected for their number by Holm's steps; none gets
    smaller.
    """
    given = np.asarray(ps, dtype=float)
    order = np.argsort(given, kind="stable")
    result = np.empty(len(given))
    result[order] = np.minimum(
        np.maximum.accumulate(given[order] * np.arange(len(given), 0, -1)), 1.0
    )
    return result
