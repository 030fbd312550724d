"""The way of heads in the span of their first tokens: a certificate for combinations of these, in
which it came about as any other.

The scores of the first tokens are formed again, exactly, in whole numbers, and rounded once.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

from attnlab.limits.state import State, start_digest
from attnlab.limits.verification import ways
from attnlab.limits.verification.closed import Closed
from attnlab.limits.verification.equation import read_number
from attnlab.limits.verification.heads import Heads
from attnlab.limits.verification.record import require
from attnlab.limits.verification.several import SeveralHeads
from attnlab.limits.verification.start import check_digest
from attnlab.limits.verification.steps import Step
from attnlab.types import Limit, Weights

UNIT = 2.0**-53
FORMS: dict[str, tuple[type[SeveralHeads[Any]], str]] = {
    "heads": (Heads, "classes"),
    "closed": (Closed, "closed form"),
}
"""The ways that a certificate inside may have come about, and the names of their closed forms."""


@ways.register("span")
def verify(limit: Limit) -> Iterator[Step]:
    """The steps of the check of the combinations, then those of the certificate inside."""
    inside: list[tuple[Limit, np.ndarray]] = []

    def check_span() -> str:
        says = _check_span(limit)
        inside.append(_inside(limit))
        return says

    yield Step("first tokens", lambda: check_digest(limit))
    yield Step("span", check_span)
    form, name = FORMS[str(limit.state.values["inside_way"])]
    yield from form(*inside[0]).steps(name)
    yield Step("limits in R^d", lambda: _check_points(limit))


def _check_span(limit: Limit) -> str:
    values, weights, x0 = limit.state.values, limit.dynamics.weights, limit.x0
    n, d = x0.shape
    frame, number, begin = values["frame"], values["number"], read_number(values, "begin")
    require(
        not weights.is_factored
        and all(np.array_equal(V, V[0, 0] * np.eye(d)) for V in weights.full_V),
        "A V is not a multiple of I, so tokens need not stay in the span of the first ones.",
    )
    m = len(frame)
    require(
        frame.shape == (m, d)
        and frame.dtype == float
        and np.isfinite(frame).all()
        and len(np.unique(frame, axis=0)) == m,
        "The first tokens of the state must be different ones, numbers in R^d.",
    )
    require(
        number.shape == (n,) and number.dtype.kind == "i" and set(number.tolist()) == set(range(m)),
        "The state must name for each token the first token that it is.",
    )
    way, shapes = str(values["inside_way"]), ((n, m), (), (len(limit.times), n, m))
    require(way in FORMS, f"No certificate of heads in a span comes about as {way[:40]!r}.")
    for name, shape in zip(("points", "error", "z"), shapes, strict=True):
        array = values[f"inside_{name}"]
        require(
            array.shape == shape and array.dtype == float,
            f"inside_{name} of the state must be numbers of the shape {shape}.",
        )
    begun = frame[number]
    if begin == 0.0:
        require(np.array_equal(begun, x0), "The first tokens of the state are not those given.")
    else:  # x0 is unwound to the time 0
        total, dt = float(weights.full_V[:, 0, 0].sum()), limit.dynamics.dt
        rate = total if dt is None else float(np.log1p(dt * total)) / dt
        require(
            np.abs(begun * np.exp(-rate * begin) - x0) <= 1e-11 * np.abs(x0).max(),
            "The first tokens of the state are not those given.",
        )
    return f"{d} dimensions are reduced to the combinations of {m} different first tokens."


def _inside(limit: Limit) -> tuple[Limit, np.ndarray]:
    """The Limit in m coordinates, and the error of its scores beta X Q^T K X^T, (h, m, m)."""
    values, weights, beta = limit.state.values, limit.dynamics.weights, limit.dynamics.beta
    own = {
        name.removeprefix("inside_"): value
        for name, value in values.items()
        if name.startswith("inside_")
    }
    way, points, error, z = (own.pop(name) for name in ("way", "points", "error", "z"))
    frame, number, m = values["frame"], values["number"], len(values["frame"])
    scores = exact_scores(weights, frame)
    dynamics = dataclasses.replace(
        limit.dynamics,
        weights=Weights(
            Q=np.tile(np.eye(m), (weights.heads, 1, 1)),
            K=scores,
            V=weights.full_V[:, :1, :1] * np.eye(m),
        ),
    )
    begin, total, dt = read_number(values, "begin"), weights.full_V[:, 0, 0].sum(), dynamics.dt
    rate = total if dt is None else np.log1p(dt * total) / dt
    start = np.eye(m)[number] * np.exp(-rate * begin)
    own["start_digest"] = np.array(start_digest(dynamics, start))  # that of the whole was compared
    inside = dataclasses.replace(
        limit,
        dynamics=dynamics,
        x0=start,
        basis=np.eye(m),
        points=points,
        error=float(error),
        z=z,
        path=z,
        state=State(str(way), own),
        spec=None,
    )
    return inside, 4.0 * UNIT * abs(beta) * np.abs(scores)


def exact_scores(weights: Weights, x: np.ndarray) -> np.ndarray:
    """x_i^T Q_h^T K_h x_j of tokens x (m, d), (h, m, m), each rounded once."""
    tokens, tokens_shift = _whole_numbers(x)
    found = np.empty((weights.heads, len(x), len(x)))
    for h, (Q, K) in enumerate(zip(weights.Q, weights.K, strict=True)):
        (q, q_shift), (k, k_shift) = _whole_numbers(Q), _whole_numbers(K)
        exact = (tokens @ q.T) @ (tokens @ k.T).T
        shift = 2 * tokens_shift + q_shift + k_shift
        found[h] = [[_rounded(int(one), shift) for one in row] for row in exact]
    return found


def _whole_numbers(A: np.ndarray) -> tuple[np.ndarray, int]:
    """Whole numbers N and a shift with A = N 2^shift, exactly."""
    mantissa, exponent = np.frexp(A)
    whole = np.ldexp(mantissa, 53).astype(np.int64).astype(object)
    shift = int(exponent[A != 0.0].min(initial=0)) if A.any() else 0
    powers = np.where(A != 0.0, exponent - shift, 0).astype(object)
    return whole * 2**powers, shift - 53


def _rounded(whole: int, shift: int) -> float:
    """whole 2^shift as a double."""
    return float(whole * 2**shift) if shift >= 0 else whole / 2**-shift


def _check_points(limit: Limit) -> str:
    values = limit.state.values
    frame, inside, z = values["frame"], values["inside_points"], values["inside_z"]
    (n, d), (m, _) = limit.x0.shape, frame.shape
    require(
        np.array_equal(limit.basis, np.eye(d)) and limit.points.shape == (n, d),
        "All directions grow alike: the basis must be that of R^d, with points in it.",
    )
    size = np.abs(frame)
    most = float(values["inside_error"]) * size.sum(axis=0)
    rounding = 2.0 * UNIT * (m + 2) * (np.abs(inside) @ size).max(axis=0)
    require(
        0.999 * float(most.max()) <= limit.error <= 1.01 * float((most + rounding).max()),
        f"The error is given as {limit.error:.2g}, and that of the combinations makes"
        f" {float((most + rounding).max()):.2g}.",
    )
    off = np.abs(limit.points - inside @ frame)
    require(
        off <= 2.0 * rounding, "A point is not the combination of first tokens that it must be."
    )
    first = np.unique(limit.labels, return_index=True)[1].tolist()
    for number, i in enumerate(first):
        for j in first[number + 1 :]:
            require(
                (np.abs(limit.points[i] - limit.points[j]) > 1.99 * most).any(),
                f"The limits of the tokens {i} and {j} cannot be told apart within their errors.",
            )
    known = np.isfinite(limit.z)
    with np.errstate(over="ignore", invalid="ignore"):
        wanted, scale = z @ frame, np.abs(z) @ size
    require(
        limit.z.shape == wanted.shape
        and np.array_equal(limit.z, limit.path, equal_nan=True)
        and ((np.abs(limit.z - wanted) <= 4.0 * UNIT * (m + 2) * scale) | ~known).all()
        and np.array_equal(known, np.isfinite(wanted)),
        "z is not the combination of first tokens that it must be.",
    )
    count = len(first)
    return f"{count} limit{'s' if count > 1 else ''} in R^{d}, within {limit.error:.2g}."
