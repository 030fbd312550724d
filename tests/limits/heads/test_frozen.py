"""Limits of several heads against an independent integrator with forty digits and more:
tests/truth/frozen/make_heads.py.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

import attnlab as al
from head_systems import HeadSystem, first_copy, widened
from places import FROZEN

SYSTEMS = {
    system["name"]: system for system in json.loads((FROZEN / "heads.json").read_text())["systems"]
}
SLOW = tuple(name for name in SYSTEMS if name.startswith("late") or name in list(SYSTEMS)[1::2])


def verdict(system: dict, limit: al.Limit) -> str:
    """ "right", "undecided", or what is wrong."""
    if not limit.certified:
        return "undecided"
    if not np.array_equal(limit.labels, system["labels"]):
        return f"labels {limit.labels}, truly {system['labels']}"
    wrong = (limit.head_leaders >= 0) & (limit.head_leaders != system["leaders"])
    if wrong.any() or limit.grade == "exact" and (limit.head_leaders < 0).any():
        return f"leaders {limit.head_leaders}, truly {system['leaders']}"
    truth = np.array(system["points"], dtype=float)
    apart = np.abs(limit.limits - truth).max()
    return (
        "right"
        if apart <= limit.error + 1e-13 * np.abs(truth).max()
        else f"off by {apart:.2g}, error says {limit.error:.2g}"
    )


def test_the_truths_are_what_was_asked_for():
    assert len(SYSTEMS) >= 55 and sum(len(system["x0"]) == 30 for system in SYSTEMS.values()) >= 5
    assert {len(system["v"]) for system in SYSTEMS.values()} == {2, 3, 4, 5, 6}
    assert sum(system["late_changes"] > 0 for system in SYSTEMS.values()) >= 4
    # each was integrated on by itself until tokens were e^12 times larger
    assert not any(system["beyond"]["changed"] for system in SYSTEMS.values())
    assert max(system["beyond"]["apart"] for system in SYSTEMS.values()) < 1e-5


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in SYSTEMS],
)
def test_certified_limits_are_right(name):
    system = SYSTEMS[name]
    asked = HeadSystem(np.array(system["M"]), np.array(system["v"]), np.array(system["x0"]))
    assert verdict(system, asked.limit()) == "right"


@pytest.mark.parametrize(
    "name",
    [
        name if name in list(SYSTEMS)[::12] else pytest.param(name, marks=pytest.mark.slow)
        for name in SYSTEMS
    ],
)
def test_they_are_right_in_more_coordinates_than_there_are_tokens(name):
    system = SYSTEMS[name]
    M, v, x0 = (np.array(system[what]) for what in ("M", "v", "x0"))
    limit = al.limit(*widened(M, v, x0))
    assert limit.state.way == "span" and al.verify(limit).holds
    assert verdict(system, first_copy(limit, x0.shape[1])) == "right"
