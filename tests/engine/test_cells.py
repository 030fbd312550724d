"""Attention in cells of tokens against sums over all pairs: what is left out is below its bound."""

from __future__ import annotations

import math

import numpy as np
import pytest

import attnlab as al
from attnlab.engine import lanes
from attnlab.engine.cells import (
    CELL,
    cell_core,
    cell_count,
    cell_order,
    cut_bits,
    make_boxes,
    pack,
    packed_size,
)
from attnlab.engine.cells_extended import (
    best_of_many,
    best_tokens_in_cells,
    extended_rows_in_cells,
)
from attnlab.engine.compile import compiled
from attnlab.engine.coordinates import choose_coordinates
from attnlab.engine.extended import extended_rows
from attnlab.engine.flow import Flow
from attnlab.engine.large import LargeSystem, large_system
from attnlab.engine.leaders import best_tokens
from attnlab.engine.near import NearSystem, may_be_near
from attnlab.types import Dynamics

fill, any_reaches, load = lanes.fill, lanes.any_reaches, lanes.load
LOG2_E = math.log2(math.e)


@compiled("boolean(float64[::1], float64[::1])")
def reaches(a, b):
    return any_reaches(load(a, 0), load(b, 0))


def test_any_reaches_looks_at_every_lane_and_lets_nan_through():
    low, high = np.zeros(8), np.ones(8)
    assert not reaches(low, high) and reaches(high, low) and reaches(low, low)
    for lane in range(8):
        one = low.copy()
        one[lane] = 1.0
        assert reaches(one, high)
        one[lane] = np.nan
        assert reaches(one, high) and reaches(low, np.where(np.isnan(one), np.nan, 1.0))


def tokens_of(n: int, d: int, rng: int, size: float = 5.0) -> np.ndarray:
    """(n, d), uniform, in the order of cells."""
    x = np.random.default_rng(rng).uniform(-size, size, (n, d))
    return x[cell_order(x)]


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 100, 1000])
def test_the_order_is_a_permutation_whose_cells_are_small(n):
    x = np.random.default_rng(n).uniform(-1, 1, (n, 2))
    order = cell_order(x)
    assert np.array_equal(np.sort(order), np.arange(n))
    if n == 1000:
        halves = [np.ptp(x[order[i : i + CELL]], axis=0).max() / 2 for i in range(0, n, CELL)]
        assert np.median(halves) < 2.0 * math.sqrt(
            CELL / n
        )  # half the side of a square cell is sqrt(CELL / n)


