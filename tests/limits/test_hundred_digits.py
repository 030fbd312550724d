"""al.limit against limits found by an independent integrator with a hundred digits:
tests/truth/frozen/make_limits.py.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

import attnlab as al
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
    if not np.array_equal(limit.labels, system["labels"]):
        return f"labels {limit.labels}, truly {system['labels']}"
    if (
        limit.grade == "exact"
        and (wrong := (limit.leaders >= 0) & (limit.leaders != system["leaders"])).any()
    ):
        return f"leaders {limit.leaders}, truly {system['leaders']} ({wrong.sum()} wrong)"
    truth = np.array(system["points"], dtype=float)
    apart = np.abs(limit.limits - truth).max()
    allowed = limit.error * np.abs(limit.basis).sum(axis=1).max()
    return (
        "right"
        if apart <= allowed + 1e-13 * np.abs(truth).max()
        else f"points off by {apart:.2g}, error says {allowed:.2g}"
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", SYSTEMS)
def test_certified_limits_are_right(name):
    found = verdict(SYSTEMS[name], answer(SYSTEMS[name], budget=60.0 if name in SLOW else 600.0))
    assert found == "right" or (found == "undecided" and name in SLOW)


@pytest.mark.parametrize("name", list(SYSTEMS)[::8])
def test_certified_limits_are_right_on_a_few(name):
    found = verdict(SYSTEMS[name], answer(SYSTEMS[name], budget=20.0 if name in SLOW else 600.0))
    assert found == "right" or (found == "undecided" and name in SLOW)
