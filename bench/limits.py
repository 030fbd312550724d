"""Times of al.limit, warm, all three attempts included: minima over repeats. There is no peer to compare with.

python bench/limits.py [--json]
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np

import attnlab as al

CLOSE = np.diag([1.0, 0.9, -0.5])
C9 = [[0.92761287, 0.94333073, 0.3827744], [0.94333073, 0.59991396, 0.47825472], [0.3827744, 0.47825472, 0.46668605]]
CASES = [
    ("n = 40, d = 3, V = I", np.eye(3), 40, 5),
    ("n = 40, d = 3, codimension matrix", C9, 40, 5),
    ("n = 40, d = 3, V = diag(1, 0.9, -0.5)", CLOSE, 40, 5),
    ("n = 250, d = 3, V = diag(1, 0.9, -0.5)", CLOSE, 250, 1),
    ("n = 1000, d = 3, V = I", np.eye(3), 1000, 1),
]


def main() -> None:
    rows = []
    al.limit(al.Weights(V=np.eye(3)), np.random.default_rng(0).uniform(-5, 5, (8, 3)))          # compiled before the clock starts
    for name, V, n, repeats in CASES:
        x0 = np.random.default_rng(1).uniform(-5, 5, (n, 3))
        seconds = []
        for _ in range(repeats):
            began = time.perf_counter()
            limit = al.limit(al.Weights(V=V), x0)
            seconds.append(time.perf_counter() - began)
        rows.append({
            "work": f"limit, {name}", "seconds": min(seconds), "grade": limit.grade, "limits": limit.count,
            "events": len(limit.events), "t": limit.t,
        })
        print(f"{rows[-1]['work']:48s} {min(seconds):8.3f} s   {limit.grade}, {limit.count} limits, {len(limit.events)} events",
              file=sys.stderr)
    if "--json" in sys.argv:
        json.dump(rows, sys.stdout, indent=1)
        print()


if __name__ == "__main__":
    main()
