"""Limits in closed form with powers of the time, and of layers with several heads, against an
independent program with fifty digits: tests/truth/frozen/make_closed.py.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

import attnlab as al
from head_systems import first_copy, widened
from places import FROZEN

SYSTEMS = {
    system["name"]: system for system in json.loads((FROZEN / "closed.json").read_text())["systems"]
}
SLOW = tuple(list(SYSTEMS)[1::2])


def is_of_the_identity(system: dict) -> bool:
    """Whether there are several heads, and all V_h are v_h I."""
    V = np.array(system["V"])
    return len(V) > 1 and np.array_equal(V, V[:, :1, :1] * np.eye(V.shape[1]))


OF_I = [name for name, system in SYSTEMS.items() if is_of_the_identity(system)]


def ask(system: dict, is_widened: bool = False) -> al.Limit:
    """The limit, with z at the times of the truth; or in more coordinates than there are tokens."""
    M, V, x0 = (np.array(system[name]) for name in ("M", "V", "x0"))
    weights = al.Weights(Q=np.tile(np.eye(len(V[0])), (len(V), 1, 1)), K=M, V=V)
    if is_widened:
        weights, x0 = widened(M, V[:, 0, 0], x0)
    mask = "causal" if system["mask"] else "full"
    times, dt = [at["t"] for at in system["at"]], system.get("dt")
    return al.limit(weights, x0, mask=mask, dt=dt, times=times)


def verdict(system: dict, limit: al.Limit) -> str:
    """ "right", "undecided", or what is wrong."""
    if not limit.certified:
        return "undecided"
    leaders = limit.leaders[None] if limit.head_leaders is None else limit.head_leaders
    size, grows = np.abs(system["x0"]).max(), limit.basis.any(axis=1)
    for number, at in enumerate(system["at"]):
        if at["t"] < limit.t:
            continue
        wrong = (leaders >= 0) & (leaders != np.array(at["leaders"]))
        if wrong.any():
            return f"leaders at {at['t']}: {leaders}, truly {at['leaders']}"
        off = np.abs(limit.z[number] - np.array(at["z"], dtype=float))[:, grows].max()
        if off > limit.error + 1e-12 * size:
            return f"z({at['t']}) is off by {off:.2g}, error says {limit.error:.2g}"
    # what is certified is that this goes on: z comes to the points
    late = np.array(system["at"][-1]["z"], dtype=float)[:, grows]
    far = np.abs(late - limit.points).max(axis=0)
    rates = np.diagonal(np.sum(system["V"], axis=0))[grows]
    slow = [rate for rate in rates if rate > 0.5]
    if slow and not far[rates > 0.5].max(initial=0.0) < 0.02 * size:
        return f"z is {far} away from its limit"
    return "right"


def test_the_truths_are_what_was_asked_for():
    families = {name.split("-")[0] for name in SYSTEMS}
    assert len(SYSTEMS) >= 80 and families == {
        "causal",
        "own",
        "both",
        "blocks",
        "layers",
        "sum",
        "mirror",
    }
    assert sum(system["late_changes"] > 0 for system in SYSTEMS.values()) >= 4


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in SYSTEMS],
)
def test_no_certified_limit_is_wrong_and_its_check_holds(name):
    limit = ask(SYSTEMS[name])
    found = verdict(SYSTEMS[name], limit)
    assert found in ("right", "undecided"), found
    assert not limit.certified or al.verify(limit).holds


@pytest.mark.parametrize(
    "name",
    [name if name in OF_I[::6] else pytest.param(name, marks=pytest.mark.slow) for name in OF_I],
)
def test_they_are_right_in_more_coordinates_than_there_are_tokens(name):
    system = SYSTEMS[name]
    limit = ask(system, is_widened=True)
    assert not limit.certified or limit.state.way == "span" and al.verify(limit).holds
    assert verdict(system, first_copy(limit, len(system["x0"][0]))) == verdict(system, ask(system))
