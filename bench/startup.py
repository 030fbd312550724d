"""How long a user waits before anything happens: import, help, lists, the first run ever, every
other run.

Each row is the smallest wall time of several new processes, beside what it may take. On a busy
machine the processor time, also the smallest, says more.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from table import Row

from attnlab.examples import example_spec

REPEATS, COLD_REPEATS = 9, 3


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        spec = Path(folder, "polytope.toml")  # one run: the example as it is measures its error too
        example = example_spec("polytope_3d")
        spec.write_text(
            replace(example, solve={**example.solve, "measure_error": False}).to_toml(),
            encoding="utf-8",
        )
        run = ["run", str(spec), "-o", f"{folder}/run.nc", "--force"]
        first = [_time(_attnlab(run), f"{folder}/cache-{number}") for number in range(COLD_REPEATS)]
        yield _row("attnlab run, first ever, 40 tokens", first, 8.0)
        cache = f"{folder}/cache-0"
        for work, command, allowed in (
            ("attnlab run, again", _attnlab(run), 0.8),
            ("attnlab limit, again, 40 tokens", _attnlab(["limit", str(spec)]), 1.2),
            ("attnlab predict, 40 tokens", _attnlab(["predict", str(spec)]), 0.6),
            ("attnlab list", _attnlab(["list"]), 0.6),
            ("attnlab --help", _attnlab(["--help"]), 0.3),
            ("import attnlab", [sys.executable, "-c", "import attnlab"], 0.3),
        ):
            _time(command, cache)  # compiles what there is to compile
            yield _row(work, [_time(command, cache) for _ in range(REPEATS)], allowed)


def _attnlab(words: list[str]) -> list[str]:
    return [sys.executable, "-m", "attnlab", *words]


def _time(command: list[str], cache: str) -> tuple[float, float]:
    """(wall time, processor time) of a process, in seconds; machine code is kept in `cache`,
    bytecode as for any user.
    """
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=environment, check=True, capture_output=True)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _row(work: str, times: list[tuple[float, float]], allowed: float) -> Row:
    wall, processor = (min(values) for values in zip(*times, strict=True))
    return Row(work, {"attnlab": wall}, allowed=allowed, more={"processor": processor})
