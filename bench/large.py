"""A hundred thousand tokens: memory, and whether the time is n^2."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

from table import Row

PROGRAM = """
import json, re, resource, time
from pathlib import Path
import numpy as np
import attnlab as al
weights, best = al.Weights(V=np.eye(3)), {}
starts = {n: np.random.default_rng(0).normal(size=(n, 3)) for n in (10_000, 31_623, 100_000)}
al.velocity(weights, starts[10_000])
for repeat in range(3):
    for n, x in starts.items():
        for again in range(3 if n < 50_000 else 1):
            began = time.perf_counter()
            al.velocity(weights, x)
            best[n] = min(best.get(n, 1e9), time.perf_counter() - began)
# the peak of this program alone: getrusage would remember its parent's
status = Path("/proc/self/status")
found = re.search(r"VmHWM:\\s+(\\d+)", status.read_text()) if status.exists() else None
kilobytes = int(found[1]) if found else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"seconds": best, "peak": kilobytes * 1024}))
"""


def rows() -> Iterator[Row]:
    answer = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    found = json.loads(answer.stdout)
    seconds = {int(n): value for n, value in found["seconds"].items()}
    a_pair = {n: value / n**2 * 1e9 for n, value in seconds.items()}
    drift = a_pair[100_000] / a_pair[10_000]
    row = Row("one evaluation, n = 100,000, d = 3", {"attnlab": seconds[100_000]})
    row.ratios = {
        "0.5 GB by peak memory": 0.5e9 / found["peak"],
        "n^2 from 10^4 to 10^5": 1.0 / drift,
    }
    row.goals = {"0.5 GB by peak memory": 1.0, "n^2 from 10^4 to 10^5": 1 / 1.1}
    row.more = {"ns_per_pair": a_pair, "peak_bytes": found["peak"]}
    yield row
