"""attnlab dossier: write spectra, flows and sentences of a trained model as one self-contained
page.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attnlab.cli import verbs
from attnlab.cli.outputs import Output, check_outputs
from attnlab.cli.say import say
from attnlab.cli.summary import has_terminal
from attnlab.files import write_text
from attnlab.progress import track

MODEL = (
    "A name (`attnlab models` lists them), a folder with config.json and weights, or hf:owner/name."
)
TEXT = (
    "A sentence for the model to read; may be given again. Default: a few that suit its tokenizer,"
    " or random ids."
)
GATHERED = 0.75
"""The fraction of the time that passes before the first figure."""


@verbs.register("dossier")
def dossier(
    model: Annotated[str, typer.Argument(metavar="MODEL", help=MODEL)],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The page, .html.")
    ] = Path("dossier.html"),
    text: Annotated[list[str] | None, typer.Option("--text", metavar="TEXT", help=TEXT)] = None,
    layer: Annotated[
        int | None, typer.Option(help="The layer whose flows are shown, counted from 0.")
    ] = None,
    head: Annotated[
        int | None,
        typer.Option(help="The head whose flow is shown. Default: the best good triple."),
    ] = None,
    rng: Annotated[int, typer.Option(help="The seed of everything random.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
) -> None:
    """Write one page about a trained model: its heads, flows with their weights, sentences, and a
    check of the theory.

    Everything is inside the file, so it opens in a browser without a network.
    """
    check_outputs([Output("--output", output, _check_page_name)], Path(model), force)
    from attnlab.models.catalog.sources import load
    from attnlab.models.studies.dossier import dossier as gathered

    loaded = load(model)
    with track(has_terminal()) as progress:
        found = gathered(
            loaded,
            text or (),
            layer=layer,
            head=head,
            rng=rng,
            progress=progress.part(0.0, GATHERED),
        )
        from attnlab.explorer.embed import make_dossier

        page = make_dossier(found, progress.part(GATHERED, 1.0))
    write_text(output, page)
    say(f"Open {output} in a browser: {len(page) / 1e6:.1f} MB, everything inside.")


def _check_page_name(path: Path) -> None:
    if path.suffix.lower() != ".html":
        raise ValueError(
            f"The name of a page must end in .html, got {path}: use {path.with_suffix('.html')}."
        )
