"""Sweeps: how busy the cores are, what a cell costs beside its integration, and what batching
gains.

Each sweep runs in a process of its own, so that its processor time and its memory can be told from
ours. On a busy machine wall times say little; the overhead per cell is processor time, of the main
process and the workers, and stays comparable.
"""

from __future__ import annotations

import importlib.util
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from table import Row

BETAS = 10
MANY, TINY_CELLS, FEW = 10_000, 100_000, 500


def rows() -> Iterator[Row]:
    batched = measure("sweep", n=32, t_end=30.0, cells=MANY)
    peers = {
        "one task per run": measure("one task per run", n=32, t_end=30.0, cells=FEW * BETAS),
        "al.run_spec in a loop": measure("loop", n=32, t_end=30.0, cells=FEW),
    }
    if importlib.util.find_spec("distributed"):
        peers["one Dask task per run"] = measure("Dask", n=32, t_end=30.0, cells=FEW * BETAS)
    each = {
        name: found["wall"] / found["cells"]
        for name, found in {"attnlab": batched, **peers}.items()
    }
    ratios = {name: each[name] / each["attnlab"] for name in peers}
    goals = {name: 3.0 for name in ("al.run_spec in a loop", "one Dask task per run")}
    cores = f"{batched['busy']:.2f} of {os.cpu_count()}"
    yield Row(f"sweep, n = 32, {MANY:,} cells, each", each, ratios, goals, more={"cores": cores})

    few, many = (
        measure("sweep", n=3, t_end=1.0, cells=cells) for cells in (TINY_CELLS // 10, TINY_CELLS)
    )
    integration = measure("integration", n=3, t_end=1.0, cells=TINY_CELLS // 10)
    overhead = many["processor"] / many["cells"] - integration["processor"] / integration["cells"]
    grown = f"{few['memory']:.0f} to {many['memory']:.0f} MB"
    yield Row(
        f"sweep, overhead of a cell, {TINY_CELLS:,} of n = 3",
        {"attnlab": overhead},
        allowed=1e-3,
        more={
            "processor": many["processor"] / many["cells"],
            "memory": grown,
            "worker": f"{many['worker']:.0f} MB",
        },
    )


def measure(how: str, **size: Any) -> dict[str, float]:
    """What a process of its own says: cells, wall and processor seconds, busy cores, megabytes of
    it and of a worker.
    """
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, __file__, json.dumps({"how": how, "folder": folder, **size})]
        return json.loads(
            subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout
        )


def _sweep(folder: str, n: int, t_end: float, cells: int) -> Any:
    from attnlab.sweep import Sweep

    base = {
        "weights": {"family": "identity"},
        "dynamics": {"geometry": "sphere"},
        "start": {"law": "sphere", "n": n, "d": 3},
        "solve": {"t_end": t_end},
    }
    return Sweep.from_dict(
        {
            "base": base,
            "axes": {"dynamics.beta": {"logspace": [0.1, 9.0, BETAS]}},
            "seeds": cells // BETAS,
            "numbers": {"spread": {"observable": "diameter"}},
        },
        Path(folder) / "bench.toml",
    )


def _child(how: str, folder: str, **size: Any) -> dict[str, float]:
    sweep = _sweep(folder, **size)
    began = {"wall": time.perf_counter(), "ours": time.process_time(), "theirs": 0.0}

    def announce(estimate: Any) -> None:  # from here on all workers compute
        began.update(
            wall=time.perf_counter(), ours=time.process_time(), theirs=_seconds_of_children()
        )

    started = time.process_time()
    done = size["cells"]
    if how in ("sweep", "one task per run"):
        if how != "sweep":
            from attnlab.sweep import runner

            runner.MOST_CELLS = 1
        done = sweep.run(workers=os.cpu_count(), announce=announce).computed - 3
        wall = time.perf_counter() - began["wall"]
    else:
        done, wall, started = {"loop": _loop, "integration": _integrate, "Dask": _dask}[how](sweep)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    theirs = children.ru_utime + children.ru_stime
    busy = (time.process_time() - began["ours"] + theirs - began["theirs"]) / wall
    return {
        "cells": done,
        "wall": wall,
        "processor": time.process_time() - started + theirs,
        "busy": busy,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "worker": children.ru_maxrss / 1024,
    }


def _loop(sweep: Any) -> tuple[int, float, float]:
    """al.run_spec of every cell, one after the other: what a user's own loop does."""
    cells = list(sweep.grid)
    run_one(sweep.spec_of(cells[0]).to_dict())
    began, started = time.perf_counter(), time.process_time()
    for cell in cells:
        run_one(sweep.spec_of(cell).to_dict())
    return len(cells), time.perf_counter() - began, started


def _dask(sweep: Any) -> tuple[int, float, float]:
    """The same with one task of Dask for each run, on one process per core."""
    from distributed import Client, LocalCluster

    specs = [sweep.spec_of(cell).to_dict() for cell in sweep.grid]
    with (
        LocalCluster(
            n_workers=os.cpu_count(), threads_per_worker=1, host="127.0.0.1", dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        client.run(run_one, specs[0])
        began, started = time.perf_counter(), time.process_time()
        client.gather(client.map(run_one, specs))
        return len(specs), time.perf_counter() - began, started


def run_one(table: dict[str, Any]) -> float:
    """The diameter in which the run of a Spec ends."""
    import attnlab as al
    from attnlab.analysis.distances import diameter

    return float(diameter(al.run_spec(al.Spec.from_dict(table)).x[-1]))


def _integrate(sweep: Any) -> tuple[int, float, float]:
    """The integration alone: one call of simulate per batch, on one thread."""
    import numpy as np

    import attnlab as al
    from attnlab.sweep.runner import MOST_CELLS

    resolved = [al.resolve(sweep.spec_of(cell)) for cell in list(sweep.grid)[: 8 * MOST_CELLS]]
    batches = [
        np.stack([one.x0 for one in resolved[k : k + MOST_CELLS]])
        for k in range(0, len(resolved), MOST_CELLS)
    ]
    t_end = sweep.base["solve"]["t_end"]
    al.simulate(resolved[0].dynamics, batches[0][:2], t_end=t_end)
    began, started = time.perf_counter(), time.process_time()
    for batch in batches:
        al.simulate(resolved[0].dynamics, batch, t_end=t_end)
    return len(resolved), time.perf_counter() - began, started


def _seconds_of_children() -> float:
    """The processor seconds of the workers so far; 0 where the system does not tell."""
    try:
        ticks = 0
        for task in Path("/proc/self/task").iterdir():
            for child in (task / "children").read_text().split():
                words = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
                ticks += int(words[11]) + int(words[12])
        return ticks / os.sysconf("SC_CLK_TCK")
    except OSError:
        return 0.0


if __name__ == "__main__":
    print(json.dumps(_child(**json.loads(sys.argv[1]))))
