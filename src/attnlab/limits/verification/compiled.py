"""The compiled check of a stored state: the code that found the limit, on the stored numbers."""

from __future__ import annotations

import time

import numpy as np

from attnlab.engine.coordinates import Coordinates
from attnlab.limits.allowance import Allowance
from attnlab.limits.certificate import make_certificate
from attnlab.limits.frozen import Frozen
from attnlab.limits.problem import Problem, one_head, problem_in
from attnlab.limits.verification.gaps import Tokens
from attnlab.types import Limit

SECONDS = 86_400.0
"""The check is not timed: it is one look at each pair."""


def stored_problem(limit: Limit) -> Problem:
    """The problem of a Limit in the eigen-coordinates that are stored with it."""
    values, dynamics = limit.state.values, one_head(limit.dynamics)
    d = dynamics.weights.d
    parts = {name: np.array(values[name]) for name in ("basis", "inverse", "growth", "turn")}
    return problem_in(
        dynamics,
        Coordinates(dynamics, **parts, group=np.zeros(d, np.int64)),
        np.array(values["same_as"]),
    )


def find_doubt(limit: Limit, tokens: Tokens) -> tuple[int, int]:
    """The first (row, column) of a state whose gap is not shown to stay open; (-1, -1) where all
    are.
    """
    problem = stored_problem(limit)
    parts = {
        name: np.array(getattr(tokens, name))
        for name in ("Y", "E", "D", "Y_error", "E_error", "D_error")
    }
    frozen = Frozen(
        problem=problem,
        t=tokens.t,
        leader=_whole(tokens.leader),
        root=_whole(tokens.root),
        base=_whole(tokens.base),
        **parts,
        bonus=np.log(tokens.copies),
        shift=tokens.shift,
        is_alive=np.array(tokens.is_alive),
    )
    return make_certificate(problem).doubt(frozen, unlimited())


def unlimited() -> Allowance:
    """An allowance that does not run out."""
    return Allowance(np.inf, SECONDS, time.monotonic() + SECONDS)


def _whole(array: np.ndarray) -> np.ndarray:
    return np.array(array, dtype=np.int64)
