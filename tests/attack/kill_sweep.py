"""Kill a sweep at random moments, again and again, and compare its rows with those of an
undisturbed run.

    python tests/attack/kill_sweep.py 200           # kills; prints what happened as JSON

Each start is ended at a random moment, most of them when rows are being written: the main process
by SIGKILL, SIGTERM or SIGINT, or a worker by SIGKILL and the main process later. After each of them
no row may be lost, doubled or different, and every worker must end by itself. When a sweep is
complete, the next start begins with an empty folder.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from attnlab.sweep import Rows, Sweep

SWEEP = """
seeds = {seeds}
[base.weights]
family = "identity"
[base.dynamics]
geometry = "sphere"
[base.start]
law = "sphere"
n = 24
d = 3
[base.solve]
t_end = 30
[axes]
"dynamics.beta" = {{ logspace = [0.1, 9, 10] }}
[numbers]
spread = {{ observable = "diameter" }}
merged = {{ observable = "diameter", at = {{ below = 1e-3 }} }}
"""

START = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from attnlab.cli"
    " import main; main()"
)
CODES = {signal.SIGKILL: -9, signal.SIGTERM: 143, signal.SIGINT: 130}
PATIENCE = 120.0

LATE = 0.8
"""The share of starts that are ended after the first new row was written; the others may be ended
before.
"""

FIRST_WRITES = 2
"""Changes of SQLite's log that may be those of opening it."""


class Wrong(AssertionError):
    """A row was lost, doubled or different, or a process did not end."""


def attack(kills: int, seeds: int, longest: float = 1.5, seed: int = 0) -> dict[str, object]:
    """Kill so often, at most `longest` seconds after the first new row or after the start; return
    counts of what happened.
    """
    rng, happened = random.Random(seed), Counter()
    with tempfile.TemporaryDirectory() as folder:
        expected = _undisturbed(Path(folder) / "whole", seeds)
        place = Path(folder) / "attacked"
        while sum(happened[one] for one in ("SIGKILL", "SIGTERM", "SIGINT", "worker")) < kills:
            before = _rows(place)
            if not place.exists():
                place.mkdir()
                (place / "some.toml").write_text(SWEEP.format(seeds=seeds))
            happened[_one_kill(place, rng, longest)] += 1
            print(json.dumps(happened), file=sys.stderr, flush=True)
            after = _rows(place)
            happened["rows compared"] += len(after)
            happened["rows won"] += len(after) - len(before)
            _compare(before, after, expected)
            if len(after) == len(expected):
                happened["complete sweeps"] += 1
                for file in place.iterdir():
                    file.unlink()
                place.rmdir()
    return {"cells": len(expected), **happened}


def _undisturbed(place: Path, seeds: int) -> dict[str, object]:
    place.mkdir()
    (place / "some.toml").write_text(SWEEP.format(seeds=seeds))
    Sweep.load(place / "some.toml").run(workers=0)
    return _rows(place)


def _rows(place: Path) -> dict[str, object]:
    """{digest: what must not change} of the rows that are there."""
    if not (place / "some.sqlite").exists():
        return {}
    rows = list(Rows(place / "some.sqlite").read())
    found = {
        row.digest: (row.status, dict(row.axes), dict(row.numbers), row.error, row.seed)
        for row in rows
    }
    if len(found) != len(rows):
        raise Wrong("A row is there twice.")
    return found


def _compare(
    before: dict[str, object], after: dict[str, object], expected: dict[str, object]
) -> None:
    for digest, row in before.items():
        if after.get(digest) != row:
            raise Wrong(f"The row {digest} was lost or changed: {row} and {after.get(digest)}.")
    for digest, row in after.items():
        if expected[digest] != row:
            raise Wrong(
                f"The row {digest} differs from an undisturbed run: {row} and {expected[digest]}."
            )


def _one_kill(place: Path, rng: random.Random, longest: float) -> str:
    """Start the sweep, end it after a random time, and return how."""
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            START,
            "sweep",
            str(place / "some.toml"),
            "--workers",
            rng.choice("12"),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    how = rng.choices([signal.SIGKILL, signal.SIGTERM, signal.SIGINT, "worker"], [4, 2, 2, 2])[0]
    words, log = "", place / "some.sqlite-wal"
    try:
        if rng.random() < LATE:
            seen, begun = {_state(log)}, time.monotonic()
            while (
                len(seen) <= FIRST_WRITES
                and process.poll() is None
                and time.monotonic() < begun + PATIENCE
            ):
                time.sleep(0.002)
                seen.add(_state(log))
        end = time.monotonic() + rng.uniform(0.0, longest)
        while time.monotonic() < end and process.poll() is None:
            time.sleep(0.005)
        workers = _children(process.pid)
        if how == "worker":
            if workers:
                _kill(rng.choice(workers))
            else:
                how = signal.SIGKILL
            time.sleep(rng.uniform(0.0, 2.0))
            workers = [*workers, *_children(process.pid)]
            process.kill()
        else:
            process.send_signal(how)
        _, words = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    code = process.returncode
    if (
        code != 0 and how != "worker" and code not in (CODES[how], -how)
    ):  # -how: before Python could catch it
        raise Wrong(f"{how!r} ended with {code}: {words}")
    if code in (130, 143) and "Traceback" in words:
        raise Wrong(words)
    limit = time.monotonic() + PATIENCE
    while any(map(_is_running, workers)):
        if time.monotonic() > limit:
            raise Wrong("A worker goes on after its main process has ended.")
        time.sleep(0.01)
    return "ended before" if code == 0 else how if how == "worker" else how.name


def _state(file: Path) -> tuple[int, int]:
    """What changes with every transaction: the size of a file and when it was written."""
    try:
        found = file.stat()
    except OSError:
        return 0, 0
    return found.st_size, found.st_mtime_ns


def _children(process: int) -> list[int]:
    """The processes that a process has started."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            words = _stat(int(entry.name))
            if words and int(words[1]) == process:
                found.append(int(entry.name))
    return found


def _stat(process: int) -> list[str]:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _is_running(process: int) -> bool:
    words = _stat(process)
    return bool(words) and words[0] not in "ZX"


def _kill(process: int) -> None:
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        pass


if __name__ == "__main__":
    print(
        json.dumps(
            attack(int(sys.argv[1]), seeds=int(sys.argv[2]) if len(sys.argv) > 2 else 400), indent=1
        )
    )
