"""Discs around groups: any attention inside the group keeps its tokens in them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm

from attnlab.limits.discs import make_discs

RATES = np.array([1.0, 0.3 + 0.8j, -2.0, -0.4 + 3.0j, 0.05, 1e-3 - 0.5j])
SPAN, PIECES = 6.0, 12


def draw_attention(rng: np.random.Generator, n: int, is_causal: bool) -> np.ndarray:
    """A row-stochastic matrix: mixed rows, or rows that attend to one token."""
    P = (
        rng.dirichlet(np.full(n, 0.3), n)
        if rng.random() < 0.5
        else np.eye(n)[rng.integers(n, size=n)]
    )
    if is_causal:
        P = np.tril(P) + 1e-300 * np.tril(np.ones((n, n)))
        P = P / P.sum(axis=1, keepdims=True)
    return P


def farthest(u: np.ndarray, discs, is_causal: bool, seed: int) -> float:
    """The largest |u - centre e^{lambda s}| / (radius e^{growth s}) over tokens, rates and times."""
    rng, n, worst = np.random.default_rng(seed), len(u), 0.0
    for a, rate in enumerate(RATES):
        now, s = u[:, a], 0.0
        for _ in range(PIECES):
            P = draw_attention(rng, n, is_causal)
            for _ in range(3):
                now = expm(SPAN / PIECES / 3.0 * rate * P) @ now
                s += SPAN / PIECES / 3.0
                off = np.abs(now - discs.centres[:, a] * np.exp(rate * s))
                room = discs.radii[:, a] * np.exp(discs.growth[a] * s)
                worst = max(worst, float((off / (room + 1e-9)).max()))  # a first token has no room
    return worst


def draw_tokens(seed: int, n: int) -> np.ndarray:
    rng = np.random.default_rng([seed, 5])
    return 10.0 + rng.normal(size=(n, len(RATES))) + 1j * rng.normal(size=(n, len(RATES)))


@pytest.mark.parametrize("least", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("is_causal", [True, False])
def test_no_attention_moves_a_token_out_of_its_disc(is_causal, least):
    for seed in range(6):
        u = draw_tokens(seed, 4)
        discs = make_discs(u, np.zeros(4, np.int64), RATES, is_causal, least=least)
        assert farthest(u, discs, is_causal, seed) <= 1.0


def test_under_the_causal_mask_a_growing_disc_keeps_its_size_beside_the_tokens():
    u = draw_tokens(0, 4)
    causal, full = (make_discs(u, np.zeros(4, np.int64), RATES, mask) for mask in (True, False))
    grows = RATES.real > 0.0
    assert np.array_equal(causal.growth[grows], RATES.real[grows])
    assert np.array_equal(full.growth, np.abs(RATES))
    slower = make_discs(u, np.zeros(4, np.int64), RATES, True, least=0.5).growth
    assert slower[2] == 0.5 and slower[0] == 1.0


def test_radii_without_the_factor_would_be_left():
    """The test above can fail: tokens do leave discs that only hold where they begin."""
    left = 0.0
    for seed in range(6):
        u = draw_tokens(seed, 4)
        discs = make_discs(u, np.zeros(4, np.int64), RATES, True, least=0.5)
        plain = np.maximum.accumulate(np.abs(u - u[0]), axis=0)
        assert (discs.radii >= plain).all()
        left = max(left, farthest(u, type(discs)(discs.centres, plain, discs.growth), True, seed))
    assert left > 1.0


def test_each_group_has_its_own_first_token_and_its_own_order():
    u = draw_tokens(1, 5)
    discs = make_discs(u, np.array([0, 1, 0, 1, 1]), RATES, True, blur=1e-3)
    assert np.array_equal(discs.centres, u[[0, 1, 0, 1, 1]])
    assert np.array_equal(discs.radii[:2], np.full((2, len(RATES)), 1e-3))
    alone = make_discs(u[[1, 3, 4]], np.zeros(3, np.int64), RATES, True, blur=1e-3)
    assert np.array_equal(discs.radii[[1, 3, 4]], alone.radii)
