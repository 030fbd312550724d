"""attnlab page: write the documentation page of one experiment from its results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attnlab.cli import verbs
from attnlab.cli.say import say

NAMES = "Names of experiments, or ./FOLDER, an experiment of your own."


@verbs.register("page")
def page(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help=NAMES)],
    results: Annotated[
        Path, typer.Option(metavar="FOLDER", help="The results folder of attnlab reproduce.")
    ] = Path("results"),
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FOLDER", help="Into FOLDER/NAME.md, with a picture."
        ),
    ] = Path("docs/experiments"),
) -> None:
    """Write the page of an experiment: a short summary, then its text, claims and files.

    This reads only the results of that experiment, so run attnlab reproduce NAME first. The page
    and its picture NAME.png are written to docs/experiments, or to the folder of -o.
    """
    from attnlab.experiments.page import write_page

    for name in names:
        say(f"Written: {write_page(name, results, output)}")
