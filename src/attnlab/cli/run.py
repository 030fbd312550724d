"""attnlab run: simulate a Spec and keep the run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from attnlab.cli import verbs
from attnlab.cli.inputs import read_spec
from attnlab.cli.outputs import Output, check_figure_name, check_movie_name, check_outputs, check_run_name
from attnlab.cli.say import say
from attnlab.cli.summary import has_terminal, is_interrupted, print_summary, sentence, summary


@verbs.register("run")
def run(
    spec: Annotated[
        Path, typer.Argument(metavar="SPEC", help="A Spec, .toml or .json, or the name of an example (`attnlab list`).")
    ],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Where the run goes, else SPEC's name with .nc.")] = None,
    figure: Annotated[Path | None, typer.Option(help="Also draw the run into this file (.png, .pdf, .svg).")] = None,
    movie: Annotated[Path | None, typer.Option(help="Also film the run into this file (.gif, .mp4).")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the numbers as JSON.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist; never the Spec itself.")] = False,
) -> None:
    """Simulate a Spec, save the run, and print how it went. A run that stops early is saved up to there."""
    words = read_spec(spec)
    output = output if output is not None else Path(spec.with_suffix(".nc").name)
    outputs = [Output("-o", output, check_run_name)]
    if figure is not None:
        outputs.append(Output("--figure", figure, check_figure_name))
    if movie is not None:
        outputs.append(Output("--movie", movie, check_movie_name))
    check_outputs(outputs, spec, force)

    from attnlab.run import run_spec
    from attnlab.store import save

    result = run_spec(words, progress=has_terminal() and not as_json, throw=False)
    save(result, output)
    numbers = {**summary(result), "saved": str(output)}
    if as_json:
        say(json.dumps(numbers, indent=2))
    else:
        print_summary(spec.stem, numbers)
    if not result.is_ok:
        say(f"{sentence(result)} What was computed is in {output}.", err=True)
        raise typer.Exit(130 if is_interrupted(result) else 1)
    if figure is not None:
        from attnlab.render import plot

        plot(result).savefig(figure)
    if movie is not None:
        from attnlab.render import movie as film

        film(result, movie, progress=has_terminal() and not as_json)
