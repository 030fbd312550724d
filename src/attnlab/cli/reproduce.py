"""attnlab reproduce: an experiment of the paper from its name to figures, movie, data and claims."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from attnlab.cli import verbs
from attnlab.cli.say import say
from attnlab.cli.summary import has_terminal, print_table
from attnlab.experiments import experiments
from attnlab.experiments.folders import load_named
from attnlab.progress import track

NAMES = "Names of experiments; attnlab list experiments shows them. Or ./FOLDER, an experiment of your own."
MODEL = "Whose weights, where trained ones take part: a name of the catalog, or a folder such as one of albert-xlarge-v2."


EXPERIMENTS_LEGEND = "One row per experiment: name; what it shows; claims that hold, out of all its claims."
CLAIMS_LEGEND = ("One row per claim: holds, whether measured lies in the allowed interval; claim, in words; measured, the "
                 "number that was found; allowed, the interval with its reason; published, what the paper has. A dash: "
                 "nothing.")


@verbs.register("reproduce")
def reproduce(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help=NAMES)] = None,
    every: Annotated[bool, typer.Option("--all", help="Every experiment, and index.html that shows them all.")] = False,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="Into FOLDER/NAME.")] = Path("results"),
    force: Annotated[bool, typer.Option("--force", help="Reproduce again what is there already.")] = False,
    small: Annotated[bool, typer.Option("--small", help="At reduced size, in half a minute or so.")] = False,
    model: Annotated[str | None, typer.Option(metavar="MODEL", help=MODEL)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the records as JSON.")] = False,
) -> None:
    """Reproduce experiments: figures (PDF, PNG), movie, data (NetCDF, CSV), Specs, verdicts, and claims that could have failed.

    Everything lies in results/NAME, with index.html to look at. Complete results are kept, unless --force; after Ctrl-C the same
    command goes on. Exit code 1: a claim does not hold, or an experiment of --all failed.
    """
    from attnlab.experiments import reproduce as make
    from attnlab.experiments.gallery import reproduce_all, write_gallery

    if every == bool(names):
        raise ValueError(f"Name the experiments to make, or say --all. Known: {', '.join(experiments)}.")
    if every and model is not None:
        raise ValueError("--model belongs to one experiment: name it, as in attnlab reproduce albert_spectra --model FOLDER.")
    size, options = "small" if small else "full", {} if model is None else {"model": model}
    for name in names or ():
        load_named(name)  # raises with the nearest name, before anything is made
    records: dict[str, Any] = {}
    left_out: dict[str, str] = {}
    broken: dict[str, str] = {}
    with track(has_terminal() and not as_json) as progress, _say_failed_case():
        if every:

            def finished(name: str, record: dict[str, Any] | None, why: str, is_failure: bool) -> None:
                if record is None:
                    (broken if is_failure else left_out)[name] = why

            records = reproduce_all(output, size=size, force=force, progress=progress, finished=finished)
        for number, name in enumerate(names or ()):
            part = progress.piece(number, len(names or ()), name)
            records[Path(name).resolve().name] = make(name, output, size=size, force=force, progress=part, **options)
            write_gallery(output, {})
    if as_json:
        say(json.dumps({"records": records, "left_out": left_out, "failed": broken}, indent=1))
    elif every:
        rows = [[name, record["title"], _claims(record)] for name, record in records.items()]
        print_table("experiments", EXPERIMENTS_LEGEND, ["name", "what it shows", "claims that hold"], rows)
        say(f"Look at {output / 'index.html'}.")
    else:
        for record in records.values():
            _print(record, output / record["name"])
    _say_without(records)
    for name, why in left_out.items():
        say(f"Left out: {name}. {why}", err=True)
    for name, why in broken.items():
        say(f"Failed: {name}. {why}", err=True)
    failed = [name for name, record in records.items() if not record["holds"]]
    if failed:
        say(f"Claims fail in {', '.join(failed)}.", err=True)
    if failed or broken or not records:
        raise typer.Exit(1)


@contextlib.contextmanager
def _say_failed_case() -> Iterator[None]:
    """A case that cannot be measured ends the command with its sentence; what was measured before is kept."""
    from attnlab.experiments.measuring import CaseFailed

    try:
        yield
    except CaseFailed as problem:
        say(f"{problem} The same command continues there.", err=True)
        raise typer.Exit(1) from problem


def _print(record: dict[str, Any], folder: Path) -> None:
    rows = [
        ["yes" if claim["holds"] else "NO", _sentence(claim), _number(claim["measured"]), claim["allowed"],
         claim["published"] or "–"]
        for claim in record["claims"]
    ]
    print_table(record["title"], CLAIMS_LEGEND, ["holds", "claim", "measured", "allowed", "published"], rows)
    for claim in record["claims"]:
        if claim["differs"]:
            published = f" Published: {claim['published']}." if claim["published"] else ""
            say(f"{claim['text']}{published} {claim['differs']}")
    say(f"Look at {folder / 'index.html'}.")


def _sentence(claim: dict[str, Any]) -> str:
    """The claim in words, and the quantity behind its number, where that is another one."""
    return f"{claim['text']} {claim['says']}." if claim.get("quantity") else str(claim["text"])


def _say_without(records: dict[str, Any]) -> None:
    """Which results have no trained half, and that they are kept so until they are reproduced again."""
    for name, record in records.items():
        if record.get("without"):
            say(f"{name} has no trained weights in it: {record['without']} Then --force computes it again.", err=True)


def _claims(record: dict[str, Any]) -> str:
    return f"{sum(claim['holds'] for claim in record['claims'])} of {len(record['claims'])}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"
