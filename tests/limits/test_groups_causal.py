"""Groups under the causal mask: for ever also where leaders rotate, and where gaps must be followed
first.
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import pytest

import attnlab as al
from group_systems import SYSTEMS, answer_as_groups, turning, verdict

FOR_EVER = [f"mask, close rates-{number}" for number in ("000", "003", "005", "008")]
"""Systems whose second rate is close to the leading one, followed in extended precision until
tokens are e^31 to e^83 times larger.
"""


@functools.cache
def answered(name: str) -> al.Limit:
    found = answer_as_groups(SYSTEMS[name])
    assert found is not None
    return found


@pytest.mark.parametrize("name", FOR_EVER)
def test_what_is_certified_for_ever_agrees_with_late_times(name):
    found, late = answered(name), SYSTEMS[name]["at"][-1]["t"]
    assert found.horizon is None and late > found.t
    assert verdict(SYSTEMS[name], found) == "right"
    assert al.verify(found).holds


@pytest.mark.parametrize("change", ["nearer", "exchanged", "one group", "apart", "points"])
@pytest.mark.parametrize("name", [FOR_EVER[0], FOR_EVER[2]])
def test_spoiled_groups_are_refused(name, change):
    found = answered(name)
    values, spoiled = dict(found.state.values), found
    u, group = values["u"].copy(), values["group"]
    first = [int(np.argmax(group[0] == g)) for g in range(2)]
    if change == "nearer":  # the groups nearly meet
        u = u.mean(axis=1, keepdims=True) + 1e-9 * (u - u.mean(axis=1, keepdims=True))
    elif change == "exchanged":
        u[:, first] = u[:, first[::-1]]
    elif change == "one group":
        values["group"] = np.zeros_like(group)
    elif change == "apart":  # a token of a group as a group of its own
        values["group"] = np.tile(np.arange(group.shape[1]), (3, 1))
        spoiled = dataclasses.replace(found, labels=np.arange(group.shape[1]))
    else:
        spoiled = dataclasses.replace(found, points=found.points * 1.001)
    state = type(found.state)(found.state.way, values | {"u": u})
    assert al.verify(dataclasses.replace(spoiled, state=state)).holds is False


def test_one_group_that_rotates_is_certified_for_ever():
    """Token 0 moves like e^{tV} x_0. The others come to z = x_0, whatever they attend to."""
    x0 = np.array([3.0, 1.0]) + 0.2 * np.random.default_rng(4).normal(size=(4, 2))
    names = {"V": turning(1.0, 0.3), "Q": np.eye(2), "K": np.diag([0.1, -0.1])}
    found = answer_as_groups(names | {"x0": x0, "beta": 1.0, "mask": True})
    assert found.grade == "group" and found.horizon is None and found.certified
    assert found.stats["kind"] == "rotating group" and "for ever" in found.reason
    assert np.abs(found.limits - x0[0]).max() <= found.error
    assert al.verify(found).holds
    named = dataclasses.replace(found, leaders=np.zeros(4, np.int64))
    assert al.verify(named).holds is False


def closing() -> dict:
    """Two tokens, each leading itself until the score turns: x_1^T M (x_1 - x_0) goes like
    e^{2t} cos(2bt), b = 0.02.
    """
    names = {"V": turning(1.0, 0.02), "Q": np.eye(2), "K": np.diag([1.0, -1.0])}
    return names | {"x0": [[4.0, 0.0], [8.0, 0.0]], "beta": 1.0, "mask": True}


def test_groups_that_come_together_later_have_a_horizon_before_that():
    found, turns = answer_as_groups(closing()), np.pi / 0.08
    assert found is not None and found.count == 2
    assert 0.9 * turns < found.horizon < turns
    assert al.verify(found).holds and not found.certified
    for horizon in (1.05 * turns, None):
        assert al.verify(dataclasses.replace(found, horizon=horizon)).holds is False
