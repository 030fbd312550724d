"""reproduce_all: every experiment, one after the other, and a page that shows them; what is there already is kept."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from attnlab.experiments.record import Progress, no_progress
from attnlab.experiments.reproduce import MissingExtra, ResultsExist, reproduce
from attnlab.experiments.shelf import read_record, workshop, write_whole
from attnlab.experiments.studies import part


def reproduce_all(folder: str | os.PathLike[str] = "results", *, size: str = "full", force: bool = False,
                  progress: Progress = no_progress, names: Sequence[str] | None = None,
                  finished: Callable[[str, dict[str, Any] | None, str], None] | None = None) -> dict[str, Any]:
    """{name: record} of every experiment in a folder, or of those named; folder/index.html shows them all.

    Complete results are kept unless force=True, so that the same call goes on after an interruption. An experiment that cannot be
    made here (a model that is not fetched, a missing extra) is left out, with the reason on the page; `finished`, where given, is
    called after each with its name, its record or None, and the reason.
    """
    from attnlab.experiments import experiments

    folder = Path(folder)
    chosen = [name for name in (names or experiments) if name in experiments or experiments[name]]    # the second raises
    records: dict[str, Any] = {}
    left_out: dict[str, str] = {}
    workshop(folder, "gallery").rmdir()                              # cannot be written to? better now than after a minute
    for number, name in enumerate(chosen):
        told = part(progress, number / len(chosen), (number + 1) / len(chosen))
        told(0.0, name)
        try:
            records[name] = reproduce(name, folder, size=size, force=force, progress=_named(told, name))
        except (MissingExtra, ResultsExist, LookupError, FileNotFoundError, ConnectionError) as problem:
            left_out[name] = str(problem)
        if finished is not None:
            finished(name, records.get(name), left_out.get(name, ""))
        write_gallery(folder, left_out)
    return records


def write_gallery(folder: Path, left_out: dict[str, str]) -> None:
    """folder/index.html, of all complete results that lie there, whenever they were made."""
    from attnlab.experiments import experiments
    from attnlab.render.page import gallery_page

    found = [record for name in experiments if (record := read_record(folder / name)) is not None]
    write_whole(folder / "index.html", gallery_page(found, left_out))


def _named(progress: Progress, name: str) -> Progress:
    """A Progress that says whose it is."""

    def told(fraction: float, at: str = "") -> None:
        progress(fraction, f"{name}: {at}" if at else name)

    return told
