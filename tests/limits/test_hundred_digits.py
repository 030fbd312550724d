"""al.limit against limits found by an independent integrator with a hundred digits:
tests/truth/frozen/make_limits.py.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

import attnlab as al
from limit_systems import along
from places import FROZEN

FILE = json.loads((FROZEN / "limits.json").read_text())
SYSTEMS = {system["name"]: system for system in FILE["systems"]}


SLOW = ("mirror-006", "mirror-012", "mirror-013")
"""Almost symmetric to 1e-12: they need forty digits, and on a busy machine more time than they are
given here.
"""


def answer(system: dict, **more) -> al.Limit:
    weights = al.Weights(Q=system["Q"], K=system["K"], V=system["V"])
    return al.limit(
        weights,
        system["x0"],
        beta=system["beta"],
        mask="causal" if system["mask"] else "full",
        **more,
    )


def verdict(system: dict, limit: al.Limit) -> str:
    """ "right", "undecided", or what is wrong."""
    if not limit.certified:
        return "undecided"
    truth = np.array(system["points"], dtype=float)
    if limit.grade == "group":
        return verdict_of_groups(limit, truth)
    if not np.array_equal(limit.labels, system["labels"]):
        return f"labels {limit.labels}, truly {system['labels']}"
    if (
        limit.grade == "exact"
        and (wrong := (limit.leaders >= 0) & (limit.leaders != system["leaders"])).any()
    ):
        return f"leaders {limit.leaders}, truly {system['leaders']} ({wrong.sum()} wrong)"
    apart = np.abs(limit.limits - truth).max()
    allowed = limit.error * np.abs(limit.basis).sum(axis=1).max()
    return (
        "right"
        if apart <= allowed + 1e-13 * np.abs(truth).max()
        else f"points off by {apart:.2g}, error says {allowed:.2g}"
    )


def verdict_of_groups(limit: al.Limit, truth: np.ndarray) -> str:
    """The same for groups: limits nearer than the error are one group, and directions that are not
    resolved are left out.
    """
    z, slack = along(limit, truth), 1e-13 * np.abs(truth).max()
    apart = np.abs(limit.points - z).max()
    if apart > limit.error + slack:
        return f"points off by {apart:.2g}, error says {limit.error:.2g}"
    for label in range(limit.count):
        if np.ptp(z[limit.labels == label], axis=0).max() > 2.0 * limit.error + slack:
            return f"the group {label} holds limits that are apart"
    one = {tuple(point) for point in truth[limit.labels == 0]}
    if limit.count > 1 and one & {tuple(point) for point in truth[limit.labels != 0]}:
        return "one limit is in two groups"
    return "right"


@pytest.mark.slow
@pytest.mark.parametrize("name", SYSTEMS)
def test_certified_limits_are_right(name):
    found = verdict(SYSTEMS[name], answer(SYSTEMS[name], budget=60.0 if name in SLOW else 600.0))
    assert found == "right" or (found == "undecided" and name in SLOW)


@pytest.mark.parametrize("name", list(SYSTEMS)[::8])
def test_certified_limits_are_right_on_a_few(name):
    found = verdict(SYSTEMS[name], answer(SYSTEMS[name], budget=20.0 if name in SLOW else 600.0))
    assert found == "right" or (found == "undecided" and name in SLOW)
