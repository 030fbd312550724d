"""Starts whose limit needs no computation: all tokens equal, no part that grows, scores that are
all 0.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnlab.limits.verification import ways
from attnlab.limits.verification.equation import Equation, read_equation, read_number
from attnlab.limits.verification.follows import Expected, check_limit, check_no_events
from attnlab.limits.verification.record import Failed, require
from attnlab.limits.verification.steps import Step
from attnlab.types import Limit

NOT_CHECKED = ("z at the times asked for.",)


@ways.register("trivial")
def verify(limit: Limit) -> Iterator[Step]:
    """The steps of the check of such a start."""
    found: dict[str, Equation] = {}

    def check_equation() -> str:
        found["equation"] = read_equation(limit.dynamics, limit.state.values)
        grows = int(found["equation"].is_growing.sum())
        require(grows > 0, "V has no growing direction, and this way is about those.")
        return (
            f"the stored eigenvectors are those of V; {grows} of {len(found['equation'].rates)}"
            " grow."
        )

    yield Step("equation", check_equation, None, NOT_CHECKED)
    yield Step("proof", lambda: _proof(limit, found["equation"])[1])
    yield Step("what the limit says", lambda: _check_limit(limit, found["equation"]))
    yield Step("changes of leader", lambda: check_no_events(limit))


def _proof(limit: Limit, equation: Equation) -> tuple[str, str]:
    """(which case, a sentence)."""
    x0, begin = limit.x0, read_number(limit.state.values, "begin")
    at_begin = equation.unwound(x0 @ equation.inverse.T, -begin)
    growing = at_begin[:, equation.is_growing]
    if (x0 == x0[0]).all() and begin == 0.0:
        return "equal", "all tokens are equal and stay so: z does not move."
    is_real = not equation.rates[equation.is_growing].imag.any()
    if is_real and (np.abs(growing) <= 1.001 * _noise(limit, equation)).all():
        return (
            "nothing",
            (
                "no token has a part along the growing directions, beyond the error, and none ever"
                " gets one."
            ),
        )
    if not equation.scores.any() and limit.dynamics.mask.sees_all and begin == 0.0:
        return (
            "mean",
            "all scores are 0, so x' = V mean(x), and all limits are the mean of the start.",
        )
    raise Failed("This start is none of those whose limit needs no computation.")


def _check_limit(limit: Limit, equation: Equation) -> str:
    case, _ = _proof(limit, equation)
    n, d = limit.x0.shape
    start = limit.x0 @ equation.inverse.T
    growing = start[:, equation.is_growing]
    rounding = 1e-15 * max(float(np.abs(start).max()), 1e-300) * equation.condition
    error = float(_noise(limit, equation).max()) if case == "nothing" else rounding
    points = {
        "equal": growing,
        "nothing": np.zeros_like(growing),
        "mean": np.tile(growing.mean(axis=0), (n, 1)),
    }[case]
    require(
        limit.grade == ("exact" if case == "equal" else "group"),
        f"The grade {limit.grade} does not follow.",
    )
    leaders = np.zeros(n, int) if case == "equal" else np.full(n, -1)
    expected = Expected(
        np.zeros(n, int),
        leaders,
        points,
        0.5 * error,
        2.0 * error,
        limit.state.values["basis"][:, equation.is_growing],
        limit.t,
    )
    return check_limit(limit, expected)


def _noise(limit: Limit, equation: Equation) -> np.ndarray:
    """What rounding may have done to the growing coordinates of the tokens with which the
    integration began, (k,).
    """
    y = equation.unwound(limit.x0 @ equation.inverse.T, -read_number(limit.state.values, "begin"))
    return equation.noise(y @ limit.state.values["basis"].T)[equation.is_growing]
