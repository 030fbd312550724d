"""The sign test, and the correction for the number of tests."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from attnlab.analysis.clusters import adjusted_rand_index
from attnlab.analysis.significance import block_test, holm, sign_test

ZERO = np.zeros(10)


def wins(count: int, ties: int = 0) -> np.ndarray:
    """Ten numbers to be compared with ZERO: so many above, so many the same, the rest below."""
    return np.array([1.0] * count + [0.0] * ties + [-1.0] * (10 - count - ties))


@pytest.mark.parametrize(
    ("count", "ties", "p"),
    [
        (10, 0, 2 / 1024),
        (0, 0, 2 / 1024),
        (9, 0, 22 / 1024),
        (8, 0, 112 / 1024),
        (5, 0, 1.0),
        (8, 2, 2 / 256),
        (1, 9, 1.0),
        (6, 4, 2 / 64),
        (0, 10, 1.0),
    ],
)
def test_the_sign_test_drops_ties_and_its_p_is_that_by_hand(count, ties, p):
    found = sign_test(wins(count, ties), ZERO)
    assert (found.wins, found.losses, found.ties) == (count, 10 - count - ties, ties)
    assert found.p == pytest.approx(p)


def test_rounding_is_a_tie():
    mean = np.array([0.1, 0.2, 0.7, *[0.8] * 7])
    found = sign_test(np.stack([mean] * 5).sum(axis=0) / 5, mean)
    assert found.ties == 10 and found.p == 1.0


def test_what_is_no_number_is_no_win_and_no_loss():
    found = sign_test(np.array([np.nan, 1.0, 1.0]), np.zeros(3))
    assert (found.wins, found.losses, found.ties) == (2, 0, 1)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([0.01, 0.04, 0.03], [0.03, 0.06, 0.06]),  # 3 * 0.01; 2 * 0.03; max(0.06, 0.04)
        ([0.04, 0.01], [0.04, 0.02]),
        ([0.5, 0.6], [1.0, 1.0]),
        ([0.002] * 4, [0.008] * 4),
        ([0.3], [0.3]),
        ([], []),
    ],
)
def test_holm_by_hand(given, expected):
    assert holm(given) == pytest.approx(expected)


def test_holm_never_lowers_p_nor_changes_the_order():
    ps = np.random.default_rng(0).random(21) ** 3
    found = holm(ps)
    assert (found >= ps).all() and (found <= np.minimum(21 * ps, 1) + 1e-15).all()
    assert (np.diff(found[np.argsort(ps)]) >= 0).all()


@pytest.mark.parametrize(
    ("one", "other", "index"),
    [
        ([0, 0, 1, 1], [1, 1, 0, 0], 1.0),
        ([0, 0, 1, 1], [0, 1, 0, 1], -0.5),
        ([0, 0, 0, 0], [0, 0, 0, 0], 1.0),
    ],
)
def test_the_adjusted_rand_index_by_hand(one, other, index):
    assert adjusted_rand_index(np.array(one), np.array(other)) == pytest.approx(index)


def test_a_block_is_exchanged_as_a_whole():
    differences = np.array([1, 1, 0, 1, -1, 1, 1])
    blocks = ["a", "a", "b", "b", "c", "d", "d"]
    sums = [2, 1, -1, 2]
    every = [abs(np.dot(signs, sums)) for signs in itertools.product([-1, 1], repeat=4)]
    assert block_test(differences, blocks) == pytest.approx(np.mean(np.array(every) >= 4))
    # one pair per block: the sign test, ties left out
    assert block_test(differences, range(7)) == pytest.approx(
        sign_test(differences > 0, differences < 0).p
    )
    assert block_test(differences, ["one"] * 7) == 1.0


def test_blocks_that_agree_count_once_however_large_they_are():
    small, large = (
        block_test(np.ones(5 * size, int), np.repeat(range(5), size)) for size in (1, 9)
    )
    assert small == large == pytest.approx(2 / 32)
