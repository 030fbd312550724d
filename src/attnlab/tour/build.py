"""Build the tour: compute every stop in order, then write all files."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attnlab.explorer.embed import embed_viewers
from attnlab.files import write_bytes, write_text
from attnlab.progress import ProgressOption, track
from attnlab.render.tour_page import tour_page
from attnlab.tour.context import Context
from attnlab.tour.record import Chapter, Row, Stop
from attnlab.tour.stops import stops

PAGE = "index.html"


def in_order() -> list[tuple[str, Stop]]:
    """Return (name, Stop) of all stops, in the order of the page."""
    return sorted(((name, stops[name]) for name in stops), key=lambda pair: pair[1].number)


def make_tour(
    folder: str | os.PathLike[str],
    progress: ProgressOption = False,
    only: Sequence[str] | None = None,
) -> list[Row]:
    """Write the page, its figures and its summary into a folder. Return the rows of the summary.

    only     : names of stops, None for all
    progress : False, True (a bar), a function f(fraction, doing), or an al.Progress, which can also
    cancel. Everything is computed before anything is written, so Ctrl-C leaves older files
    unchanged.
    """
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    chosen = [(name, stop) for name, stop in in_order() if only is None or name in only]
    chapters: list[tuple[str, Stop, Chapter]] = []
    with track(progress) as progress:
        context = Context(progress)
        for number, (name, stop) in enumerate(chosen):
            context.progress = progress.piece(number, len(chosen))
            context.report(stop.title)
            chapters.append((name, stop, stop.tell(context)))
    rows = [row for _, _, chapter in chapters for row in chapter.rows]
    pictures = [picture for _, _, chapter in chapters for picture in chapter.pictures]
    viewers = {
        picture.file.rsplit(".", 1)[0]: picture.live
        for picture in pictures
        if picture.live is not None
    }
    for picture in pictures:
        write_bytes(place / picture.file, picture.content)
    records = [row.as_dict() for row in rows]
    write_text(place / "summary.json", json.dumps(records, indent=2, allow_nan=False) + "\n")
    write_text(place / "summary.csv", as_csv(records))
    # the page comes last: if it exists, everything exists
    write_text(place / PAGE, tour_page(chapters, rows, embed_viewers(viewers)))
    return rows


def as_csv(records: Sequence[dict[str, Any]]) -> str:
    """Return the rows as CSV, which every spreadsheet reads."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, fieldnames=list(records[0]) if records else ["nothing"])
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue()
