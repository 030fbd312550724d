"""Tests of differences: the sign test over pairs, and Holm's correction for the number of tests."""

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
