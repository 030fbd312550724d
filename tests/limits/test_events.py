"""A change of leader moves the row that changes, by what softmax adds to the hardmax path, and no
other token.
"""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from attnlab.limits.events import Undecidable, switch
from attnlab.limits.frozen import Frozen

RATES = np.array([1.0, 0.8])


def frozen_of(x, leader, root):
    """Tokens x (n, 2) with exact positions, all counted from the first one; M is the identity."""
    n, zero = len(x), np.zeros_like(x)
    dynamics = SimpleNamespace(mask=SimpleNamespace(is_causal=False))
    problem = SimpleNamespace(rates=RATES, M=np.eye(2), clock=1.0, dynamics=dynamics)
    Y, E = zero.copy(), zero.copy()
    Y[0], E = x[0], np.where((np.array(root) == np.arange(n))[:, None], x - x[0], 0.0)
    D = x - x[0] - E[root]
    return Frozen(
        problem,
        0.0,
        np.array(leader),
        np.array(root),
        np.zeros(n, np.int64),
        Y,
        E,
        D,
        zero.copy(),
        zero.copy(),
        zero.copy(),
        np.zeros(n),
        is_alive=np.ones(n, bool),
    )


def jump_of(x, leader, i, k):
    """V (x_A - x_B) ln(a / b) / a: a and b are the speeds of the gap x_i . (x_A - x_B), x' = V
    x_leader, before and after.
    """
    A, B = leader[i], k
    after = [k if row == i else to for row, to in enumerate(leader)]

    def speed(to):
        moves = RATES * x[to]
        return -(moves[i] @ (x[A] - x[B]) + x[i] @ (moves[A] - moves[B]))

    a, b = speed(leader), speed(after)
    return RATES * (x[A] - x[B]) * math.log(a / b) / a


@pytest.mark.parametrize(
    ("leader", "root", "k"),
    [
        (
            [0, 0, 1, 1],
            [0, 0, 0, 0],
            1,
        ),  # row 1 follows itself from now on, and 2 and 3 follow it still
        ([0, 0, 1, 3], [0, 0, 0, 3], 3),  # row 1 follows another root, and 2 follows row 1 still
        ([0, 0, 0, 0], [0, 0, 0, 0], 2),  # row 1 follows another token of its group
    ],
)
def test_only_the_row_that_changes_is_moved(leader, root, k):
    tried = 0
    for seed in range(200):
        x = np.random.default_rng(seed).normal(size=(4, 2))
        frozen = frozen_of(x, leader, root)
        assert np.abs(frozen.positions() - x).max() < 1e-15
        try:
            switch(frozen, 1, k, [])
        except Undecidable:
            continue
        tried += 1
        moved = frozen.positions() - x
        expected = np.zeros((4, 2))
        expected[1] = jump_of(x, leader, 1, k)
        np.testing.assert_allclose(
            moved, expected, rtol=0, atol=1e-12 * (1.0 + np.abs(expected).max())
        )
        assert frozen.leader.tolist() == [k if row == 1 else to for row, to in enumerate(leader)]
    assert tried >= 5
