"""A few proved limits, for the tests of proofs."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import attnlab as al

SYMMETRIC = np.array([[1.0, 0.3], [0.3, 0.2]])


SPECTRUM = np.diag([1.2, 0.8, -0.5])


LATE = np.diag([1.0, 0.9, -0.5])


def late_start() -> np.ndarray:
    """With LATE, leaders change at t = 10.7."""
    return start(8, 3, 1)


def start(n: int, d: int, seed: int, scale: float = 5.0) -> np.ndarray:
    return np.random.default_rng([11, n, d, seed]).uniform(-scale, scale, (n, d))


@cache
def proved(name: str) -> al.Limit:
    """A few proved limits, by name."""
    d = 3 if name in ("diagonal", "scores") else 2
    weights, options = al.Weights(V=np.eye(d)), {}
    x0 = start(5, d, 1)
    if name == "diagonal":
        weights, x0 = al.Weights(V=SPECTRUM), start(4, 3, 7)
    if name == "scores":
        Q = np.random.default_rng(2).normal(size=(2, 3))
        weights, options, x0 = (
            al.Weights(V=0.7 * np.eye(3), Q=Q, K=Q),
            {"beta": 0.3},
            start(4, 3, 3),
        )
    if name == "small":
        x0 = start(3, 2, 1)
    if name == "symmetric":
        weights, x0 = al.Weights(V=SYMMETRIC), start(4, 2, 2)
    if name == "equal":
        x0 = x0[[0, 1, 2, 1, 3, 0]]
    if name == "causal":
        options = {"mask": "causal"}
    limit = al.limit(weights, x0, proof=True, **options)
    assert limit.grade == "proved", limit.reason
    return limit


NAMES = (
    "small",
    "causal",
    "symmetric",
    *(
        pytest.param(name, marks=pytest.mark.slow)
        for name in ("scores", "equal", "identity", "diagonal")
    ),
)
