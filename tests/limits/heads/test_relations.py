"""Limits of several heads: the same question asked differently has the same answer."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import attnlab as al
from head_systems import HeadSystem, by_heads, draw_heads, partition

SEEDS = [0, 1, 3, 4, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(100, 112))]


def same(
    ours: al.Limit,
    theirs: al.Limit,
    points: np.ndarray | None = None,
    leaders: np.ndarray | None = None,
) -> None:
    points = theirs.points if points is None else points
    assert ours.grade == theirs.grade == "exact", (ours.reason, theirs.reason)
    assert np.array_equal(partition(ours.labels), partition(theirs.labels))
    assert np.array_equal(ours.head_leaders, theirs.head_leaders if leaders is None else leaders)
    scale = max(1.0, np.abs(points).max() / max(np.abs(theirs.points).max(), 1e-300))
    assert (
        np.abs(ours.points - points).max()
        <= 3.0 * (ours.error + scale * theirs.error) + 1e-13 * np.abs(points).max()
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_tokens_and_heads_in_another_order(seed):
    system, rng = draw_heads(seed), np.random.default_rng(seed)
    order, heads = rng.permutation(len(system.x0)), rng.permutation(len(system.v))
    other = HeadSystem(system.M[heads], system.v[heads], system.x0[order]).limit()
    ours, back = system.limit(), np.argsort(order)
    moved = dataclasses.replace(other, labels=other.labels[back], points=other.points[back])
    same(ours, moved, leaders=by_heads(other, order)[np.argsort(heads)])


@pytest.mark.parametrize("seed", SEEDS)
def test_other_coordinates(seed):
    # x = B y: scores B^T M B, V_h = v_h I stays; reflections, turns and shears
    system, rng = draw_heads(seed), np.random.default_rng(seed)
    d = len(system.M[0])
    B = np.linalg.qr(rng.normal(size=(d, d)))[0] @ np.diag(rng.uniform(0.5, 2.0, d))
    other = HeadSystem(B.T @ system.M @ B, system.v, np.linalg.solve(B, system.x0.T).T).limit()
    same(system.limit(), other, points=other.points @ B.T)


@pytest.mark.parametrize("seed", SEEDS)
def test_other_units(seed):
    # tokens twice as long with scores a quarter; a clock three times as fast
    system = draw_heads(seed)
    ours, other = (
        system.limit(),
        HeadSystem(system.M / 4.0, 3.0 * system.v, 2.0 * system.x0).limit(),
    )
    same(ours, other, points=other.points / 2.0)
    beta = al.limit(
        al.Weights(Q=system.weights.Q, K=0.5 * system.M, V=system.weights.V), system.x0, beta=2.0
    )
    same(ours, beta)


@pytest.mark.parametrize("seed", SEEDS)
def test_later_tokens_of_the_same_flow(seed):
    system = draw_heads(seed)
    run = al.simulate(
        system.weights, system.x0, times=[0.3 / system.v.sum(), 1.0 / system.v.sum()], rtol=1e-13
    )
    same(system.limit(), al.limit(run))
    ours, later = system.limit(), HeadSystem(system.M, system.v, run.x[1]).limit()
    same(ours, later, points=later.points * np.exp(-1.0))


@pytest.mark.parametrize("seed", SEEDS)
def test_tokens_that_are_there_twice(seed):
    # twice in another order, so that the arithmetic differs; and their copies have their limits
    system = draw_heads(seed)
    n, twice = len(system.x0), np.concatenate([system.x0, system.x0[-2:]])
    order = np.concatenate([[n + 1, n], np.arange(n - 1, -1, -1)])
    ours, theirs = (
        HeadSystem(system.M, system.v, twice).limit(),
        HeadSystem(system.M, system.v, twice[order]).limit(),
    )
    assert ours.certified and theirs.certified
    back = np.argsort(order)
    assert np.array_equal(partition(ours.labels), partition(theirs.labels[back]))
    assert np.abs(ours.points - theirs.points[back]).max() <= 3.0 * (ours.error + theirs.error)
    assert np.array_equal(ours.points[-2:], ours.points[n - 2 : n]) and np.array_equal(
        ours.labels[-2:], ours.labels[n - 2 : n]
    )
    assert (ours.head_leaders < n).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_head_in_two_parts_is_one_and_a_head_without_value_is_none(seed):
    system = draw_heads(seed)
    v = system.v.copy()
    v[0] *= 0.25
    split = HeadSystem(
        np.concatenate([system.M, system.M[:1], 2.0 * system.M[:1]]),
        np.append(v, [0.75 * system.v[0], 0.0]),
        system.x0,
    )
    ours, theirs = system.limit(), split.limit()
    h = len(system.v)
    assert (theirs.head_leaders[-1] == -1).all() and np.array_equal(
        theirs.head_leaders[h], theirs.head_leaders[0]
    )
    same(ours, dataclasses.replace(theirs, head_leaders=theirs.head_leaders[:h]))
