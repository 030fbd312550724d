"""attnlab tour: write the overview of attnlab as one offline page, and print its table in the
terminal.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from attnlab.cli import verbs
from attnlab.cli.say import say
from attnlab.cli.summary import print_table

LEGEND = (
    "One row per stop: name; what is asked; verdict; limits, how many different ones; decided at,"
    " the time t after which the limit is certain; error, of the run, relative to the largest"
    " token. A dash: not asked, or open."
)


@verbs.register("tour")
def tour(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The folder for the page and its pictures.")
    ] = Path("tour"),
) -> None:
    """Write one page with the equation, the theorems with verdicts, a certified limit, a trained
    head and a sentence.

    Everything is computed here. Trained models are fetched with pip if they are not cached. Without
    them the tour says so and continues. Exit code 1: a run fails or a verdict is CONTRADICTED.
    """
    from attnlab.tour import make_tour

    rows = make_tour(output, progress=sys.stderr.isatty())
    cells = [(row.name, row.shows, row.verdict.replace("_", " "), *_numbers(row)) for row in rows]
    print_table(
        "The tour",
        LEGEND,
        ("name", "what is asked", "verdict", "limits", "decided at", "error"),
        cells,
    )
    for row in rows:
        if row.verdict == "not here":
            say(f"{row.name} was left out: {row.found}")
    say(
        f"Open {output / 'index.html'} in a browser; pictures, summary.json and summary.csv are in"
        f" {output}."
    )
    failed = [row for row in rows if not row.is_ok]
    for row in failed:
        say(f"{row.name}: {row.verdict}. {row.found}", err=True)
    if failed:
        raise typer.Exit(1)


def _numbers(row: Any) -> tuple[Any, Any, Any]:
    decided = None if row.limits == "undecided" else row.decided_at
    return (row.limits if row.limits != "" else None), decided, row.error
