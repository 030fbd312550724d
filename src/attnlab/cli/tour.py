"""attnlab tour: the pictures of the paper, simulated with a certified error, drawn, and listed."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from attnlab.cli import verbs
from attnlab.cli.examples import example_spec, example_title
from attnlab.cli.summary import is_interrupted, print_table, sentence, summary
from attnlab.types import RunInterrupted


@dataclass(frozen=True)
class Picture:
    """An example Spec and how it is drawn; kind None is the figure that suits the run."""

    name: str
    kind: str | None = None
    movie: str | None = None
    draw_limit: bool = False


PICTURES = (
    Picture("attention_1d", kind="attention"),
    Picture("polytope_2d", movie="polytope.gif"),
    Picture("polytope_3d", draw_limit=True),
    Picture("hyperplanes_2d"),
    Picture("hyperplanes_3d"),
    Picture("codimension", draw_limit=True),
    Picture("polytope_times_line"),
)

COLUMNS = ("name", "shows", "n", "d", "time_reached", "error", "status", "limits", "decided_at")


@verbs.register("tour")
def tour(
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder for the pictures.")] = Path("tour"),
) -> None:
    """Draw the pictures of the paper into a folder, each with its error and its certified limit, one movie and a summary."""
    from attnlab.limits import limit as limit_of
    from attnlab.render import movie, plot
    from attnlab.run import run_spec

    output.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    for picture in _with_progress(PICTURES):
        run = run_spec(example_spec(picture.name), throw=False)
        if is_interrupted(run):
            raise RunInterrupted("The tour was interrupted.", run)
        plot(run, kind=picture.kind).savefig(output / f"{picture.name}.png")
        if picture.movie is not None:
            movie(run, output / picture.movie)
        limit = limit_of(run)
        if picture.draw_limit:
            plot(limit).savefig(output / f"{picture.name}_limit.png")
        rows.append({
            "name": picture.name, "shows": example_title(picture.name), **summary(run), "sentence": sentence(run),
            "limits": limit.count if limit.certified else "undecided", "decided_at": f"{limit.t:.3g}", "reason": limit.reason,
        })
    _write(rows, output)
    titles = [name.replace("_", " ") for name in COLUMNS]
    print_table("The pictures of the paper", titles, [[row[name] for name in COLUMNS] for row in rows])
    typer.echo(f"Pictures, summary.json and summary.csv are in {output}.")
    failed = [row for row in rows if row["status"] != "OK"]
    for row in failed:
        typer.echo(f"{row['name']}: {row['sentence']}", err=True)
    if failed:
        raise typer.Exit(1)


def _with_progress(pictures: tuple[Picture, ...]) -> Iterator[Picture]:
    """The pictures one by one, under a bar on standard error."""
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=len(pictures))
        for picture in pictures:
            progress.update(task, description=picture.name)
            yield picture
            progress.advance(task)


def _write(rows: list[dict[str, Any]], folder: Path) -> None:
    (folder / "summary.json").write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    with (folder / "summary.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
