"""The Limit of flows in closed form with powers of the time."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.limits.allowance import Allowance
from attnlab.limits.closed.certificate import end_in_closed_form
from attnlab.limits.closed.problem import ClosedProblem
from attnlab.limits.heads.answer import limit_in_closed_form
from attnlab.types import Limit


def closed_limit(
    problem: ClosedProblem,
    x0: np.ndarray,
    begin: float,
    times: np.ndarray,
    allowance: Allowance,
    common: dict[str, Any],
) -> Limit:
    """The Limit of one start x0 (n, d), which are the tokens at the time `begin`."""
    return limit_in_closed_form(
        problem, end_in_closed_form, "closed", x0, begin, times, allowance, common
    )
