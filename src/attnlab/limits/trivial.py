"""Starts whose limit needs no computation: all tokens equal, no part that grows, scores that are
all 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.limits.problem import Problem
from attnlab.limits.state import State, eigen_data
from attnlab.types import Limit


def trivial_limit(
    problem: Problem,
    start: np.ndarray,
    noise: np.ndarray,
    common: dict[str, Any],
    times: np.ndarray,
    begin: float,
) -> Limit | None:
    """The Limit of such a start (n, d), given in eigen-coordinates known up to noise (d,); None
    where it is not one.
    """
    n, k = len(start), int(problem.is_unstable.sum())
    basis, growing = problem.basis, start[:, problem.is_unstable]
    nobody, one_label = np.full(n, -1), np.zeros(n, np.int64)
    nowhere = np.full((len(times), n, start.shape[1]), np.nan)  # z is not followed here
    shared = {
        **common,
        "labels": one_label,
        "basis": basis,
        "error": 0.0,
        "times": times,
        "z": nowhere,
    }
    shared["path"] = np.zeros((len(times), n, k))
    shared["state"] = State("trivial", eigen_data(problem, begin))
    rounding = 1e-15 * max(float(np.abs(start).max()), 1e-300) * problem.condition
    is_plain = begin == 0.0 and not times.size  # else the general way, which knows about times
    if (problem.same_as == 0).all():
        if not is_plain:
            return None
        what = "There is one token" if n == 1 else f"All {n} tokens are equal, and stay so"
        reason = f"{what}: x(t) = e^{{tV}} x(0), z does not move."
        shared["error"] = rounding
        first = np.zeros(n, np.int64)
        return Limit(
            leaders=first,
            points=growing.copy(),
            grade="exact",
            reason=reason,
            certificate=reason,
            **shared,
        )
    if (np.abs(growing) <= noise[problem.is_unstable]).all() and not problem.is_complex:
        reason = (
            "No token has a part along the growing directions of V, and none ever gets one: the"
            " projection on F stays 0."
        )
        if growing.any():
            reason = (
                "No token has a part along the growing directions of V that rounding could tell"
                " from 0. Along each of them z stays between the smallest and the largest first"
                " token, so the projection on F stays 0 within the error."
            )
        shared["error"] = float(noise[problem.is_unstable].max())
        return Limit(
            leaders=nobody,
            points=np.zeros((n, k)),
            grade="group",
            reason=reason,
            certificate=reason,
            **shared,
        )
    if not problem.M.any() and problem.dynamics.mask.sees_all and is_plain:
        reason = (
            "All scores are 0: every token attends equally to all, x' = V mean(x), and all limits"
            " are the mean of the start."
        )
        shared["error"] = rounding
        points = np.tile(growing.mean(axis=0), (n, 1))
        return Limit(
            leaders=nobody,
            points=points,
            grade="group",
            reason=reason,
            certificate=reason,
            **shared,
        )
    return None
