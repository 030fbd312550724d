"""reproduce_all: every experiment, one after the other, and a page that shows them. Complete
results are kept.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from attnlab.experiments.reproduce import MissingExtra, reproduce
from attnlab.experiments.results import CannotKeep, check_folder, read_record
from attnlab.files import write_text
from attnlab.models.checkpoints.record import NotFetched
from attnlab.progress import ProgressOption, track


def reproduce_all(
    folder: str | os.PathLike[str] = "results",
    *,
    size: str = "full",
    force: bool = False,
    progress: ProgressOption = False,
    names: Sequence[str] | None = None,
    finished: Callable[[str, dict[str, Any] | None, str, bool], None] | None = None,
) -> dict[str, Any]:
    """{name: record} of every experiment in a folder, or of those named; folder/index.html shows
    them all.

    Complete results are kept unless force=True, so that the same call goes on after an
    interruption. What cannot be made here (a model that is not fetched, a missing extra) is left
    out, and an experiment that fails does not keep the others from being made: the reasons are on
    the page. `finished`, where given, is called after each with its name, its record or None, the
    reason, and whether that is a failure and not something that is merely not here. progress:
    False, True (a bar), a function f(fraction, doing), or an al.Progress, which can also cancel.
    """
    from attnlab.experiments import experiments

    folder = Path(folder)
    chosen = [
        name for name in names or experiments if name in experiments or experiments[name]
    ]  # the second raises
    records: dict[str, Any] = {}
    left_out: dict[str, str] = {}
    check_folder(folder)
    with track(progress) as progress:
        for number, name in enumerate(chosen):
            part, is_failure = progress.piece(number, len(chosen), name), False
            try:
                records[name] = reproduce(name, folder, size=size, force=force, progress=part)
            except (MissingExtra, NotFetched, ConnectionError) as problem:
                left_out[name] = str(problem)
            except (CannotKeep, KeyboardInterrupt):  # the next one could not be written either
                raise
            except Exception as problem:
                left_out[name], is_failure = f"{type(problem).__name__}: {problem}", True
            if finished is not None:
                finished(name, records.get(name), left_out.get(name, ""), is_failure)
            write_gallery(folder, left_out)
    return records


def write_gallery(folder: Path, left_out: dict[str, str]) -> None:
    """folder/index.html, of all complete results that lie there, whenever they were made; those of
    users' folders come last.
    """
    from attnlab.experiments import experiments
    from attnlab.render.page import gallery_page

    others = [
        path.name
        for path in sorted(folder.iterdir())
        if path.name not in experiments and not path.name.startswith(".")
    ]
    found = [
        record
        for name in [*experiments, *others]
        if (record := read_record(folder / name)) is not None
    ]
    write_text(folder / "index.html", gallery_page(found, left_out))
