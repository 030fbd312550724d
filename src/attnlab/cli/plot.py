"""attnlab plot: draw a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attnlab.cli import verbs
from attnlab.cli.inputs import check_free, read_run
from attnlab.cli.summary import has_terminal


@verbs.register("plot")
def plot(
    source: Annotated[Path, typer.Argument(metavar="RUN", help="A run (.nc), or a Spec (.toml) to simulate first.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the figure goes (.png, .pdf, .svg).")],
    kind: Annotated[str | None, typer.Option(help="The kind of figure; `attnlab list` has them all.")] = None,
) -> None:
    """Draw a run. The figure that suits it is chosen unless --kind names one; an existing file is replaced."""
    check_free(output, is_forced=True)

    from attnlab.render import plot as draw

    draw(read_run(source, progress=has_terminal()), kind=kind).savefig(output)
    typer.echo(f"Drawn into {output}.")
