"""What a certificate was computed from, kept with the Limit so that the certificate can be checked
again from a file.

A State says the way in which the certificate came about, and holds the arrays that the way's proof
starts from. Numbers are arrays without axes. `limits/verification/` has one file per way.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab import frames
from attnlab.types import Dynamics

if TYPE_CHECKING:
    from attnlab.limits.attempt import Attempt
    from attnlab.limits.problem import Problem
    from attnlab.limits.quotient import Quotient

FROZEN_ARRAYS = (
    "leader",
    "root",
    "base",
    "is_alive",
    "Y",
    "E",
    "D",
    "Y_error",
    "E_error",
    "D_error",
)
"""What is kept of each attempt's frozen flow, beside t and shift."""


@dataclass(frozen=True, eq=False)
class State:
    """The way a certificate came about, and the arrays that its proof starts from, by name."""

    way: str
    values: Mapping[str, Any]

    def __post_init__(self) -> None:
        values = {
            name: frames.read_only(np.asarray(self.values[name])) for name in sorted(self.values)
        }
        object.__setattr__(self, "values", values)

    def __repr__(self) -> str:
        return f"State({self.way}, {sum(value.nbytes for value in self.values.values())} bytes)"


def frozen_state(problem: Problem, attempts: Sequence[Attempt], begin: float, digest: str) -> State:
    """The State of three certified attempts, the original first; `begin` is the time at which they
    start.
    """
    values: dict[str, Any] = {
        **eigen_data(problem, begin),
        "start_digest": digest,
        "tolerance": np.array([one.tolerance for one in attempts]),
    }
    flows = [one.frozen for one in attempts]
    values["rates_moved"] = np.stack([one.problem.rates - problem.rates for one in attempts])
    values["t"] = np.array([flow.t for flow in flows if flow is not None])
    values["shift"] = np.array([flow.shift for flow in flows if flow is not None])
    for name in FROZEN_ARRAYS:
        values[name] = np.stack([getattr(flow, name) for flow in flows])
    return State("frozen", values)


def symmetric_state(
    problem: Problem, found: Quotient, start: np.ndarray, begin: float, digest: str
) -> State:
    """The State of a symmetric limit and its two replicas; start (n, d) are the tokens at the time
    `begin`.
    """
    three = (found, *found.replicas)
    return State(
        "symmetric",
        {
            **eigen_data(problem, begin),
            "start_digest": digest,
            "start": start,
            "t": np.array([one.t for one in three]),
            "rtol": np.array([one.rtol for one in three]),
            "tokens": np.stack([one.tokens for one in three if one.tokens is not None]),
        },
    )


def eigen_data(problem: Problem, begin: float) -> dict[str, Any]:
    """The eigen-coordinates that a problem was solved in, which tokens are equal in it, and the
    time at which it begins.
    """
    coordinates = problem.coordinates
    return {
        "begin": float(begin),
        "basis": coordinates.basis,
        "inverse": coordinates.inverse,
        "growth": coordinates.growth,
        "turn": coordinates.turn,
        "same_as": problem.same_as,
    }


def start_digest(dynamics: Dynamics, x0: np.ndarray) -> str:
    """A digest of first tokens and equation: a state belongs to these. 64 hexadecimal digits."""
    weights = dynamics.weights
    names = [dynamics.mask.name, dynamics.dt, dynamics.geometry.name, dynamics.kernel.name]
    words = [
        float(dynamics.beta),
        *names,
    ]  # limits are computed for members that have no parameters
    digest = hashlib.sha256(json.dumps(words).encode())
    for array in (x0, weights.Q, weights.K, *(weights.V if weights.is_factored else (weights.V,))):
        digest.update(json.dumps(array.shape).encode())
        digest.update(np.ascontiguousarray(array, dtype=float).tobytes())
    return digest.hexdigest()
