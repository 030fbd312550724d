"""Run the steps of a way, until one fails, and say what came out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from attnlab.limits.verification import ways
from attnlab.limits.verification.record import Check, Failed, Verification
from attnlab.progress import Progress
from attnlab.types import Limit

NO_STATE = (
    "No state is stored with this limit, so its certificate cannot be verified from the file."
    " Compute it once more from its first tokens: attnlab verify --again, or al.verify(...,"
    " again=True)."
)


UNREADABLE = (ValueError, IndexError, TypeError, ArithmeticError)
"""What arithmetic raises on a state that no computation has left."""

OF_HEADS = ("heads", "closed", "span")
"""The ways whose limits name the leaders of each head."""

WORDS = "The words of `reason` and `certificate`, and the numbers in `stats`."
"""What no way checks."""


class Step(NamedTuple):
    """A check by name. The first step of a way also holds the numbers that all steps fill, and what
    the way cannot check.
    """

    name: str
    check: Callable[..., str]
    numbers: Mapping[str, float] | None = None
    not_checked: tuple[str, ...] = ()
    is_long: bool = False  # whether the check takes seconds: it is then called with the progress


def verify_limit(limit: Limit, progress: Progress | None = None) -> Verification:
    """Check the certificate of one Limit from the state that is stored with it."""
    if limit.grade == "undecided":
        return _of_undecided(limit)
    if limit.state is None:
        return Verification(None, NO_STATE)
    way = str(limit.state.way)
    if way not in ways:
        reason = (
            f"The certificate came about in a way that this attnlab does not know, {way[:40]!r}."
            " Upgrade attnlab."
        )
        return Verification(None, reason)
    if way not in OF_HEADS and limit.head_leaders is not None:
        return Verification(
            False,
            "The limit names leaders of heads, and its certificate is not one of several heads.",
            way,
        )
    checks: list[Check] = []
    numbers: Mapping[str, float] = {}
    not_checked: tuple[str, ...] = (WORDS,)
    with np.errstate(all="ignore"):
        for step in ways[way](limit):
            numbers = (
                numbers if step.numbers is None else step.numbers
            )  # which the steps still fill
            not_checked = (*step.not_checked, *not_checked)
            try:
                checks.append(
                    Check(step.name, True, step.check(progress) if step.is_long else step.check())
                )
            except Failed as problem:
                reason = f"The certificate does not follow from what is stored. {problem}"
                return Verification(
                    False,
                    reason,
                    way,
                    (*checks, Check(step.name, False, str(problem))),
                    not_checked,
                    dict(numbers),
                )
            except (KeyError, *UNREADABLE) as problem:
                is_missing = isinstance(problem, KeyError)
                said = (
                    f"{problem} is missing in the state."
                    if is_missing
                    else (f"Its numbers do not fit together: {problem}.")
                )
                return Verification(
                    False,
                    f"The state is not whole. {said}",
                    way,
                    (*checks, Check(step.name, False, said)),
                    not_checked,
                )
    reason = "The certificate follows from what is stored."
    return Verification(True, reason, way, tuple(checks), not_checked, dict(numbers))


def _of_undecided(limit: Limit) -> Verification:
    names = (limit.labels >= 0).any() or (limit.leaders >= 0).any()
    if names or np.isfinite(limit.points).any() or limit.places is not None:
        return Verification(
            False,
            "The grade is undecided, and yet the limit names labels, leaders, points or places.",
        )
    return Verification(
        None, "This limit is undecided. It claims nothing, so there is nothing to verify."
    )
