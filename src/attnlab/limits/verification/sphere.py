"""On the sphere with V = c I, c > 0: the stored tokens lie in an open hemisphere, so they converge
to one point of their cone.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnlab.limits.problem import is_covered
from attnlab.limits.sphere_tokens import CLEAR
from attnlab.limits.verification import ways
from attnlab.limits.verification.equation import read_number
from attnlab.limits.verification.follows import check_no_events
from attnlab.limits.verification.record import require
from attnlab.limits.verification.start import check_digest
from attnlab.limits.verification.steps import Step
from attnlab.types import Limit

UNIT = 1e-8
"""How far the norm of a stored token may be from 1."""

NOT_CHECKED = (
    "That the first tokens lead to the stored tokens. `--again` integrates them again.",
    "z at the times asked for.",
)


@ways.register("sphere")
def verify(limit: Limit) -> Iterator[Step]:
    """The steps of the check of a limit on the sphere."""
    yield Step("equation", lambda: _check_equation(limit), None, NOT_CHECKED)
    yield Step("start", lambda: check_digest(limit))
    yield Step("hemisphere", lambda: _check_hemisphere(limit))
    yield Step("what the limit says", lambda: _check_limit(limit))
    yield Step("changes of leader", lambda: check_no_events(limit))


def _check_equation(limit: Limit) -> str:
    dynamics = limit.dynamics
    require(
        dynamics.geometry.is_unit_sphere
        and dynamics.kernel.is_exponential
        and dynamics.dt is None
        and dynamics.feedforward.is_none
        and is_covered(dynamics),
        "The proof is about smooth attention on the sphere in continuous time.",
    )
    d, factors = dynamics.weights.d, []
    for V in dynamics.weights.full_V:
        c = V[0, 0]
        require(V == c * np.eye(d), "The proof needs V = c I for every head.")
        require(
            c >= 0.0,
            f"The proof needs V = c I with c >= 0 for every head, and one has c = {c:.3g}.",
        )
        factors.append(c)
    require(sum(factors) > 0.0, "With V = 0 no token moves.")
    return (
        f"V = {sum(factors):.6g} I, summed over {len(factors)}"
        f" head{'s' if len(factors) > 1 else ''}."
    )


def _tokens(limit: Limit) -> tuple[np.ndarray, np.ndarray]:
    """The stored tokens (n, d), and where the replicas end (2, n, d)."""
    n, d = limit.x0.shape
    tokens, ends = limit.state.values["tokens"], limit.state.values["ends"]
    for name, array, shape in (("tokens", tokens, (n, d)), ("ends", ends, (2, n, d))):
        require(
            array.shape == shape and array.dtype == float and np.isfinite(array).all(),
            f"{name} of the state must be {shape} numbers.",
        )
        require(
            np.abs(np.sqrt((array**2).sum(axis=-1)) - 1.0) <= UNIT,
            f"{name} of the state do not lie on the sphere.",
        )
    return tokens, ends


def _middle(x: np.ndarray) -> np.ndarray:
    mean = x.sum(axis=0)
    return mean / np.sqrt((mean**2).sum())


def _check_hemisphere(limit: Limit) -> str:
    heights = [float((x @ _middle(x)).min()) for x in (_tokens(limit)[0], *_tokens(limit)[1])]
    require(
        min(heights) > CLEAR,
        f"The stored tokens are not in an open hemisphere: the lowest is {min(heights):.2g} above"
        " its equator.",
    )
    return (
        f"all stored tokens, and the replicas' too, are in an open hemisphere, {min(heights):.3g}"
        " above its equator at least."
    )


def _check_limit(limit: Limit) -> str:
    n, d = limit.x0.shape
    tokens, ends = _tokens(limit)
    require(
        not np.array_equal(ends[0], tokens) and not np.array_equal(ends[0], ends[1]),
        "Two of the three ends are copies: a replica is perturbed, and computed otherwise.",
    )
    is_causal = limit.dynamics.mask.is_causal
    point = limit.x0[0] if is_causal else _middle(tokens)
    if is_causal:
        require(
            np.abs(tokens[0] - limit.x0[0]) <= UNIT,
            "Under the causal mask the first token does not move, and the stored one has.",
        )
    spread, apart = (
        float(np.abs(tokens - _middle(tokens)).max()),
        float(np.abs(ends - tokens).max()),
    )
    require(limit.grade == "group", "On the sphere nobody leads: the grade must be group.")
    require(limit.places is None, "Places in R^d are for equations in which nothing grows.")
    require(np.array_equal(limit.basis, np.eye(d)), "On the sphere the basis must be the identity.")
    require(
        np.array_equal(limit.labels, np.zeros(n)),
        "All tokens converge to one point, and the labels say otherwise.",
    )
    require(
        np.array_equal(limit.leaders, np.zeros(n) if is_causal else np.full(n, -1)),
        "The leaders do not follow from the state.",
    )
    require(
        limit.points.shape == (n, d) and np.isfinite(limit.points).all(),
        "There must be one point per token.",
    )
    off, needed = float(np.abs(limit.points - point).max()), spread + 10.0 * apart
    require(
        needed <= 1.001 * limit.error and limit.error <= 1.001 * needed + 1e-15,
        f"The error is given as {limit.error:.2g}, and the stored tokens show {needed:.2g}.",
    )
    require(
        off <= limit.error,
        f"A point is {off:.2g} away from where the stored tokens meet; the error is"
        f" {limit.error:.2g}.",
    )
    require(
        abs(limit.t - read_number(limit.state.values, "t")) <= 1e-12 * max(abs(limit.t), 1.0),
        "The time is not that of the state.",
    )
    return (
        f"one limit, within {limit.error:.2g}: the tokens are spread by {spread:.2g}, and the"
        f" replicas end {apart:.2g} away."
    )
