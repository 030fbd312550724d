"""How long a user waits before anything happens: import, the first run ever, every other run."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from table import Row

SPEC = Path(__file__).parents[1] / "examples" / "polytope.toml"


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "NUMBA_CACHE_DIR": f"{folder}/cache"}
        run = [sys.executable, "-m", "attnlab", "run", str(SPEC), "-o", f"{folder}/run.nc", "--force"]
        yield _row("import attnlab", [sys.executable, "-c", "import attnlab"], 0.3, 7, environment)
        yield _row("attnlab run, first ever", run, 15.0, 1, environment)
        yield _row("attnlab run, again", run, 1.5, 7, environment)


def _row(work: str, command: list[str], allowed: float, repeats: int, environment: dict[str, str]) -> Row:
    best = float("inf")
    for _ in range(repeats):
        began = time.perf_counter()
        subprocess.run(command, env=environment, check=True, capture_output=True)
        best = min(best, time.perf_counter() - began)
    name = f"{allowed:g} s"
    return Row(work, {"attnlab": best}, {name: allowed / best}, {name: 1.0})
