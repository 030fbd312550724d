"""Whether a state belongs to the first tokens and the equation of its Limit."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from attnlab.limits.state import start_digest
from attnlab.limits.verification.record import require
from attnlab.types import Limit


def check_digest(limit: Limit) -> str:
    """x0, weights and options are the ones that the state was computed from."""
    found, wanted = str(limit.state.values["start_digest"]), start_digest(limit.dynamics, limit.x0)
    require(
        found == wanted,
        "The state was computed from other first tokens, weights or options than the file has.",
    )
    return (
        "first tokens, weights and options have the digest that the state was stored with,"
        f" {wanted[:12]}..."
    )


def read_same_as(values: Mapping[str, np.ndarray], n: int) -> np.ndarray:
    """For each of n tokens the first one that is equal to it, (n,), as the state says."""
    same = values["same_as"]
    require(
        same.shape == (n,)
        and same.dtype.kind == "i"
        and (same >= 0).all()
        and (same <= np.arange(n)).all()
        and np.array_equal(same[same], same),
        "same_as of the state must name for each token the first one equal to it.",
    )
    return same


def check_equal(start: np.ndarray, is_causal: bool, same_as: np.ndarray) -> None:
    """same_as (n,) names for each token of the start (n, d) the first one that stays equal to it,
    and for no other.
    """
    if is_causal:  # only those before which nothing differs
        is_first = np.logical_and.accumulate((start == start[0]).all(axis=1))
        equal = np.where(is_first, 0, np.arange(len(start)))
    else:
        _, first, inverse = np.unique(start, axis=0, return_index=True, return_inverse=True)
        equal = first[inverse.ravel()]
    require(
        same_as.dtype.kind == "i" and np.array_equal(same_as, equal),
        "The state takes other tokens as equal than the start has.",
    )
