"""reproduce: an experiment from its name to a folder of figures, movie, data, Specs, verdicts and
claims.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import inspect
import json
import math
import os
import sys
import time
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from attnlab.experiments.datasets import limit_of_run
from attnlab.experiments.folders import load_named, texts_of
from attnlab.experiments.kept_rows import open_rows
from attnlab.experiments.parts import Parts
from attnlab.experiments.record import SIZES, Data, Experiment
from attnlab.experiments.results import (
    RECORD,
    CannotKeep,
    move_into_place,
    read_data,
    read_record,
    remove,
    staging,
    write_data,
    write_json,
    write_rows,
    write_tables,
)
from attnlab.files import write_text
from attnlab.progress import Progress, ProgressOption, track
from attnlab.registry import unknown_name

MOST_DRAWN = 3
"""Most dimensions of a run that has a viewer; a run with more needs a figure with a projection."""

WATCH = "Drag the clock, whose right end is t = ∞, or the start of a token."
THIS_PROCESS = uuid.uuid4().hex
EXTRAS = {"models": "safetensors"}
"""{extra: a module that is there when it is installed}."""


class ResultsExist(ValueError):
    """There are other results in the folder already."""


class MissingExtra(ValueError):
    """An experiment needs libraries that are not installed. The message has the line that installs
    them.
    """


def reproduce(
    name: str | os.PathLike[str],
    folder: str | os.PathLike[str] = "results",
    *,
    size: str = "full",
    force: bool = False,
    progress: ProgressOption = False,
    **options: Any,
) -> dict[str, Any]:
    """Make the results of an experiment in folder/name and return their record, with the claims.

    Results that are there already are kept, and their record is returned, unless force=True. An
    attempt that was interrupted continues where it stopped.

    Parameters
    ----------
    name : str or path
        An experiment of attnlab (`attnlab list experiments` shows them), or the path of a folder
        with one of yours ("./mine"), whose results lie in folder/mine.
    folder : str or path, optional
        The folder in which the folder of the experiment is made.
    size : str, optional
        "full" or "small".
    force : bool, optional
        Whether to replace results that are there already.
    progress : bool, function or Progress, optional
        False, True (a bar), a function f(fraction, doing), or an al.Progress, which can also
        cancel.
    **options
        The options of the experiment, such as model=.

    Returns
    -------
    dict
        The record of the results.

    Raises
    ------
    UnknownName
        An experiment that does not exist. The message has the nearest one.

    Examples
    --------
    >>> import attnlab as al
    >>> record = al.reproduce("rates", size="small")                    # doctest: +SKIP
    """
    experiment = load_named(name)
    if size not in SIZES:
        raise unknown_name("size", size, SIZES)
    check_options(experiment, options)
    check_extra(experiment)
    with track(progress) as progress:
        return _reproduce(experiment, Path(folder), size, force, progress, options)


def _reproduce(
    experiment: Experiment,
    folder: Path,
    size: str,
    force: bool,
    progress: Progress,
    options: Mapping[str, Any],
) -> dict[str, Any]:
    name = experiment.name
    target = folder / name
    key = key_of(experiment, size, options)
    record = read_record(target)
    if record is not None and not force:
        if record["size"] != size or record["options"] != _words(options):
            raise ResultsExist(
                f"{target} holds results of size {record['size']!r} with options"
                f" {record['options']}: add --force to replace them, or choose another folder"
                " with -o."
            )
        return record
    if target.exists() and record is None and not force:
        raise ResultsExist(
            f"{target} exists, and is not a folder of complete results: add --force to replace it,"
            " or choose another folder with -o."
        )
    drawn_from = 0.6 if experiment.movie else 0.85
    with staging(folder, name) as made:
        began = time.perf_counter()
        data: Data | None = read_data(made / "data", key)
        computed = data is None
        if data is None:
            remove(made / "data")
            data = _data_of(
                experiment, made / "rows", key, size, progress.part(0.0, drawn_from), options
            )
        with _writing(folder):
            if computed:
                write_data(made / "data", data, key)
            remove(made / "rows")
            record = {
                "name": name,
                "title": experiment.title,
                "size": size,
                "options": _words(options),
                "key": key,
            }
            record |= _written(experiment, data, size, made, progress.part(drawn_from, 1.0))
            record["seconds"] = round(time.perf_counter() - began, 2)
            write_json(made / RECORD, {**record, "is_complete": True})
            move_into_place(made, target)
    return record


def _data_of(
    experiment: Experiment,
    rows: Path,
    key: str,
    size: str,
    progress: Progress,
    options: Mapping[str, Any],
) -> Data:
    """Compute the data of an experiment; what its parts measure is kept in the folder `rows` at
    once.
    """
    if not isinstance(experiment.compute, Parts):
        return experiment.compute(size, progress, **options)
    with open_rows(rows, key) as kept:
        return experiment.compute(size, progress, kept=kept, **options)


@contextlib.contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """Turn a failure to write into a sentence about the folder."""
    try:
        yield
    except OSError as problem:
        raise CannotKeep(
            f"The results cannot be written to {folder} ({_reason(problem)}): what was computed is"
            " kept where it could be; make room, or choose another folder with -o."
        ) from problem


def _reason(problem: OSError) -> str:
    return problem.strerror or str(problem).rstrip(".")


def _written(
    experiment: Experiment, data: Data, size: str, folder: Path, progress: Progress
) -> dict[str, Any]:
    """Write everything but the data, and return the entries of the record."""
    from attnlab.explorer.embed import embed_viewers
    from attnlab.render.page import experiment_page

    claims = experiment.claims(data)
    write_rows(folder / "claims.csv", [claim.as_dict() for claim in claims])
    left_out = write_tables(folder / "data", data)
    verdicts = _verdict_rows(data)
    if verdicts:
        write_rows(folder / "verdicts.csv", verdicts)
    specs = dict(experiment.specs(size)) if experiment.specs is not None else {}
    if specs:
        (folder / "specs").mkdir(exist_ok=True)
    for name, spec in specs.items():
        spec.save(folder / "specs" / f"{name}.toml")
    progress(0.0, "drawing")
    drawn = experiment.figures(data)
    for number, (name, figure) in enumerate(drawn.items()):
        for suffix in ("png", "pdf"):
            figure.savefig(folder / f"{name}.{suffix}")
        progress((number + 1) / len(drawn) * (0.3 if experiment.movie else 1.0), "drawing")
    movies = []
    if experiment.movie is not None:
        from attnlab.render import movie

        movies = [folder / f"{experiment.name}.{suffix}" for suffix in ("mp4", "gif")]
        movie(
            experiment.movie(data),
            movies,
            progress=progress.part(0.3, 1.0),
            **experiment.movie_options,
        )
    record = {
        "cite": experiment.cite,
        "about": experiment.about,
        "hurry": dict(experiment.hurry),
        "figures": list(drawn),
        "movies": [path.name for path in movies],
        "claims": [claim.as_dict() for claim in claims],
        "holds": all(claim.holds for claim in claims),
        "verdicts": verdicts,
        "specs": list(specs),
        "tables": _tables(experiment, data),
        "data": list(data),
        "not_as_csv": left_out,
        "without": without_trained(data),
    }
    viewers = _viewers(experiment, data)
    page = experiment_page(
        {**record, "name": experiment.name, "title": experiment.title, "size": size},
        next(iter(viewers), ""),
        embed_viewers(viewers),
    )
    write_text(folder / "index.html", page)
    return record


def _tables(experiment: Experiment, data: Data) -> list[dict[str, Any]]:
    """The tables for the page of an experiment, in words."""
    found = experiment.tables(data) if experiment.tables is not None else {}
    return [
        {
            "heading": heading,
            "legend": legend,
            "columns": list(map(str, columns)),
            "rows": [list(map(str, row)) for row in rows],
        }
        for heading, (legend, columns, rows) in found.items()
    ]


def _viewers(experiment: Experiment, data: Data) -> dict[str, Any]:
    """The viewer of the run that is filmed, where it has at most three dimensions; with its limit
    where that is known.
    """
    from attnlab.explorer.embed import run_payload

    run = None if experiment.movie is None else experiment.movie(data)
    if run is None or run.d > MOST_DRAWN or run.batch:
        return {}
    return {
        "film": run_payload(run, limit_of_run(data, run), name="The run of the film", watch=WATCH)
    }


def without_trained(data: Data) -> str:
    """Why the half with trained weights is missing, "" where it is there: what compute kept as the
    attribute `why`.
    """
    return next(
        (str(dataset.attrs["why"]) for dataset in data.values() if dataset.attrs.get("why")), ""
    )


def _verdict_rows(data: Data) -> list[dict[str, Any]]:
    """The rows of all Datasets of verdicts."""
    rows: list[dict[str, Any]] = []
    for dataset in data.values():
        if dataset.attrs.get("kind") == "verdicts":
            columns = {str(name): dataset[name].values.tolist() for name in dataset.data_vars}
            rows += [
                dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
            ]
    return [
        {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in row.items()
        }
        for row in rows
    ]


def check_options(experiment: Experiment, options: Mapping[str, Any]) -> None:
    """Refuse options that the experiment does not take."""
    known = [
        name
        for name in inspect.signature(experiment.compute).parameters
        if name not in ("size", "progress")
    ]
    for name in options:
        if name not in known:
            raise unknown_name(f"option of the experiment {experiment.name}", name, known)


def check_extra(experiment: Experiment) -> None:
    """Refuse an experiment whose libraries are not installed."""
    if experiment.needs and importlib.util.find_spec(EXTRAS[experiment.needs]) is None:
        raise MissingExtra(
            f"The experiment {experiment.name} needs trained weights, which need more libraries: "
            f"pip install 'attnlab[{experiment.needs}]'"
        )


def key_of(experiment: Experiment, size: str, options: Mapping[str, Any]) -> str:
    """What the data depend on: the texts of all of attnlab and of the experiment's own file, size
    and options.
    """
    # an attempt that other code began is not continued: its integrator may have been another one
    package = Path(__file__).parents[1]
    files = sorted([*package.rglob("*.py"), *package.rglob("*.txt")])
    sources = [path.read_text(encoding="utf-8") for path in files]
    words = json.dumps(
        [experiment.name, size, _words(options), *sources, *_texts_outside(experiment, package)]
    )
    return hashlib.sha256(words.encode()).hexdigest()[:16]


def _texts_outside(experiment: Experiment, package: Path) -> list[str]:
    """The texts of the files of a user's own experiment. Without a file, only this process can
    continue it.
    """
    if experiment.folder is not None:
        return [] if package in experiment.folder.parents else texts_of(experiment.folder)
    functions = (
        experiment.compute.functions
        if isinstance(experiment.compute, Parts)
        else [experiment.compute]
    )
    files = sorted(
        {Path(_file_of(getattr(one, "func", one))) for one in functions}
    )  # func: of a partial
    return [
        path.read_text(encoding="utf-8") if path.is_file() else THIS_PROCESS
        for path in files
        if package not in path.parents
    ]


def _file_of(thing: Any) -> str:
    """The file of a function or a class, "" where there is none."""
    code = getattr(thing, "__code__", None)
    return str(
        code.co_filename
        if code is not None
        else getattr(sys.modules.get(thing.__module__), "__file__", None) or ""
    )


def _words(options: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in options.items()}
