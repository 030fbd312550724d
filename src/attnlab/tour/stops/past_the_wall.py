"""Stop 3: a limit that no simulation in double precision can reach, with a certificate."""

from __future__ import annotations

import dataclasses
import time

import numpy as np

from attnlab.analysis.clusters import cluster_labels
from attnlab.analysis.growing import growing_parts
from attnlab.engine import simulate
from attnlab.explorer.embed import run_payload
from attnlab.limits import limit as limit_of
from attnlab.render.tour_page import draw_wall
from attnlab.run import resolve
from attnlab.tour.context import Context
from attnlab.tour.record import Card, Chapter, Row, Stop, Text
from attnlab.tour.stops import stops
from attnlab.types import RunInterrupted, Spec, Status

TOKENS, SEED, PUBLISHED, LAST = 30, 102, 5.0, 60.0
"""The start is the one of 130 random starts that shows it best. PUBLISHED: the time at which the
paper's pictures end.
"""

SPEC = Spec(
    weights={"family": "spectrum", "eigenvalues": [1.0, 0.9, -0.5], "basis": "identity"},
    start={"law": "uniform_cube", "n": TOKENS, "d": 3, "low": -5.0, "high": 5.0, "rng": SEED},
    solve={"t_end": 26.0},
)
"""The run that the page in the browser integrates: up to the precision wall."""

STARTS = 130
RESOLUTION = 0.01
WORK = 3e6


def tell(context: Context) -> Chapter:
    """Simulate up to the wall, continue in closed form, and count the groups over time."""
    begun = time.perf_counter()
    resolved = resolve(SPEC)
    run = simulate(
        resolved.dynamics,
        resolved.x0,
        t_end=LAST,
        saves=61,
        throw=False,
        progress=context.progress.part(0.0, 0.3),
    )
    if run.status is Status.INTERRUPTED:
        raise RunInterrupted("The tour was interrupted.", run)
    wall = float(run.times[-1])
    times = np.linspace(0.5, LAST, 120)
    limit = limit_of(
        resolved.dynamics,
        resolved.x0,
        times=times,
        work=WORK,
        budget=120.0,
        progress=context.progress.part(0.3, 1.0),
    )
    last = limit.events[-1].t if limit.events else 0.0
    row = Row(
        "past_the_wall",
        "past_the_wall",
        "V = diag(1, 0.9, −0.5): leaders change long after double precision has ended.",
        "CERTIFIED" if limit.certified else "UNDECIDED",
        "at most three groups (a conjecture)",
        limit.reason,
        limit.count if limit.count is not None else "undecided",
        float(limit.t),
        float(limit.error),
        TOKENS,
        3,
        LAST,
        wall,
        run.status.name,
        time.perf_counter() - begun,
        limit.count is None or limit.count <= 3,
        grade=str(limit.grade),
    )
    words = [
        Text(
            "A computer keeps 16 digits of a number. Tokens that follow the same leader approach"
            " each other like e^(−t), so near t = 30 they agree in all 16 digits. After that a"
            " simulation cannot distinguish them, and a program that continues returns something"
            " plausible and wrong. We call this the wall. attnlab notices it and stops."
        ),
        Text(
            "Does it matter? Here V stretches space by 1 in one direction and by 0.9 in another:"
            " almost equally fast. Later another token overtakes a leader, and its followers"
            f" change to the new leader. (We chose this start from {STARTS} random ones because it"
            " shows this best.)"
        ),
    ]
    if not limit.certified:
        return Chapter(
            [*words, Text(f"On this machine the end was not decided: {limit.reason}")], [row]
        )
    seen = count_groups(growing_parts(run))
    at = {"published": seen[run.times == PUBLISHED][0], "wall": seen[-1]}
    counts = count_groups(limit.path)
    late = [event for event in limit.events if event.t > wall]
    live = run_payload(
        dataclasses.replace(run, spec=SPEC),
        limit,
        name="Past the wall",
        watch=(
            "Play, and then drag the clock to its right end. The page integrates as far as double"
            " precision allows; the clock is hatched after that. At t = ∞ it shows the certified"
            " limit."
        ),
    )
    return Chapter(
        [
            *words,
            Card(
                "Thirty tokens, V = diag(1, 0.9, −0.5)",
                row,
                {
                    "Groups at t = 5": f"{at['published']}: the published pictures end here",
                    "Groups at the wall": (
                        f"{at['wall']}: a simulation ends here, at t = {wall:.0f}"
                    ),
                    "Groups for t → ∞": (
                        f"{limit.count}, certified ({limit.grade}), decided at t = {limit.t:.1f}"
                    ),
                    "Changes of leader beyond the wall": (
                        f"{len(late)} tokens, the last at t = {last:.1f}"
                    ),
                },
            ),
            context.draw(
                "past_the_wall",
                draw_wall(times, counts, [event.t for event in late], wall, limit),
                "The number of groups over time falls in steps, also after double precision ends.",
                live=live,
            ),
            Text(
                "The number of groups over time. The strokes below mark times after the wall at"
                " which tokens change their leader. In the grey part double precision is not enough"
                " for a simulation. attnlab continues there with formulas instead of steps, and"
                " stops when it can certify that no token will change its leader again. (Groups"
                " closer than 1 % of the whole are counted as one, so the curve falls a little"
                " later.)",
                "What you see.",
            ),
            Text(
                "A plateau in a picture looks like the end, but it is not. If you count groups when"
                " the computer stops, you get a wrong number, and an ordinary program gives no"
                " warning.",
                "Why it matters.",
            ),
        ],
        [row],
    )


def count_groups(path: np.ndarray) -> np.ndarray:
    """Count the groups at each time of path (T, n, k): tokens connected by steps of 1 % of the
    largest distance.
    """
    sizes = [np.linalg.norm(points[:, None] - points[None], axis=-1).max() for points in path]
    return np.array(
        [
            int(cluster_labels(points[None], RESOLUTION * size).max()) + 1
            for points, size in zip(path, sizes, strict=True)
        ]
    )


stops.register("past_the_wall")(Stop(3, "Past the wall: an end that no simulation reaches", tell))
