"""make bench: how fast attnlab is beside its peers, in one process on this machine. Ratios are what
to trust, not times.

python bench/run.py [--only fields,runs,limits,large,startup,sweep,trained] [--json FILE]
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import sys
from pathlib import Path

import numpy as np
import peers  # first: it sets how the libraries' threads wait before they are loaded

PARTS = ("fields", "runs", "limits", "large", "startup", "sweep", "trained")


def main() -> int:
    parser = argparse.ArgumentParser(description="How fast attnlab is beside its peers.")
    parser.add_argument("--only", default=",".join(PARTS), help=f"parts to run: {', '.join(PARTS)}")
    parser.add_argument("--json", type=Path, help="also write everything here")
    options = parser.parse_args()
    for name, problem in peers.MISSING.items():
        print(f"{name} is not installed and is left out ({problem}).")
    load = os.getloadavg()[0]
    print(
        f"{machine()}; load before: {load:.1f}"
        + (". The machine is busy: ratios below are noisy." if load > 0.7 else "")
    )
    print(f"\n{'work':58s} {'ours':>10s}   how much slower peers are (goal in brackets)")
    rows = []
    for part in options.only.split(","):
        for row in importlib.import_module(part).rows():
            row.part = part
            rows.append(row)
            print(
                f"{row.work:58s} {seconds(row.seconds['attnlab']):>10s}   {said(row)}", flush=True
            )
    missed = [row.work for row in rows if row.missed]
    asked = [row for row in rows if row.goals or row.allowed]
    print(f"\n{len(asked)} rows with goals, {len(missed)} missed: {'; '.join(missed) or 'none'}.")
    if options.json:
        record = {
            "machine": machine(),
            "load": load,
            "missing": peers.MISSING,
            "rows": [row.record() for row in rows],
        }
        options.json.write_text(json.dumps(record, indent=1) + "\n")
        print(f"Written: {options.json}")
    return 0


def said(row) -> str:
    """The ratios with their goals, or the time allowed, and the verdict."""
    parts = []
    if row.allowed is not None:
        parts.append(f"goal {row.allowed:g} s, processor {seconds(row.more['processor'])}")
    for name, ratio in row.ratios.items():
        goal = f" [{row.goals[name]:.3g}]" if name in row.goals else ""
        parts.append(f"{name} {ratio:.2f}{goal}")
    if "best" in row.goals:
        parts.append(f"best of them [{row.goals['best']:.3g}]")
    shown = ("grade", "limits", "events", "cores", "memory", "worker", "default")
    parts += [f"{name} {value}" for name, value in row.more.items() if name in shown]
    return ", ".join(parts) + f"   {row.verdict}"


def seconds(value: float) -> str:
    """0.00123 -> 1.23 ms"""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value * 1e6:.3g} us"


def machine() -> str:
    """What this ran on."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [
            line.split(":")[1].strip()
            for line in info.read_text().splitlines()
            if line.startswith("model name")
        ]
        model = names[0] if names else model
    return (
        f"{model}, {os.cpu_count()} cores, Python {platform.python_version()}, NumPy"
        f" {np.__version__}"
    )


if __name__ == "__main__":
    sys.exit(main())
