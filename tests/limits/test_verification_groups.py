"""What `al.verify` refuses of groups. A review found that it accepted each of these."""

from __future__ import annotations

import dataclasses
from functools import cache

import numpy as np
import pytest

import attnlab as al
from attnlab.limits.state import State


@cache
def honest(kind: str) -> al.Limit:
    """A group that turns, or two of them."""
    turn = 0.7 if kind == "one" else 0.3
    start = np.random.default_rng(3).normal(size=(6, 2)) / 8.0
    start += 1.0 if kind == "one" else np.where(np.arange(6) % 2, 4.0, -4.0)[:, None]
    found = al.limit(al.Weights(V=np.array([[1.0, turn], [-turn, 1.0]])), start)
    assert found.state.way == "groups" and found.count == (1 if kind == "one" else 2)
    assert al.verify(found).holds
    return found


def in_state(limit: al.Limit, **changes) -> al.Limit:
    values = {name: np.array(value) for name, value in limit.state.values.items()}
    values |= {name: np.asarray(change(values[name])) for name, change in changes.items()}
    return dataclasses.replace(limit, state=State(limit.state.way, values))


def second_replica_elsewhere(u: np.ndarray) -> np.ndarray:
    return u * np.array([1.0, 1.0, 1.01])[:, None, None]


def copied(u: np.ndarray) -> np.ndarray:
    return u[[0, 1, 1]]


SPOILED = {
    "exact": (lambda one: dataclasses.replace(one, grade="exact"), "the grade group"),
    "proved": (lambda one: dataclasses.replace(one, grade="proved"), "the grade group"),
    "a leader": (lambda one: dataclasses.replace(one, leaders=one.labels), "the leader is open"),
    "places": (lambda one: dataclasses.replace(one, places=one.x0), "Places in R^d"),
    "heads": (lambda one: dataclasses.replace(one, head_leaders=one.labels[None]), "of heads"),
    "tolerance 0": (lambda one: in_state(one, tolerance=lambda t: 0.0 * t), "tolerance"),
    "no tolerance": (lambda one: in_state(one, tolerance=lambda t: np.nan * t), "tolerance"),
    "condition": (lambda one: in_state(one, condition=lambda c: 1e4 * c), "condition"),
    "a copy": (lambda one: in_state(one, u=copied), "copies"),
    "a replica": (lambda one: in_state(one, u=second_replica_elsewhere), "replica is"),
    "nothing": (lambda one: in_state(one, u=lambda u: 0.0 * u), "leading direction"),
    "no coordinate": (lambda one: in_state(one, coordinates=lambda c: c + 7), "numbers of rates"),
}


@pytest.mark.parametrize("kind", ["one", "two"])
@pytest.mark.parametrize("change", SPOILED)
def test_each_change_is_refused_by_its_own_check(kind, change):
    spoil, words = SPOILED[change]
    found = al.verify(spoil(honest(kind)))
    assert found.holds is False
    assert words in found.reason


def test_leaders_of_heads_are_refused_where_there_is_one_head():
    found = al.limit(al.Weights(V=1.0), [[-1.0], [0.5], [1.0]])
    invented = dataclasses.replace(found, head_leaders=np.zeros((1, 3), np.int64))
    assert al.verify(found).holds and al.verify(invented).holds is False


def test_an_error_below_what_replicas_show_is_refused_where_discs_are_tiny():
    rng = np.random.default_rng(9)
    B, C = rng.normal(size=(6, 2)), rng.normal(size=(2, 6))
    Q, K = rng.normal(size=(2, 6)), rng.normal(size=(2, 6))
    weights = al.Weights(Q=Q, K=K, V=(B[None], C[None]))
    found = al.limit(weights, rng.normal(size=(3, 6)))
    assert str(found.state.values["inside_way"]) == "groups" and al.verify(found).holds
    refused = al.verify(dataclasses.replace(found, error=1e-3 * found.error))
    assert refused.holds is False and "A replica is" in refused.reason
