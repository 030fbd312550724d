"""attnlab plot: draw a run or another result, or film a run."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from attnlab.cli import verbs
from attnlab.cli.inputs import is_spec, read_run
from attnlab.cli.outputs import (
    Output,
    check_figure_name,
    check_movie_name,
    check_outputs,
    is_movie_name,
)
from attnlab.cli.say import say
from attnlab.cli.summary import has_terminal
from attnlab.store import load

SOURCE = (
    "A saved result (.nc), such as a run, or a Spec to simulate first: .toml, .json, or the name of"
    " an example."
)
OUTPUT = "The figure (.png, .pdf, .svg; .pgf where TeX is installed), or the movie (.gif, .mp4)."

Width = Annotated[
    float | None,
    typer.Option(metavar="INCHES", help="The width of the figure: 3.4 for a column of a paper."),
]
Title = Annotated[
    bool,
    typer.Option(
        "--title/--no-title",
        help="Whether the figure has its titles. Without them, they are printed.",
    ),
]
"""The options of every verb that draws."""


@verbs.register("plot")
def plot(
    source: Annotated[Path, typer.Argument(metavar="RUN|SPEC", help=SOURCE)],
    output: Annotated[Path, typer.Option("--output", "-o", help=OUTPUT)],
    kind: Annotated[
        str | None, typer.Option(help="The kind of figure; `attnlab list figures` shows all kinds.")
    ] = None,
    member: Annotated[int, typer.Option(help="Which member of a batch, counted from 0.")] = 0,
    times: Annotated[
        str | None,
        typer.Option(metavar="T,T,...", help="The times a figure shows, such as 0,2.5,5."),
    ] = None,
    frame: Annotated[
        str | None, typer.Option(metavar="x|z", help="The tokens x, or z = exp(-tV) x.")
    ] = None,
    head: Annotated[
        int | None, typer.Option(help="The head whose attention is shown, counted from 0.")
    ] = None,
    width: Width = None,
    title: Title = True,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
) -> None:
    """Draw a run, or film it if the output is a .gif or .mp4. Without --kind, a suitable kind of
    figure is chosen.

    Saved limits, verdicts, flows, sentences and tables of heads can be drawn too. Saved flows,
    sentences and repeated layers can be filmed.
    """
    is_movie = is_movie_name(output)
    check_outputs(
        [Output("-o", output, check_movie_name if is_movie else check_figure_name)], source, force
    )
    if is_movie and times is not None:
        raise ValueError(
            "--times applies only to figures; a movie shows all times. Remove it, or give -o a"
            " .png."
        )
    if is_movie and (width is not None or not title):
        raise ValueError(
            "--width and --no-title apply only to figures. Remove them, or give -o a .png."
        )
    if frame not in (None, "x", "z"):
        raise ValueError(f"--frame must be x or z, got {frame!r}.")
    shown = None if times is None else numbers_of(times)

    from attnlab import render

    if kind is not None and is_spec(source):
        render.kinds[kind]  # raises with the nearest name, before the run is simulated
    check_width(width)
    thing = (
        read_run(source, progress=has_terminal())
        if is_spec(source)
        else _read_result(source, is_movie)
    )
    if is_movie:
        render.movie(
            thing, output, kind=kind, member=member, frame=frame, head=head, progress=has_terminal()
        )
        say(f"Movie written to {output}.")
        return
    caption = draw_into(
        output, thing, width, title, kind=kind, times=shown, member=member, frame=frame, head=head
    )
    say(f"Figure written to {output}.")
    say_caption(caption, title)


def _read_result(source: Path, is_movie: bool) -> Any:
    """Return the result in a .nc file. Raise ValueError if it cannot be drawn, or filmed."""
    from attnlab.render.plots import is_drawable, is_filmable

    found = load(source)
    if is_movie and not is_filmable(found):
        raise ValueError(
            f"{source} must hold a run, a flow, a sentence or a repeated layer to be filmed; it"
            f" holds {type(found).__name__}. Give -o a .png to draw it."
        )
    if not is_drawable(found):
        raise ValueError(
            f"{source} holds {type(found).__name__}, which has no figure. Give a run, a limit,"
            " verdicts, a flow, or what models.spectra, models.sentence, models.iterate,"
            " models.survey and models.compare return."
        )
    return found


def check_width(width: float | None) -> None:
    """Refuse an impossible width before anything is computed."""
    if width is not None:
        from attnlab.render.paper import Paper

        Paper(width)


def draw_into(path: Path, thing: Any, width: float | None, title: bool, **options: Any) -> str:
    """Draw al.plot's figure into a file and return the words of its titles."""
    from attnlab import render

    figure = render.plot(thing, **options, width=width, title=title)
    figure.savefig(path)
    return str(getattr(figure, "caption", ""))


def say_caption(caption: str | None, title: bool, err: bool = False) -> None:
    """Print the caption of a figure that has no titles."""
    if caption and not title:
        say(f"Caption: {caption}", err=err)


def numbers_of(text: str) -> list[float]:
    """Return the numbers in a text such as "0,2.5,5"."""
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or not all(math.isfinite(number) for number in numbers):
        raise ValueError(
            f"--times must be numbers with commas between them, such as 0,2.5,5; got {text!r}."
        )
    return numbers
