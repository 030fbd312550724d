"""Whether a Limit says what its state shows: labels, leaders, points, error, and the tokens at
later times.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attnlab.limits.verification.equation import Equation
from attnlab.limits.verification.gaps import Tokens
from attnlab.limits.verification.record import require
from attnlab.types import Limit

MOST = 1.01
"""The error of a limit may be this many times the one that the state explains. A larger one would
let points be anywhere.
"""

ROUNDING = 1e-13
"""Another machine's exponentials and products may differ by this, relative to the largest point."""


@dataclass(frozen=True, eq=False)
class Expected:
    """What the fields of a Limit must be."""

    labels: np.ndarray
    leaders: np.ndarray
    points: np.ndarray  # (n, k)
    error: float  # that the state shows
    most: float  # the largest one that it explains
    basis: np.ndarray
    t: float
    apart: float = 0.0  # how far the replicas' points are off
    size: float = 1.0  # of the largest point


def labels_of(groups: np.ndarray) -> np.ndarray:
    """For each token the first one of its group, (n,)."""
    _, first, inverse = np.unique(groups, return_index=True, return_inverse=True)
    return first[inverse]


def check_limit(limit: Limit, expected: Expected) -> str:
    """Labels, leaders, basis and time are as expected, and the points are within the claimed error
    of the expected ones.
    """
    require(limit.grade in ("exact", "group"), f"The grade is {limit.grade!r}.")
    require(
        limit.basis.shape == expected.basis.shape and np.array_equal(limit.basis, expected.basis),
        "The basis of F is not made of the stored eigenvectors that grow.",
    )
    require(
        np.array_equal(limit.labels, expected.labels),
        "The labels do not follow from the state: tokens are grouped otherwise.",
    )
    require(
        np.array_equal(limit.leaders, expected.leaders),
        _differs("leader", limit.leaders, expected.leaders),
    )
    require(
        limit.points.shape == expected.points.shape,
        "The points have another shape than tokens and growing directions.",
    )
    off = (
        float(np.abs(limit.points - expected.points).max(initial=0.0))
        if np.isfinite(limit.points).all()
        else np.inf
    )
    allowed = limit.error + ROUNDING * max(float(np.abs(expected.points).max(initial=0.0)), 1e-300)
    require(
        expected.error <= allowed and limit.error <= MOST * expected.most,
        f"The error of the points is given as {limit.error:.2g}, and the state shows"
        f" {expected.most:.2g}.",
    )
    require(
        off + expected.error <= allowed,
        f"A point is {off:.2g} away from where the state shows it. The state is known to "
        f"{expected.error:.2g}, and the limit claims {limit.error:.2g}.",
    )
    require(
        abs(limit.t - expected.t) <= 1e-12 * max(abs(expected.t), 1.0),
        "The time of the decision is not that of the state.",
    )
    require(limit.places is None, "Places in R^d are for equations in which nothing grows.")
    count = int(limit.labels.max()) + 1
    limits = f"{count} limit{'s' if count > 1 else ''}"
    return (
        f"labels, leaders, {limits}, their error {limit.error:.2g} and the grade {limit.grade}"
        " follow."
    )


def _differs(what: str, found: np.ndarray, wanted: np.ndarray) -> str:
    if found.shape != wanted.shape:
        return f"There must be one {what} per token."
    token = int(np.argmax(found != wanted))
    return (
        f"The {what} of token {token} is {int(found[token])} in the file, and {int(wanted[token])}"
        " by the state."
    )


def check_range(limit: Limit, equation: Equation) -> str:
    """Along each real direction that grows, z stays between the smallest and the largest first
    token; so must its limit.
    """
    start = limit.x0 @ equation.inverse.T
    is_real = (np.abs(equation.rates.imag) == 0.0) & equation.is_growing
    chosen = is_real[equation.is_growing]
    low, high = start.min(axis=0)[is_real], start.max(axis=0)[is_real]
    slack = limit.error + 1e-9 * np.abs(start).max(initial=1e-300)
    points = limit.points[:, chosen]
    require(
        (points >= low - slack) & (points <= high + slack),
        "A limit lies outside of what the first tokens span along a growing direction: the state"
        " belongs to another start.",
    )
    return (
        f"the limits lie inside of what the first tokens span, along {int(chosen.sum())} real"
        " growing direction" + ("s." if chosen.sum() != 1 else ".")
    )


def check_events(limit: Limit) -> str:
    """The changes of leader end in the map of leaders."""
    last: dict[int, int] = {}
    n = len(limit.labels)
    for event in limit.events:
        require(
            all(0 <= token < n for token in (event.token, event.before, event.after)),
            "A change of leader names no token.",
        )
        require(event.t <= limit.t, "A change of leader comes after the time of the decision.")
        is_continued = last.get(event.token, event.before) == event.before
        require(
            is_continued or limit.grade != "exact",
            "Two changes of leader of one token do not fit together.",
        )
        last[event.token] = event.after
    if (
        limit.grade == "exact"
    ):  # in a group, tokens that merged below rounding have changed leaders unseen
        require(
            all(limit.leaders[token] == leader for token, leader in last.items()),
            "The last change of leader of a token is to another one than it follows in the end.",
        )
    many = f"{len(limit.events)} after the hand-over, which end in these leaders."
    return many if limit.events else "none after the hand-over."


def check_no_events(limit: Limit) -> str:
    """No change of leader is named."""
    require(not limit.events, "This way follows no changes of leader, and the limit names some.")
    return "none are named."


def check_later(
    limit: Limit, equation: Equation, tokens: Tokens, begin: float, same_as: np.ndarray
) -> str:
    """z and its projection on F at the times asked for, from the state on, are the closed form."""
    (n, k), d = limit.points.shape, len(equation.rates)
    times = np.flatnonzero(limit.times >= limit.t)
    if not times.size:
        return "none were asked for."
    require(
        limit.path.shape == (len(limit.times), n, k) and limit.z.shape == (len(limit.times), n, d),
        "z and its path must have one place per time and token.",
    )
    number = np.unique(same_as, return_inverse=True)[1]
    scale, basis = 2.0**tokens.shift, limit.state.values["basis"]
    for index in times:
        t = float(limit.times[index])
        c = scale * (
            tokens.grown * np.exp(-equation.rates * (tokens.t + begin))
            + tokens.D * np.exp(-equation.rates * t)
        )
        y = (c @ equation.back.T).real[number]
        path, z = y[:, equation.is_growing], y @ basis.T
        is_near = np.abs(limit.path[index] - path) <= limit.error + 1e-9 * max(
            float(np.abs(path).max(initial=0.0)), 1e-300
        )
        is_known = np.isfinite(limit.z[index])  # what exceeds double precision is not stored
        size = (
            np.abs(y) @ np.abs(basis).T
        )  # parts that decay in x grow in z, and may be large beside others
        is_same = np.abs(limit.z[index] - z) <= limit.error + 1e-9 * np.maximum(size, 1e-300)
        require(is_near, f"The path at t = {t:g} is not where the state leads.")
        require(
            is_same | ~is_known & ~np.isfinite(z), f"z at t = {t:g} is not where the state leads."
        )
    return f"z at {len(times)} later time{'s' if len(times) > 1 else ''} follows from the state."
