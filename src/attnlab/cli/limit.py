"""attnlab limit: compute where the tokens end, with a certificate."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from attnlab.cli import verbs
from attnlab.cli.inputs import is_spec, read_run, read_spec
from attnlab.cli.limit_words import limit_record, print_limit, print_limits
from attnlab.cli.outputs import Output, check_outputs, check_result_name, write_result
from attnlab.cli.plot import Title, Width, check_width, numbers_of, say_caption
from attnlab.cli.say import say
from attnlab.cli.summary import has_terminal
from attnlab.limits import limit as limit_of
from attnlab.run import limit_of_spec, resolve
from attnlab.types import Limit

SOURCE = (
    "A Spec (.toml, .json, or the name of an example), or a run (.nc), whose first tokens are used."
)


@verbs.register("limit")
def limit(
    source: Annotated[Path, typer.Argument(metavar="SPEC|RUN", help=SOURCE)],
    outputs: Annotated[
        list[Path] | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help=(
                "Also save it (.nc, .json, .csv, .npz, .mat) or draw it (.png, .pdf, .svg); several"
                " are allowed."
            ),
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print everything as JSON; of a batch a list.")
    ] = False,
    digits: Annotated[
        int | None,
        typer.Option(help="Compute with that many decimal digits. Default: as many as needed."),
    ] = None,
    work: Annotated[
        float | None,
        typer.Option(
            metavar="UNITS",
            help=(
                "Evaluations and events after which to stop looking for the limit. Default: 1.5e6."
            ),
        ),
    ] = None,
    budget: Annotated[float, typer.Option(metavar="SECONDS", help="When to give up.")] = 60.0,
    times: Annotated[
        str | None, typer.Option(metavar="T,T,...", help="Also z at these times, such as 10,50.")
    ] = None,
    member: Annotated[
        int | None,
        typer.Option(
            help="Which member of a batch is printed in full and drawn. Default: 0 is drawn."
        ),
    ] = None,
    proof: Annotated[
        bool,
        typer.Option(
            "--proof",
            help=(
                "Also prove the limit: enclose the flow with bounds for every rounding. V must be"
                " diagonal, "
                "or, on the sphere, have a simple dominant eigenvalue."
            ),
        ),
    ] = False,
    width: Width = None,
    title: Title = True,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
) -> None:
    """Compute where the tokens end as t goes to infinity: their limits, their leaders, and a
    certificate.

    Exit code 0: certified, for every member of a batch. Exit code 1: undecided; the reason is
    printed and drawn.
    """
    paths = outputs or []
    check_outputs([Output("-o", path, check_result_name) for path in paths], source, force)
    check_width(width)
    options = {
        "times": None if times is None else numbers_of(times),
        "digits": digits,
        "budget": budget,
        "progress": has_terminal() and not as_json,
    }
    if work is not None:
        options["work"] = work
    if proof:
        options["proof"] = True
    found = (
        _of_spec(source, member, options) if is_spec(source) else _of_run(source, member, options)
    )
    limits = found if isinstance(found, list) else [found]
    if as_json:
        records = [limit_record(one) for one in limits]
        say(
            json.dumps(
                records if isinstance(found, list) else records[0], indent=2, allow_nan=False
            )
        )
    else:
        if isinstance(found, list):
            print_limits(source.stem, found, limit)
        if not isinstance(found, list) or member is not None:
            print_limit(source.stem, limits[member or 0], limit)
    drawn: list[Any] = []
    for path in paths:
        write_result(
            path, found, lambda: _draw(limits[member or 0], width, title, drawn), err=as_json
        )
    say_caption(drawn[0].caption if drawn else None, title, err=as_json)
    if not all(one.certified for one in limits):
        raise typer.Exit(1)


def _draw(limit: Limit, width: float | None, title: bool, drawn: list[Any]) -> Any:
    """Draw a limit, append the figure to `drawn`, and return it."""
    from attnlab.render import plot

    drawn.append(plot(limit, width=width, title=title))
    return drawn[-1]


def _of_spec(source: Path, member: int | None, options: Mapping[str, Any]) -> Limit | list[Limit]:
    resolved = resolve(read_spec(source))
    _check_member(member, resolved.x0.shape[:-2])
    return limit_of_spec(resolved, **options)


def _of_run(source: Path, member: int | None, options: Mapping[str, Any]) -> Limit | list[Limit]:
    run = read_run(source)
    _check_member(member, run.batch)
    return limit_of(run, **options)


def _check_member(member: int | None, batch: tuple[int, ...]) -> None:
    """Refuse a member that does not exist, before anything is computed."""
    count = int(np.prod(batch, dtype=int))
    if member is not None and not 0 <= member < count:
        held = (
            f"a batch of {count} members, numbered 0 to {count - 1}"
            if batch
            else "a single run, number 0"
        )
        raise ValueError(
            f"--member must be the number of one member; this is {held}, got {member}."
        )
