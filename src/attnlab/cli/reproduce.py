"""attnlab reproduce: compute an experiment by its name: figures, movie, data and claims."""

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
from attnlab.experiments import reproduce as make
from attnlab.experiments.folders import load_named
from attnlab.progress import track

NAMES = (
    "Names of experiments; attnlab list experiments shows them. Or ./FOLDER, an experiment of your"
    " own."
)
MODEL = (
    "The model whose weights are used, if the experiment needs trained ones: a name of the catalog,"
    " or a folder."
)


EXPERIMENTS_LEGEND = (
    "One row per experiment: name; what it shows; claims that hold, out of all its claims."
)
CLAIMS_LEGEND = (
    "One row per claim: holds, whether measured lies in the allowed interval; claim, in words;"
    " measured, the number that was found; allowed, the interval with its reason; published, the"
    " number in the paper. A dash: nothing."
)


@verbs.register("reproduce")
def reproduce(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help=NAMES)] = None,
    every: Annotated[
        bool,
        typer.Option("--all", help="Every experiment, and an index.html that shows all of them."),
    ] = False,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="Write to FOLDER/NAME.")
    ] = Path("results"),
    force: Annotated[
        bool, typer.Option("--force", help="Compute results again that exist already.")
    ] = False,
    small: Annotated[
        bool, typer.Option("--small", help="At reduced size, in about half a minute.")
    ] = False,
    model: Annotated[str | None, typer.Option(metavar="MODEL", help=MODEL)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the records as JSON.")] = False,
) -> None:
    """Reproduce experiments: figures (PDF, PNG), movie, data (NetCDF, CSV), Specs, verdicts, and
    claims with their evidence.

    Everything is written to results/NAME; open index.html there. Complete results are kept unless
    you give --force. After Ctrl-C the same command continues. Exit code 1: a claim does not hold,
    or an experiment of --all failed.
    """
    from attnlab.experiments.gallery import reproduce_all, write_gallery

    if every == bool(names):
        raise ValueError(
            f"Name the experiments to reproduce, or give --all. Known: {', '.join(experiments)}."
        )
    if every and model is not None:
        raise ValueError(
            "--model is for one experiment. Name it, as in attnlab reproduce albert_spectra --model"
            " FOLDER."
        )
    size, options = "small" if small else "full", {} if model is None else {"model": model}
    for name in names or ():
        load_named(name)  # raises with the nearest name, before anything is made
    records: dict[str, Any] = {}
    left_out: dict[str, str] = {}
    broken: dict[str, str] = {}
    with track(has_terminal() and not as_json) as progress, _say_failed_case():
        if every:

            def finished(
                name: str, record: dict[str, Any] | None, why: str, is_failure: bool
            ) -> None:
                if record is None:
                    (broken if is_failure else left_out)[name] = why

            records = reproduce_all(
                output, size=size, force=force, progress=progress, finished=finished
            )
        for number, name in enumerate(names or ()):
            part = progress.piece(number, len(names or ()), name)
            records[Path(name).resolve().name] = make(
                name, output, size=size, force=force, progress=part, **options
            )
            write_gallery(output, {})
    if as_json:
        say(json.dumps({"records": records, "left_out": left_out, "failed": broken}, indent=1))
    elif every:
        rows = [[name, record["title"], _claims(record)] for name, record in records.items()]
        print_table(
            "experiments", EXPERIMENTS_LEGEND, ["name", "what it shows", "claims that hold"], rows
        )
        say(f"Open {output / 'index.html'} in a browser.")
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
    """End the command with one sentence if a case cannot be measured. Earlier measurements are
    kept.
    """
    from attnlab.experiments.measuring import CaseFailed

    try:
        yield
    except CaseFailed as problem:
        say(f"{problem} The same command continues from there.", err=True)
        raise typer.Exit(1) from problem


def _print(record: dict[str, Any], folder: Path) -> None:
    rows = [
        [
            "yes" if claim["holds"] else "NO",
            _sentence(claim),
            _number(claim["measured"]),
            claim["allowed"],
            claim["published"] or "–",
        ]
        for claim in record["claims"]
    ]
    print_table(
        record["title"], CLAIMS_LEGEND, ["holds", "claim", "measured", "allowed", "published"], rows
    )
    for claim in record["claims"]:
        if claim["differs"]:
            published = f" Published: {claim['published']}." if claim["published"] else ""
            say(f"{claim['text']}{published} {claim['differs']}")
    say(f"Open {folder / 'index.html'} in a browser.")


def _sentence(claim: dict[str, Any]) -> str:
    """Return the claim in words and, if it is another quantity, the one behind its number."""
    return f"{claim['text']} {claim['says']}." if claim.get("quantity") else str(claim["text"])


def _say_without(records: dict[str, Any]) -> None:
    """Say which results have no trained half. They stay like this until they are reproduced
    again.
    """
    for name, record in records.items():
        if record.get("without"):
            say(
                f"{name} has no trained weights in it: {record['without']} Then --force computes it"
                " again.",
                err=True,
            )


def _claims(record: dict[str, Any]) -> str:
    return f"{sum(claim['holds'] for claim in record['claims'])} of {len(record['claims'])}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"
