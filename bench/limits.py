"""Times of al.limit, all three attempts included. There is no peer to compare with."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from table import Row
from timing import fastest

import attnlab as al

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


def rows() -> Iterator[Row]:
    for name, V, n, repeats in CASES:
        x0 = np.random.default_rng(1).uniform(-5, 5, (n, 3))
        found = []
        best = fastest({"attnlab": lambda V=V, x0=x0, found=found: found.append(al.limit(al.Weights(V=V), x0))}, 0.0, repeats)
        limit = found[-1]
        more = {"grade": limit.grade, "limits": limit.count, "events": len(limit.events), "t": limit.t}
        yield Row(f"limit, {name}", best, more=more)
