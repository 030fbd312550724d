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
from attnlab.limits.problem import one_head
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

RESIDUAL = 1e-11
"""How far eigenvectors may be off, relative to V and their condition."""


@ways.register("groups")
def verify(limit: Limit) -> Iterator[Step]:
    """The steps of the check of groups."""
    yield Step("first tokens", lambda: check_digest(limit), None, NOT_CHECKED)
    yield Step("equation", lambda: _equation(limit))
    yield Step("groups", lambda: _groups(limit))
    yield Step("what the limit says", lambda: _says(limit))
    yield Step("changes of leader", lambda: check_no_events(limit))


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
    size, condition = float(np.linalg.norm(V, 2)), float(values["condition"])
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
    lead = _lead(values["rates"])
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


def _says(limit: Limit) -> str:
    values = limit.state.values
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
        excess = abs(rate) - rate.real
        if excess > 0.0 and math.isinf(span):
            raise Failed("A turning direction is given for ever, and discs around it grow.")
        for g in range(int(group.max()) + 1):
            members = u[group == g]
            low = members.real.min(axis=0)[a] + 1j * members.imag.min(axis=0)[a]
            high = members.real.max(axis=0)[a] + 1j * members.imag.max(axis=0)[a]
            centre = (low + high) / 2.0
            radius = (
                float(np.abs(members[:, a] - centre).max())
                * width
                * length
                * math.exp(-rate.real * (t + begin))
            )
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
        limit.error <= 2.0 * RESOLVED * size * math.exp(0.0),
        "The error is larger than a resolved direction may have.",
    )
    return f"labels, points and their error {limit.error:.2g} follow."
