"""Times of al.limit, all three attempts included, and of a unit of its work. There is no peer to
compare with, so a goal is a number of seconds.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from table import Row
from timing import fastest

import attnlab as al
from attnlab.limits.allowance import WORK

CLOSE = np.diag([1.0, 0.9, -0.5])
CODIMENSION = np.array(
    [
        [0.92761287, 0.94333073, 0.3827744],
        [0.94333073, 0.59991396, 0.47825472],
        [0.3827744, 0.47825472, 0.46668605],
    ]
)
THREE = np.array([1.0, 0.7, 0.4])[:, None, None] * np.eye(2)
SCORES = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.5, -0.5], [0.5, 0.5]], [[2.0, 0.0], [0.0, 0.5]]])


class Case(NamedTuple):
    """A limit to compute."""

    name: str
    V: np.ndarray  # (d, d), or (heads, d, d)
    n: int
    repeats: int  # 0: it is computed once
    size: float = 5.0  # of the cube that tokens are drawn from
    allowed: float | None = None  # the seconds that it may take
    work: float = 1e8  # the default allowance is too small for many tokens
    proof: bool = False
    M: np.ndarray | None = None  # (heads, d, d): Q^T K of each head; None: the identity


def sparse(d: int) -> np.ndarray:
    """A symmetric V of the kind of the paper's high-dimensional experiment: no eigenvalue is
    small.
    """
    rng = np.random.default_rng(1)
    A = rng.random((d, d)) * (rng.random((d, d)) < 0.1)
    values, vectors = np.linalg.eigh((A + A.T) / 2.0)
    values = np.where(np.abs(values) <= 1.0, np.sign(values) * rng.uniform(1.0, 2.0, d), values)
    return (vectors * values) @ vectors.T


CASES = [
    Case("n = 40, d = 3, V = I", np.eye(3), 40, 5),
    Case("n = 40, d = 3, codimension matrix", CODIMENSION, 40, 5),
    Case("n = 40, d = 3, V = diag(1, 0.9, -0.5)", CLOSE, 40, 5),
    Case("n = 250, d = 3, V = diag(1, 0.9, -0.5)", CLOSE, 250, 1),
    Case("n = 1000, d = 3, V = I", np.eye(3), 1000, 1, allowed=3.0),
    Case("n = d = 128, sparse V", sparse(128), 128, 0, size=0.5, allowed=30.0),
    Case("n = 10,000, d = 2, V = I", np.eye(2), 10_000, 0, allowed=120.0, work=5e6),
    Case("n = 10,000, d = 3, V = I", np.eye(3), 10_000, 0, allowed=120.0, work=5e6),
    Case("n = 20, d = 2, three heads, V_h = v_h I", THREE, 20, 1, M=SCORES),
    Case("n = 20, d = 2, V = I, proved", np.eye(2), 20, 0, proof=True),
]
UNITS = [(40, 3), (60, 20), (10, 64), (10, 200)]
"""Tokens and coordinates for which a unit of work is timed."""

LITTLE, MUCH = 100.0, 5e3
"""Units of two limits. The difference of their times has nothing in it of what is done once for
each limit.
"""


def rows() -> Iterator[Row]:
    yield from limits()
    yield from units()


def units() -> Iterator[Row]:
    """Seconds of a unit of work, and of the default work: that should end before the default
    budget, which is 60 s.
    """
    for n, d in UNITS:
        for kind in ("symmetric", "not symmetric"):
            rng = np.random.default_rng(0)
            V = rng.normal(size=(d, d)) / d**0.5
            weights, x0 = (
                al.Weights(V=(V + V.T) / 2.0 if kind == "symmetric" else V),
                rng.normal(size=(n, d)),
            )
            used = (
                al.limit(weights, x0, work=MUCH).stats["work"]
                - al.limit(weights, x0, work=LITTLE).stats["work"]
            )
            asked = {
                work: lambda weights=weights, x0=x0, work=work: al.limit(weights, x0, work=work)
                for work in (LITTLE, MUCH)
            }
            best = fastest({f"{work:g}": call for work, call in asked.items()}, 0.0, 3)
            unit = (best[f"{MUCH:g}"] - best[f"{LITTLE:g}"]) / used
            yield Row(
                f"a unit of work, n = {n}, d = {d}, V {kind}",
                {"attnlab": unit},
                more={"default": f"{unit * WORK:.3g} s"},
            )


def limits() -> Iterator[Row]:
    for case in CASES:
        d = case.V.shape[-1]
        x0 = np.random.default_rng(1).uniform(-case.size, case.size, (case.n, d))
        Q, K = (
            (None, None) if case.M is None else (np.broadcast_to(np.eye(d), case.M.shape), case.M)
        )
        weights = al.Weights(Q=Q, K=K, V=case.V)
        found: list[al.Limit] = []
        used: list[float] = []

        def compute(
            case: Case = case,
            x0: np.ndarray = x0,
            weights: al.Weights = weights,
            found: list[al.Limit] = found,
            used: list[float] = used,
        ) -> None:
            began = time.process_time()
            found.append(al.limit(weights, x0, work=case.work, budget=600.0, proof=case.proof))
            used.append(time.process_time() - began)

        if case.repeats:
            best = fastest({"attnlab": compute}, 0.0, case.repeats)
        else:
            began = time.perf_counter()
            compute()
            best = {"attnlab": time.perf_counter() - began}
        limit = found[-1]
        more = {
            "grade": str(limit.grade),
            "limits": limit.count,
            "events": len(limit.events),
            "t": limit.t,
        }
        more |= {"processor": min(used), "work": limit.stats.get("work")}
        yield Row(f"limit, {case.name}", best, more=more, allowed=case.allowed)
