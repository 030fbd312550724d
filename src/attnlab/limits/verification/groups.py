"""The way of groups: from three stored states on, tokens of a group stay together along the
directions that are given.

Written apart from limits/groups.py: discs, their growth and the points are formed again from the
coordinates that are stored, with the eigenvectors of V, which are checked. That groups are kept
apart is tested in apart.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from attnlab.limits.groups import LEAST_HORIZON, RESOLVED
from attnlab.limits.merged import LARGEST_CONDITION
from attnlab.limits.problem import EPSILON, one_head
from attnlab.limits.reach import is_plain
from attnlab.limits.verification import ways
from attnlab.limits.verification.apart import check_apart
from attnlab.limits.verification.follows import check_no_events, labels_of
from attnlab.limits.verification.record import Failed, require
from attnlab.limits.verification.start import check_digest, check_equal
from attnlab.limits.verification.steps import Step
from attnlab.types import Limit

NOT_CHECKED = (
    "That the first tokens lead to these states: they were integrated. `--again` does it again.",
    "How far the integration is off, beyond what the replicas show; and z at the times asked for.",
)

LEAST_TOLERANCE = np.array([1e-11, 1e-10, 1e-10])
"""Relative errors of the three states: ten times the finest tolerances of their flows."""

APART = 3.0
"""Replicas may be this many times as far apart as error and discs explain, since they turn between
their times."""

RESIDUAL = 1e-11
"""How far eigenvectors may be off, relative to V and their condition."""


@ways.register("groups")
def verify(limit: Limit) -> Iterator[Step]:
    """The steps of the check of groups."""
    yield Step("first tokens", lambda: check_digest(limit), None, NOT_CHECKED)
    yield Step("equation", lambda: _equation(limit))
    yield Step("groups", lambda: _groups(limit))
    yield Step("replicas", lambda: _replicas(limit))
    yield Step("what the limit says", lambda: _says(limit))
    yield Step("changes of leader", lambda: check_no_events(limit))


def _widest(offsets: np.ndarray, factor: float) -> float:
    """Return how far tokens of a group get from its first one under the causal mask, beside
    e^{Re lambda s}.

    A token is moved by earlier ones only: it gets no farther than `factor` = |lambda| / Re lambda
    times the farthest of them, or stays as near as it is.
    """
    farthest = 0.0
    for offset in offsets:
        farthest = max(farthest, float(offset), factor * farthest)
    return farthest


def _equation(limit: Limit) -> str:
    require(
        is_plain(limit.dynamics),
        "Groups are certified for softmax attention in R^d with one head, in continuous time.",
    )
    values, weights = limit.state.values, one_head(limit.dynamics).weights
    V, rates, vectors = weights.full_V[0], values["rates"], values["vectors"]
    require(
        vectors.shape == (len(V), len(rates)) and np.isfinite(vectors).all(),
        "There must be one eigenvector per rate.",
    )
    rank = weights.V[0][0].shape[1] if weights.is_factored else len(V)
    require(
        len(rates) == rank and np.isfinite(rates).all(),
        f"V has {rank} rates with eigenvectors, not {len(rates)}.",
    )
    size, condition = float(np.linalg.norm(V, 2)), float(values["condition"])
    own = LARGEST_CONDITION if weights.is_factored else float(np.linalg.cond(vectors))
    require(
        0.99 <= condition <= min(1.01 * own, LARGEST_CONDITION),
        "The condition is not that of the stored eigenvectors.",
    )
    off = float(np.abs(V @ vectors - vectors * rates).max()) / max(
        float(np.abs(vectors).max()), 1e-300
    )
    require(
        off <= RESIDUAL * size * max(condition, 1.0),
        f"V X = X L is off by {off:.2g}: the eigenvectors are not those of V.",
    )
    trace = abs(complex(np.trace(V)) - complex(rates.sum()))
    require(
        trace <= 1e-9 * size * len(V),
        "The rates are not the eigenvalues of V: their sum is not its trace.",
    )
    check_equal(limit.x0, limit.dynamics.mask.is_causal, values["same_as"])
    return f"the stored eigenvectors are those of V, leading rate {_lead(rates):.6g}."


def _lead(rates: np.ndarray) -> complex:
    return complex(rates[np.lexsort((-rates.imag, -rates.real))[0]])


def _groups(limit: Limit) -> str:
    values = limit.state.values
    group, u, t = values["group"], values["u"], values["t"]
    require(
        group.shape == u.shape[:2] and t.shape == (3,) and np.isfinite(u).all(),
        "Three states of the same tokens are needed.",
    )
    for other in group[1:]:
        require(
            (group[0][:, None] == group[0][None]) == (other[:, None] == other[None]),
            "The three states have other groups.",
        )
    tolerance, coordinates = values["tolerance"], values["coordinates"]
    require(
        tolerance.shape == (3,) and tolerance >= 0.999 * LEAST_TOLERANCE,
        "The state claims a tolerance that groups are not followed with.",
    )
    require(
        coordinates.dtype.kind == "i"
        and coordinates.ndim == 1
        and (coordinates >= 0).all()
        and (coordinates < len(values["rates"])).all(),
        "coordinates of the state must be numbers of rates.",
    )
    lead = _lead(values["rates"])
    require(
        (values["rates"][coordinates] == lead).any(),
        "The leading direction is not among those that are given.",
    )
    require(
        (np.abs(u[:, :, values["rates"] == lead]).max(axis=1) > 0.0),
        "Nothing is along the leading direction.",
    )
    span = math.inf if limit.horizon is None else limit.horizon - limit.t
    require(
        limit.horizon is None or span * lead.real >= 0.999 * LEAST_HORIZON,
        "The horizon is too near to say anything.",
    )
    if int(group.max()) > 0:
        check_apart(limit, span)
    return f"{int(group.max()) + 1} group" + (
        "s, which do not listen to each other."
        if group.max()
        else ": all tokens, so nobody else is there to listen to."
    )


def _replicas(limit: Limit) -> str:
    """The replicas are no copies, and end where the original does, within error and discs."""
    values = limit.state.values
    u, group, t, begin = values["u"], values["group"], values["t"], float(values["begin"])
    require(
        not any(np.array_equal(u[i], u[j]) for i, j in ((0, 1), (0, 2), (1, 2))),
        "Two of the three states are copies: a replica is perturbed, and computed otherwise.",
    )
    apart = 0.0
    for a in values["coordinates"]:
        rate = values["rates"][a]
        vector = values["vectors"][:, a] / rate
        length = max(float(np.linalg.norm(vector.real)), float(np.linalg.norm(vector.imag))) * (
            1.0 + (rate.imag != 0.0)
        )
        for other in (1, 2):
            z, radius = np.zeros((2, u.shape[1]), complex), 0.0
            for row, number in enumerate((0, other)):
                z[row] = u[number, :, a] * np.exp(-rate * (t[number] + begin)) * length
                radius += max(
                    float(np.ptp(part[group[number] == g]))
                    for part in (z[row].real, z[row].imag)
                    for g in range(int(group.max()) + 1)
                )
            radius *= math.exp((abs(rate) - rate.real) * abs(t[other] - t[0]))
            off = float(np.abs(z[0] - z[1]).max())
            apart = max(apart, off)
            require(
                off <= APART * (limit.error + radius),
                f"A replica is {off:.2g} away, and the error is {limit.error:.2g}.",
            )
    return f"both end in the same groups; their tokens are {apart:.2g} apart at most."


def _says(limit: Limit) -> str:
    values = limit.state.values
    require(
        limit.grade == "group", f"Groups have the grade group, and the limit says {limit.grade}."
    )
    require(limit.places is None, "Places in R^d are for equations in which nothing grows.")
    require(
        np.isfinite(limit.points).all() and np.isfinite(limit.error),
        "Points and error must be finite.",
    )
    rates, vectors, begin = values["rates"], values["vectors"], float(values["begin"])
    u, group, t = values["u"][0], values["group"][0], float(values["t"][0])
    number = np.unique(values["same_as"], return_inverse=True)[1]
    span = math.inf if limit.horizon is None else limit.horizon - limit.t
    require(
        abs(limit.t - (t + begin)) <= 1e-12 * max(limit.t, 1.0),
        "The time of the decision is not that of the state.",
    )
    require(
        np.array_equal(labels_of(limit.labels), labels_of(group[number])),
        "The labels are not the groups of the state.",
    )
    own = group[number]
    leaders = np.where(np.bincount(own)[own] == 1, np.arange(len(own)), -1)
    require(
        np.array_equal(limit.leaders, leaders),
        "In a group of two tokens or more the leader is open, and the limit names one.",
    )
    column, error = 0, 0.0
    lead = _lead(rates)
    for a in values["coordinates"]:
        rate, width = rates[a], 1 if rates[a].imag == 0.0 else 2
        require(rate.real > 0.0, "A direction is given that does not grow.")
        vector = vectors[:, a] / rate
        length = max(float(np.linalg.norm(vector.real)), float(np.linalg.norm(vector.imag)))
        wanted = (
            np.stack([vector.real] if width == 1 else [vector.real, vector.imag], axis=1) / length
        )
        require(
            np.allclose(limit.basis[:, column : column + width], wanted, rtol=0.0, atol=1e-12),
            "The basis is not made of the stored eigenvectors.",
        )
        is_causal = limit.dynamics.mask.is_causal
        excess = 0.0 if is_causal else abs(rate) - rate.real
        if excess > 0.0 and math.isinf(span):
            raise Failed("A turning direction is given for ever, and discs around it grow.")
        for g in range(int(group.max()) + 1):
            members = u[group == g]
            if is_causal:
                centre = members[0, a]
                largest = _widest(np.abs(members[:, a] - centre), abs(rate) / rate.real)
            else:
                low = members.real.min(axis=0)[a] + 1j * members.imag.min(axis=0)[a]
                high = members.real.max(axis=0)[a] + 1j * members.imag.max(axis=0)[a]
                centre = (low + high) / 2.0
                largest = float(np.abs(members[:, a] - centre).max())
            radius = largest * width * length * math.exp(-rate.real * (t + begin))
            radius *= 1.0 if excess == 0.0 else math.exp(excess * span)
            error = max(error, radius)
            w = centre * np.exp(-rate * (t + begin)) * length
            point = np.array([w.real] if width == 1 else [2.0 * w.real, -2.0 * w.imag])
            inside = limit.points[group[number] == g, column : column + width]
            off = float(np.abs(inside - point).max(initial=0.0))
            require(
                off + radius <= limit.error * (1.0 + 1e-6) + 1e-12 * float(np.abs(point).max()),
                f"A point is {off:.2g} from the middle of its group, whose disc has the radius"
                f" {radius:.2g}.",
            )
        column += width
    require(
        column == limit.basis.shape[1] == limit.points.shape[1],
        "There are more directions than the state has.",
    )
    a = int(np.flatnonzero(rates == lead)[0])
    size = (
        float(np.abs(u[:, a]).max())
        * math.exp(-lead.real * (t + begin))
        * 2.0
        * float(np.linalg.norm(vectors[:, a] / lead))
    )
    require(
        limit.error <= 2.0 * RESOLVED * size,
        "The error is larger than a resolved direction may have.",
    )
    least = 50.0 * EPSILON * float(values["condition"]) * size / 2.0
    require(
        limit.error >= least,
        f"The error is given as {limit.error:.2g}, and rounding alone makes {least:.2g}.",
    )
    return f"labels, points and their error {limit.error:.2g} follow."
