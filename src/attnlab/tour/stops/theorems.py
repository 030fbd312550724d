"""Stop 2: the theorems, each with a picture, a verdict and a certified limit."""

from __future__ import annotations

import dataclasses
import math
import tempfile
import time
from pathlib import Path
from typing import Any

from attnlab.explorer.embed import run_payload
from attnlab.limits.proof.claim import prove
from attnlab.progress import Progress
from attnlab.render import movie, plot
from attnlab.run import run_spec
from attnlab.theory import theorems
from attnlab.theory.evidence import Evidence
from attnlab.theory.verbs import verdict
from attnlab.tour.context import Context
from attnlab.tour.pictures import PICTURES, Shown
from attnlab.tour.record import Card, Chapter, Picture, Row, Stop, Text
from attnlab.tour.stops import stops
from attnlab.types import RunInterrupted, Status, Trajectory
from attnlab.verdicts import Outcome, Verdict

BUDGET = 60.0
"""Seconds for a certified limit; each takes less than one on a quiet machine."""

FRAMES, FRAMES_A_SECOND, MOVIE_DPI = 60, 15, 110
OPENING = (
    "Each picture below is computed on your machine. A second, finer run measures the error of each"
    " run. A theorem says what must happen; attnlab checks it and gives a verdict. SUPPORTED: the"
    " numbers do what the theorem says. CONTRADICTED: they do not, so the data or the program are"
    " wrong. UNDECIDED: this run is too short or too coarse to decide. A limit is computed, not read"
    " off a picture. It is certified if no leader can change after the stated time, given the"
    " computed state at that time and its estimated error. It is proved if the error of that state"
    " is no estimate: it encloses every rounding since the first tokens. The limit of twenty tokens"
    " in the plane is proved, and the others are certified."
)


def tell(context: Context) -> Chapter:
    """Show every picture of the paper."""
    parts: list[Any] = [Text(OPENING)]
    rows, beside = [], []
    whole = context.progress
    for number, shown in enumerate(PICTURES):
        context.progress = whole.piece(number, len(PICTURES), shown.title)
        some, row, files = one(context, shown)
        parts += some
        rows.append(row)
        beside += files
    return Chapter(parts, rows, beside)


def one(context: Context, shown: Shown) -> tuple[list[Any], Row, list[Picture]]:
    """Return (parts of the page, row, files next to the page) of one picture."""
    begun = time.perf_counter()
    run = run_spec(shown.spec, progress=context.progress.part(0.0, 0.3), throw=False)
    if run.status is Status.INTERRUPTED:
        raise RunInterrupted("The tour was interrupted.", run)
    said, limit = (
        judge(run, shown.theorem, context.progress.part(0.3, 0.6))
        if run.status is Status.OK
        else (None, None)
    )
    if shown.is_proved and limit is not None and limit.certified:
        limit = prove(limit, 0.0, time.monotonic() + BUDGET, context.progress.part(0.6, 0.7))
    beside: list[Picture] = []
    times = (
        shown.times if run.status is Status.OK else None
    )  # for a failed run, the times that it has
    live = (
        run_payload(run, limit, name=shown.title, watch=shown.says)
        if run.status is Status.OK
        else None
    )
    picture = context.draw(
        shown.name,
        plot(run, kind=shown.kind, times=times),
        f"{shown.title}: {shown.shows}",
        live=live,
    )
    pictures = [picture]
    if shown.is_limit_shown and limit is not None and limit.certified:
        beside = [dataclasses.replace(picture, live=None)]
        pictures = [
            context.draw(
                f"{shown.name}_limit",
                plot(limit),
                f"{shown.title}: start and certified end",
                is_narrow=True,
                live=live,
            )
        ]
    if limit is not None and limit.grade == "proved":
        pictures.append(
            context.draw(
                f"{shown.name}_proved",
                plot(limit),
                f"{shown.title}: start and proved end",
                is_narrow=True,
            )
        )
    if shown.has_movie:
        gif, other = film(run, shown, context.progress.part(0.7, 1.0))
        pictures.append(gif)
        beside.append(other)
    row = Row(
        "theorems",
        shown.name,
        shown.shows,
        said.outcome.name if said else "UNDECIDED",
        shown.says,
        (said.unmet or said.evidence) if said else run.status.value,
        limit.count if limit is not None and limit.count is not None else "undecided",
        limit.t if limit is not None else None,
        number(run.error),
        run.n,
        run.d,
        float(run.solve.t_end),
        float(run.stats.get("reached", run.times[-1])),
        run.status.name,
        time.perf_counter() - begun,
        run.status is Status.OK and (said is None or said.outcome is not Outcome.CONTRADICTED),
        grade=str(limit.grade) if limit is not None else "",
    )
    parts = [
        Card(shown.title, row, facts(row, said, limit)),
        *pictures[:1],
        Text(shown.see, "What you see."),
        *pictures[1:],
        Text(shown.why, "Why it matters."),
    ]
    return parts, row, beside


def judge(run: Trajectory, name: str, progress: Progress) -> tuple[Verdict, Any]:
    """Return (the verdict of one statement, the certified limit that it used)."""
    evidence = Evidence(run, BUDGET, progress=progress)
    return verdict(theorems[name], evidence), evidence.limit


def facts(row: Row, said: Verdict | None, limit: Any) -> dict[str, str]:
    """Return the facts next to the verdict."""
    word = "conjecture" if said is not None and said.kind == "conjecture" else "theorem"
    found = {f"The {word} says": row.predicts}
    if said is not None and said.unmet:
        found["Why not decided" if said.outcome is Outcome.UNDECIDED else "But"] = f"{said.unmet}."
    if said is None:
        found["The run failed"] = row.found
    if (
        limit is not None and limit.count is not None
    ):  # None: undecided, or nothing grows (see the reason)
        limits = "limit" if limit.count == 1 else "limits"
        if limit.grade == "proved":
            found["For t → ∞"] = (
                f"{limit.count} {limits}, proved, each to within {scientific(limit.error)}, "
                f"decided at t = {limit.t:.2f}"
            )
        else:
            found["For t → ∞"] = (
                f"{limit.count} {limits}, certified ({limit.grade}), decided at t = {limit.t:.2f}"
            )
    elif limit is not None:
        found["For t → ∞"] = limit.reason
    error = (
        "not measured"
        if row.error is None
        else f"{scientific(row.error)} of the size of the tokens"
    )
    found["The run"] = f"{row.n} tokens, until t = {row.time_reached:g}, error {error}"
    return found


def scientific(value: float) -> str:
    """Format 2e-08 as 2·10^(−8), with the page's mark for superscripts."""
    digits, power = f"{value:.0e}".split("e")
    return f"{digits}·10^({int(power)})".replace("-", "−")


def number(value: Any) -> float | None:
    """Return a float that JSON can hold, or None."""
    return None if value is None or not math.isfinite(value) else float(value)


def film(run: Trajectory, shown: Shown, progress: Progress) -> tuple[Picture, Picture]:
    """Return the run as a movie for the page (a GIF, which loops) and as one for slides (MP4)."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{shown.name}.{ending}" for ending in ("gif", "mp4")]
        movie(run, paths, frames=FRAMES, fps=FRAMES_A_SECOND, dpi=MOVIE_DPI, progress=progress)
        caption = f"{shown.title}. Colours are groups, rings are leaders."
        gif, mp4 = (
            Picture(path.name, path.read_bytes(), f"Movie: {shown.title}", caption, True)
            for path in paths
        )
    return gif, mp4


stops.register("theorems")(Stop(2, "Seven pictures: six theorems and a conjecture", tell))
