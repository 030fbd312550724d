"""attnlab plot: draw a run, or film it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from attnlab.cli import verbs
from attnlab.cli.inputs import read_run
from attnlab.cli.outputs import Output, check_figure_name, check_movie_name, check_outputs, is_movie_name
from attnlab.cli.say import say
from attnlab.cli.summary import has_terminal

SOURCE = "A run (.nc), or a Spec to simulate first: .toml, .json, or the name of an example."


@verbs.register("plot")
def plot(
    source: Annotated[Path, typer.Argument(metavar="RUN|SPEC", help=SOURCE)],
    output: Annotated[Path, typer.Option("--output", "-o", help="The figure (.png, .pdf, .svg), or the movie (.gif, .mp4).")],
    kind: Annotated[str | None, typer.Option(help="The kind of figure; `attnlab list figures` has them all.")] = None,
    member: Annotated[int, typer.Option(help="Which member of a batch, counted from 0.")] = 0,
    times: Annotated[str | None, typer.Option(metavar="T,T,...", help="The times a figure shows, such as 0,2.5,5.")] = None,
    frame: Annotated[str | None, typer.Option(metavar="x|z", help="The tokens x, or z = exp(-tV) x.")] = None,
    head: Annotated[int | None, typer.Option(help="Whose attention to show, counted from 0.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
) -> None:
    """Draw a run, or film it if the output is a .gif or .mp4. The figure that suits it is chosen unless --kind names one."""
    is_movie = is_movie_name(output)
    check_outputs([Output("-o", output, check_movie_name if is_movie else check_figure_name)], source, force)
    if is_movie and times is not None:
        raise ValueError("--times belongs to a figure; a movie shows all times. Leave it out, or give -o a .png.")
    if frame not in (None, "x", "z"):
        raise ValueError(f"--frame must be x or z, got {frame!r}.")
    shown = None if times is None else numbers_of(times)

    from attnlab import render

    if kind is not None:
        render.kinds[kind]  # raises with the nearest name, before the run is simulated
    run = read_run(source, progress=has_terminal())
    if is_movie:
        render.movie(run, output, kind=kind, member=member, frame=frame, head=head, progress=has_terminal())
    else:
        render.plot(run, kind, times=shown, member=member, frame=frame, head=head).savefig(output)
    say(f"{'Filmed' if is_movie else 'Drawn'} into {output}.")


def numbers_of(text: str) -> list[float]:
    """The numbers in a text such as "0,2.5,5"."""
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or not all(math.isfinite(number) for number in numbers):
        raise ValueError(f"--times must be numbers with commas between them, such as 0,2.5,5; got {text!r}.")
    return numbers