@pytest.mark.parametrize("shape", [(1, 5), (3, 37), (2, 1001)])
def test_boxes_hold_their_tokens(shape):
    d, n = shape
    x = np.ascontiguousarray(tokens_of(n, d, 0).T)
    centres, halves = np.empty((d, cell_count(n))), np.empty((d, cell_count(n)))
    make_boxes(x, n, centres, halves)
    packed = np.zeros(packed_size(n, d))
    pack(x, n, packed)
    boxes = packed[cell_count(n) * d * CELL :][: 2 * cell_count(n) * d].reshape(cell_count(n), d, 2)
    for j in range(n):
        assert (np.abs(x[:, j] - centres[:, j // CELL]) <= halves[:, j // CELL]).all()
    np.testing.assert_array_equal(boxes[:, :, 0].T, centres)
    np.testing.assert_array_equal(boxes[:, :, 1].T, halves)


def in_cells(
    x: np.ndarray, q: np.ndarray, factor: float, cut: float, parts: int = 1
) -> tuple[np.ndarray, float]:
    """(means (d, n), the share of the pairs looked at); x, q (n, d)."""
    n, d = x.shape
    n_pad = -(-n // 8) * 8
    wide, queries, out = np.zeros((d, n_pad)), np.zeros((d, n_pad)), np.full((d, n_pad), np.nan)
    wide[:, :n], queries[:, :n] = x.T, q.T
    packed, work = np.zeros(packed_size(n, d)), np.full(8 * cell_count(n) + d, np.nan)
    pack(wide, n, packed)
    edges = [8 * (n_pad // 8 * part // parts) for part in range(parts + 1)]
    for begin, end in zip(edges, edges[1:], strict=False):
        cell_core(d)(queries, packed, packed, n, begin, end, factor, cut, False, work, out)
    return out[:, :n], packed[packed_size(n, d) - 2 * cell_count(n) :].sum() / n**2


def by_sums(x: np.ndarray, q: np.ndarray, factor: float) -> np.ndarray:
    """means (d, n) over all pairs, in NumPy with 64 bits of mantissa where the machine has them."""
    scores = q.astype(np.longdouble) @ x.T.astype(np.longdouble) * factor
    weights = np.exp2(scores - scores.max(axis=1, keepdims=True))
    return np.asarray((weights @ x / weights.sum(axis=1, keepdims=True)).T, float)


@pytest.mark.parametrize("factor", [0.01, 0.3, LOG2_E, 30.0])
@pytest.mark.parametrize("shape", [(5, 1), (37, 2), (130, 3), (333, 4), (700, 3)])
def test_the_core_equals_the_sums(shape, factor):
    n, d = shape
    x = tokens_of(n, d, 1)
    q = x @ np.random.default_rng(2).normal(size=(d, d)) + 0.3
    ours, share = in_cells(x, q, factor, cut_bits(n, 0.0))
    # scores of size s have an error of about d 2^-53 s, which the weights have relative to
    # themselves
    error = 2.0**-53 * (8 * n + 40 * d * factor * np.abs(q).sum(axis=1).max() * 5.0)
    np.testing.assert_allclose(ours, by_sums(x, q, factor), rtol=0, atol=5.0 * error)
    assert share < 0.6 or factor < 30.0 or n < 300


@pytest.mark.parametrize("cut", [3.0, 8.0, 15.0, 25.0])
def test_what_is_left_out_obeys_its_bound(cut):
    # bound: n 2^-cut times the largest distance, and it is not an empty one: something is left out,
    # and is seen
    n, d, factor = 900, 3, LOG2_E
    x = tokens_of(n, d, 3)
    ours, share = in_cells(x, x, factor, cut)
    off = np.abs(ours - by_sums(x, x, factor)).max()
    assert 1e-13 < off < n * 2.0**-cut * 10.0 * math.sqrt(d)
    assert share < 0.8


def test_rows_in_parts_are_bit_equal_to_the_whole():
    x = tokens_of(500, 3, 4)
    whole, share = in_cells(x, x, LOG2_E, 60.0)
    parts, again = in_cells(x, x, LOG2_E, 60.0, parts=7)
    assert np.array_equal(whole, parts) and share == again


def test_followers_of_one_leader_hear_exactly_that_leader():
    # sharp attention: the mean is one of the tokens to the last bit, so that offsets inside a
    # cluster do not change
    x = tokens_of(400, 3, 5)
    ours, _ = in_cells(x, x, 200.0, cut_bits(400, 0.0))
    scores = x @ x.T
    top2 = np.sort(scores, axis=1)[:, -2:]
    is_sharp = 200.0 * (top2[:, 1] - top2[:, 0]) > 70.0
    assert is_sharp.mean() > 0.7
    assert np.array_equal(ours.T[is_sharp], x[scores.argmax(axis=1)][is_sharp])


def test_a_nan_in_a_token_is_nan_in_its_own_row():
    x = tokens_of(100, 2, 6)
    x[40, 1] = np.nan
    ours, _ = in_cells(x, x, 1.0, 60.0)
    assert np.isnan(ours[:, 40]).all()


def clusters(n: int, d: int, rng: int, growth: float) -> tuple[np.ndarray, np.ndarray]:
    """(tokens (2, d, n) as hi + lo, queries (d, n)): clusters e^growth apart, of size 1 inside."""
    draw = np.random.default_rng(rng)
    centres = draw.normal(size=(5, d)) * math.exp(growth)
    high = centres[draw.integers(0, 5, n)] + draw.normal(size=(n, d))
    low = draw.uniform(-1, 1, (n, d)) * np.spacing(np.abs(high)) / 2
    order = cell_order(high)
    tokens = np.ascontiguousarray(np.stack([high[order].T, low[order].T]))
    return tokens, tokens[0].copy()


@pytest.mark.parametrize("growth", [0.0, 3.0, 9.0, 20.0])
@pytest.mark.parametrize("d", [2, 3, 7])
def test_extended_rows_equal_those_of_all_pairs(d, growth):
    n = 333
    tokens, q = clusters(n, d, d, growth)
    q *= math.exp(-growth)  # so that rows divide their attention
    ours, truth, counts = np.zeros((d, n)), np.zeros((d, n)), np.zeros(n)
    boxes = np.empty((d, cell_count(n))), np.empty((d, cell_count(n)))
    make_boxes(tokens[0], n, *boxes)
    for begin, end in ((0, 160), (160, n)):
        extended_rows_in_cells(
            q, tokens, n, begin, end, LOG2_E, cut_bits(n, growth), *boxes, counts, ours
        )
    extended_rows(q, tokens, n, 0, n, LOG2_E, False, False, truth)
    # differences to the best token are what counts, and those are of size 1 inside a cluster
    np.testing.assert_allclose(ours, truth, rtol=4e-16, atol=1e-13)
    # more than all, where attention is soft: the best token of a row is looked for before its mean
    # is formed
    assert counts.sum() < (1.8 if growth < 5.0 else 0.9) * n**2


@pytest.mark.parametrize("growth", [0.0, 9.0, 25.0])
@pytest.mark.parametrize("has_copies", [False, True])
def test_leaders_in_cells_equal_those_of_all_pairs(growth, has_copies):
    n, d = 500, 3
    tokens, q = clusters(n, d, 7, growth)
    shuffled = np.random.default_rng(0).permutation(n)
    tokens, q = np.ascontiguousarray(tokens[:, :, shuffled]), np.ascontiguousarray(q[:, shuffled])
    bonus = (
        np.log(np.random.default_rng(1).integers(1, 5, n).astype(float))
        if has_copies
        else np.zeros(n)
    )
    ours = np.zeros(n, np.int64), np.zeros(n), np.zeros(n, np.int64)
    truth = np.zeros(n, np.int64), np.zeros(n), np.zeros(n, np.int64)
    share = best_of_many(q, tokens, bonus, *ours)
    best_tokens(q, tokens, bonus, np.arange(n), False, *truth)
    assert np.array_equal(ours[0], truth[0]) and np.array_equal(ours[2], truth[2])
    np.testing.assert_allclose(ours[1], truth[1], rtol=1e-12, atol=1e-12)
    assert share < 0.7


def test_one_token_has_no_rival():
    ours = np.full(1, 9), np.zeros(1), np.zeros(1, np.int64)
    best_tokens_in_cells(np.ones((2, 1)), np.ones((2, 2, 1)), np.zeros(1), *ours, np.zeros(1))
    assert ours[0][0] == 0 and ours[1][0] == math.inf and ours[2][0] == -1


# ---------------------------------------------------------------------- velocities and flows


def coordinates_of(V, **options):
    return choose_coordinates(Dynamics.of(al.Weights(V=V), **options), "x")


@pytest.mark.parametrize(("d", "is_extended"), [(3, False), (3, True), (6, False), (6, True)])
def test_the_velocity_is_that_of_all_pairs(d, is_extended):
    n = 700
    dynamics = coordinates_of(np.diag(np.linspace(1.0, -0.5, d))).dynamics
    flag, x = np.zeros(1, np.int64), tokens_of(n, d, 8, 3.0)
    near, all_pairs = NearSystem(dynamics, n, flag, 0.0), large_system(dynamics, n, "x", flag)
    assert type(all_pairs) is LargeSystem
    state = np.zeros((2, d, near.n_pad))
    state[0, :, :n] = x.T
    for log_scale in (0.0, 1.0):
        ours, truth = np.full_like(state[0], np.nan), np.full_like(state[0], np.nan)
        near.velocity(0.0, log_scale, state, is_extended, ours)
        all_pairs.velocity(0.0, log_scale, state, is_extended, truth)
        np.testing.assert_allclose(ours, truth, rtol=0, atol=1e-12)
    assert 0.0 < near.pairs <= (2.4 if is_extended else 2.1) * n**2


def test_a_flow_is_the_same_in_any_order_of_the_tokens():
    n = 700
    x = np.random.default_rng(9).uniform(-8, 8, (n, 3))
    coordinates, flag = coordinates_of(np.diag([1.0, 0.7, -0.5])), np.zeros(1, np.int64)
    mixed = np.random.default_rng(1).permutation(n)
    one, other = Flow(coordinates, x, 1e-9, flag), Flow(coordinates, x[mixed], 1e-9, flag)
    for flow in (one, other):
        _, first = flow.advance(0.1, np.array([0.03]), 1000)
        _, second = flow.advance(0.1, np.array([0.05, 0.1]), 1000)
        flow.saved = np.concatenate([first, second])
    assert one.order is not None and not np.array_equal(one.order, np.arange(n))
    assert one.evaluations == other.evaluations and one.saved.shape == (3, n, 3)
    np.testing.assert_allclose(one.saved[:, mixed], other.saved, rtol=0, atol=1e-11)
    np.testing.assert_allclose(one.saved[-1], one.high, rtol=0, atol=1e-11)
    np.testing.assert_allclose(one.high[mixed], other.high, rtol=0, atol=1e-11)
    assert np.array_equal(one.tokens[0].T, one.high) and np.array_equal(one.tokens[1].T, one.low)
    assert one.pairs < one.evaluations * n**2


def test_what_is_not_covered_looks_at_all_pairs():
    V, n = np.eye(2), 700
    x, flag = np.random.default_rng(0).uniform(-1, 1, (n, 2)), np.zeros(1, np.int64)
    assert may_be_near(coordinates_of(V).dynamics, n)
    assert not may_be_near(coordinates_of(V).dynamics, 600) and not may_be_near(
        coordinates_of(V, mask="causal").dynamics, n
    )
    assert not may_be_near(Dynamics.of(al.Weights(V=V), kernel="exp_mean"), n)
    equal = x.copy()
    equal[-1] = equal[3]
    assert (
        Flow(coordinates_of(V), equal, 1e-9, flag).order is None
    )  # equal tokens must stay equal to the bit
