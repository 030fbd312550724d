"""Systems whose tokens end in groups, with flows in extended precision (frozen/groups.json), and
what a limit is compared with.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np

import attnlab as al
from attnlab.limits.allowance import Allowance
from attnlab.limits.gathering import as_groups
from limit_systems import along

PLACE = Path(__file__).parent / "frozen" / "groups.json"
SYSTEMS = (
    {one["name"]: one for one in json.loads(PLACE.read_text())["systems"]} if PLACE.exists() else {}
)


def turning(a: float, b: float) -> np.ndarray:
    return np.array([[a, b], [-b, a]])


def equation(system: dict) -> al.Dynamics:
    V = (np.array(system["B"]), np.array(system["C"])) if "B" in system else system["V"]
    weights = al.Weights(Q=system["Q"], K=system["K"], V=V)
    return al.Dynamics(weights, beta=system["beta"], mask="causal" if system["mask"] else "full")


def answer(system: dict, **more) -> al.Limit:
    return al.limit(equation(system), system["x0"], **more)


def answer_as_groups(system: dict) -> al.Limit | None:
    """What the way of groups says, also where final leaders can be certified."""
    dynamics, x0 = equation(system), np.array(system["x0"])
    allowance = Allowance(1.5e6, 120.0, time.monotonic() + 120.0)
    return as_groups(
        dynamics, x0, 0.0, np.zeros(0), allowance, {"dynamics": dynamics, "x0": x0, "spec": None}
    )[0]


def verdict(system: dict, limit: al.Limit) -> str:
    """ "right", "undecided", "no truth at that time", or what is wrong."""
    if limit.grade == "undecided":
        return "undecided"
    compared, slowest = (
        False,
        min(rate.real for rate in np.linalg.eigvals(np.array(system["V"])) if rate.real > 1e-12),
    )
    for one in system["at"]:
        if one["t"] < limit.t or (limit.horizon is not None and one["t"] > limit.horizon):
            continue
        compared = True
        z = along(limit, np.array(one["points"], dtype=float))
        slack = 1e-12 * np.abs(z).max()
        if limit.state is not None and "groups" in (
            limit.state.way,
            str(limit.state.values.get("inside_way")),
        ):
            apart = np.abs(limit.points - z).max()
            if apart > limit.error + slack:
                return (
                    f"points off by {apart:.2g} at t = {one['t']:.3g}, error says {limit.error:.2g}"
                )
        for label in range(limit.count or 0):
            members = z[limit.labels == label]
            left = np.exp(
                -slowest * (one["t"] - limit.t)
            )  # offsets beside tokens, along the slowest direction
            if (
                np.ptp(members, axis=0).max()
                > 2.0 * limit.error + 2.0 * left * np.abs(z).max() + slack
            ):
                return f"label {label} holds tokens that are apart at t = {one['t']:.3g}"
    return "right" if compared else "no truth at that time"
