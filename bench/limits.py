"""Times of al.limit, all three attempts included, and of a unit of its work. There is no peer to compare with."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from table import Row
from timing import fastest

import attnlab as al
from attnlab.limits.allowance import WORK

CLOSE = np.diag([1.0, 0.9, -0.5])
CODIMENSION = np.array([
    [0.92761287, 0.94333073, 0.3827744], [0.94333073, 0.59991396, 0.47825472], [0.3827744, 0.47825472, 0.46668605],
])
CASES = [
    ("n = 40, d = 3, V = I", np.eye(3), 40, 5),
    ("n = 40, d = 3, codimension matrix", CODIMENSION, 40, 5),
    ("n = 40, d = 3, V = diag(1, 0.9, -0.5)", CLOSE, 40, 5),
    ("n = 250, d = 3, V = diag(1, 0.9, -0.5)", CLOSE, 250, 1),
    ("n = 1000, d = 3, V = I", np.eye(3), 1000, 1),
]
UNITS = [(40, 3), (60, 20), (10, 64), (10, 200)]
"""Tokens and coordinates for which a unit of work is timed."""

LITTLE, MUCH = 100.0, 5e3
"""Units of two limits. The difference of their times has nothing in it of what is done once for each limit."""


def rows() -> Iterator[Row]:
    yield from limits()
    yield from units()


def units() -> Iterator[Row]:
    """Seconds of a unit of work, and of the default work: that should end before the default budget, which is 60 s."""
    for n, d in UNITS:
        for kind in ("symmetric", "not symmetric"):
            rng = np.random.default_rng(0)
            V = rng.normal(size=(d, d)) / d**0.5
            weights, x0 = al.Weights(V=(V + V.T) / 2.0 if kind == "symmetric" else V), rng.normal(size=(n, d))
            used = al.limit(weights, x0, work=MUCH).stats["work"] - al.limit(weights, x0, work=LITTLE).stats["work"]
            asked = {work: lambda weights=weights, x0=x0, work=work: al.limit(weights, x0, work=work) for work in (LITTLE, MUCH)}
            best = fastest({f"{work:g}": call for work, call in asked.items()}, 0.0, 3)
            unit = (best[f"{MUCH:g}"] - best[f"{LITTLE:g}"]) / used
            yield Row(f"a unit of work, n = {n}, d = {d}, V {kind}", {"attnlab": unit}, more={"default": f"{unit * WORK:.3g} s"})


def limits() -> Iterator[Row]:
    for name, V, n, repeats in CASES:
        x0 = np.random.default_rng(1).uniform(-5, 5, (n, 3))
        found = []
        best = fastest({"attnlab": lambda V=V, x0=x0, found=found: found.append(al.limit(al.Weights(V=V), x0))}, 0.0, repeats)
        limit = found[-1]
        more = {"grade": limit.grade, "limits": limit.count, "events": len(limit.events), "t": limit.t}
        yield Row(f"limit, {name}", best, more=more)
