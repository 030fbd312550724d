"""Makes docs/images/scaling.png and the tables of docs/performance.md: how fast one evaluation is,
beside the machine's limit.

    make bench && python docs/make_performance.py bench.json

A record of one part (`python bench/run.py --only startup --json bench.json`) changes the table of
that part alone: start-up, limits, or the comparison with other libraries.

The limit drawn in: every pair of tokens needs 2d multiply-adds and one exponential; those are timed
alone, in registers, by the same lane operations the kernels use, on one core. A kernel at the line
loads, masks and stores for free.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numba
import numpy as np

import attnlab as al
from attnlab.engine.exp2 import exp2_within
from attnlab.engine.lanes import add, fill, load, multiply_add, store

FOLDER = Path(__file__).parent


@numba.njit
def multiply_adds(x, count, repeats):
    """count * 8 * 10 multiply-adds on ten independent sums."""
    a, b = load(x, 0), load(x, 8)
    s0, s1, s2, s3, s4 = fill(0.0), fill(0.0), fill(0.0), fill(0.0), fill(0.0)
    s5, s6, s7, s8, s9 = fill(0.0), fill(0.0), fill(0.0), fill(0.0), fill(0.0)
    for _ in range(count * repeats):
        s0, s1, s2, s3, s4 = (
            multiply_add(a, b, s0),
            multiply_add(a, b, s1),
            multiply_add(a, b, s2),
            multiply_add(a, b, s3),
            multiply_add(a, b, s4),
        )
        s5, s6, s7, s8, s9 = (
            multiply_add(a, b, s5),
            multiply_add(a, b, s6),
            multiply_add(a, b, s7),
            multiply_add(a, b, s8),
            multiply_add(a, b, s9),
        )
    store(
        x, 16, add(add(add(s0, s1), add(s2, s3)), add(add(s4, s5), add(add(s6, s7), add(s8, s9))))
    )


@numba.njit
def exponentials(x, count, repeats):
    """count * 8 exponentials of numbers in the first-level cache."""
    total = fill(0.0)
    for _ in range(repeats):
        for i in range(count):
            total = add(total, exp2_within(load(x, 8 * i)))
    store(x, 0, total)


def time_call(call, repeats: int = 15) -> float:
    """Return the smallest time of a call, in seconds."""
    best = float("inf")
    call()
    for _ in range(repeats):
        began = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - began)
    return best


def limits() -> tuple[float, float]:
    """Nanoseconds of one multiply-add and of one exponential, on one core."""
    x = np.linspace(-20.0, 0.0, 8 * 256)
    one = time_call(lambda: multiply_adds(x, 256, 100)) / (256 * 100 * 80) * 1e9
    two = time_call(lambda: exponentials(x.copy(), 256, 100)) / (256 * 100 * 8) * 1e9
    return one, two


def scaling() -> dict[str, list[tuple[int, float]]]:
    """Return nanoseconds per pair: against n for d = 3, and against d for n = 2048."""
    found: dict[str, list[tuple[int, float]]] = {"n": [], "d": []}
    for n in (16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768):
        found["n"].append((n, time_pair(n, 3)))
    for d in (1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128):
        found["d"].append((d, time_pair(2048, d)))
    return found


def time_pair(n: int, d: int) -> float:
    """Return nanoseconds per pair of one evaluation through al.velocity."""
    x, weights = np.random.default_rng(0).normal(size=(n, d)) / np.sqrt(d), al.Weights(V=np.eye(d))
    return time_call(lambda: al.velocity(weights, x), 30 if n < 10_000 else 5) / n**2 * 1e9


def draw(found: dict[str, list[tuple[int, float]]], one: float, two: float, threads: int) -> None:
    """Draw the two panels, with the limit of the machine."""
    from attnlab.render.style import PALETTE, dress_flat, new_figure

    figure = new_figure(9.6, 3.9)
    axes = figure.subplots(1, 2)
    for place, name, label in (
        (axes[0], "n", "tokens n, d = 3"),
        (axes[1], "d", "coordinates d, n = 2048"),
    ):
        values = np.array(found[name], float)
        limit = (
            (2 * (values[:, 0] if name == "d" else 3) * one + two) / threads * np.ones(len(values))
        )
        place.loglog(
            values[:, 0], values[:, 1], "o-", color=PALETTE[0], markersize=4, label="al.velocity"
        )
        place.loglog(
            values[:, 0],
            limit,
            "--",
            color=PALETTE[1],
            label=f"limit of {threads} cores: 2d multiply-adds, one exponential",
        )
        place.set(xlabel=label, ylabel="nanoseconds per pair of tokens")
        dress_flat(place)
        place.legend(frameon=False, fontsize=8)
    figure.savefig(FOLDER / "images" / "scaling.png", dpi=160)


def table(record: dict, rows: list[dict]) -> str:
    """Return the rows of the benchmark with peers, as Markdown."""
    lines = ["| work | ours | peers, how many times slower (goal) | |", "| --- | --- | --- | --- |"]
    for row in rows:
        ratios = [
            f"{peer} {ratio:.2f}" + (f" ({row['goals'][peer]:.3g})" if peer in row["goals"] else "")
            for peer, ratio in row["ratios"].items()
        ]
        if "best" in row["goals"]:
            ratios.append(f"the best of them ({row['goals']['best']:.3g})")
        ours = format_seconds(row["seconds"]["attnlab"])
        lines.append(f"| {row['work']} | {ours} | {', '.join(ratios) or '—'} | {row['verdict']} |")
    return "\n".join([describe_machine(record), "", *lines])


def start_up_table(record: dict, rows: list[dict]) -> str:
    """Return the rows of the benchmark that have a goal in seconds, as Markdown."""
    lines = ["| command | time | processor time | goal | |", "| --- | --- | --- | --- | --- |"]
    for row in rows:
        times = (
            f"{format_seconds(row['seconds']['attnlab'])} |"
            f" {format_seconds(row['more']['processor'])}"
        )
        lines.append(f"| {row['work']} | {times} | {row['allowed']:g} s | {row['verdict']} |")
    return "\n".join([describe_machine(record), "", *lines])


def limits_table(record: dict, rows: list[dict]) -> str:
    """Return the rows of certified limits, as Markdown."""
    lines = [
        "| limit | time | processor time | grade | events | goal | |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        more, allowed = row["more"], row["allowed"]
        cells = [
            row["work"].removeprefix("limit, "),
            format_seconds(row["seconds"]["attnlab"]),
            format_seconds(more["processor"]),
            str(more["grade"]),
            str(more["events"]),
            "—" if allowed is None else f"{allowed:g} s",
            row["verdict"],
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([describe_machine(record), "", *lines])


def describe_machine(record: dict) -> str:
    """Return the machine, and how busy it was."""
    return f"{record['machine']}, load before {record['load']:.1f}."


def format_seconds(seconds: float) -> str:
    """Return a time as text: 0.0123 is 12.3 ms."""
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"


def replace_region(text: str, name: str, content: str) -> str:
    """Return the page with new text between the two comments of this name."""
    start, end = f"<!-- {name} -->", f"<!-- end {name} -->"
    before, _, rest = text.partition(start)
    _, _, after = rest.partition(end)
    return f"{before}{start}\n{content}\n{end}{after}"


def main() -> None:
    """Write the tables into the page, and the figure."""
    record = json.loads(Path(sys.argv[1]).read_text())
    rows = record["rows"]
    timed = [row for row in rows if row["part"] == "startup"]
    limited = [row for row in rows if row["part"] == "limits" and "grade" in row["more"]]
    compared = [row for row in rows if row["part"] not in ("startup", "limits")]
    page = FOLDER / "performance.md"
    text = page.read_text()
    if timed:
        text = replace_region(text, "start-up", start_up_table(record, timed))
    if limited:
        text = replace_region(text, "limits", limits_table(record, limited))
    if compared:
        text = replace_region(text, "table", table(record, compared))
    page.write_text(text)
    if not compared:
        return
    from attnlab.engine.threads import thread_count

    one, two = limits()
    print(f"multiply-add {one:.4f} ns, exponential {two:.3f} ns on one core")
    draw(scaling(), one, two, thread_count())


if __name__ == "__main__":
    main()
