"""attnlab run: simulate a Spec and save the run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from attnlab.cli import verbs
from attnlab.cli.inputs import read_spec
from attnlab.cli.outputs import (
    Output,
    check_data_name,
    check_figure_name,
    check_movie_name,
    check_outputs,
)
from attnlab.cli.say import say
from attnlab.cli.summary import has_terminal, is_interrupted, print_summary, sentence, summary
from attnlab.run import run_spec
from attnlab.store import save
from attnlab.types import Trajectory


@verbs.register("run")
def run(
    spec: Annotated[
        Path,
        typer.Argument(
            metavar="SPEC",
            help="A Spec, .toml or .json, or the name of an example (`attnlab list examples`).",
        ),
    ],
    outputs: Annotated[
        list[Path] | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help=(
                "The file for the run: .nc, or .csv, .npz, .mat for other programs; several are"
                " allowed. "
                "Default: SPEC's name with .nc."
            ),
        ),
    ] = None,
    figure: Annotated[
        Path | None, typer.Option(help="Also draw the run into this file (.png, .pdf, .svg).")
    ] = None,
    movie: Annotated[
        Path | None, typer.Option(help="Also film the run into this file (.gif, .mp4).")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the numbers as JSON.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Replace files that exist; never the Spec itself.")
    ] = False,
) -> None:
    """Simulate a Spec, save the run, and print a summary. A run that stops early is saved up to its
    end.
    """
    words = read_spec(spec)
    paths = outputs or [Path(spec.with_suffix(".nc").name)]
    written = [Output("-o", path, check_data_name) for path in paths]
    if figure is not None:
        written.append(Output("--figure", figure, check_figure_name))
    if movie is not None:
        written.append(Output("--movie", movie, check_movie_name))
    check_outputs(written, spec, force)

    result = run_spec(words, progress=has_terminal() and not as_json, throw=False)
    saved = ", ".join(str(_save(result, path)) for path in paths)
    numbers = {**summary(result), "saved": saved}
    if as_json:
        say(
            json.dumps({**numbers, "replicas": numbers["members"]}, indent=2)
        )  # the key of version 0.1
    else:
        print_summary(spec.stem, numbers)
    if not result.is_ok:
        say(f"{sentence(result)} The part that was computed is in {saved}.", err=True)
        raise typer.Exit(130 if is_interrupted(result) else 1)
    if figure is not None:
        from attnlab.render import plot

        plot(result).savefig(figure)
    if movie is not None:
        from attnlab.render import movie as film

        film(result, movie, progress=has_terminal() and not as_json)


def _save(run: Trajectory, path: Path) -> Path:
    """Save a run and return its path. If another format cannot hold it, save it as a .nc file."""
    try:
        save(run, path)
        return path
    except ValueError as problem:
        kept = path.with_suffix(".nc")
        if path.suffix.lower() == ".nc" or kept.exists():
            raise
        save(run, kept)
        say(f"{problem} The run is in {kept} instead.", err=True)
        return kept
