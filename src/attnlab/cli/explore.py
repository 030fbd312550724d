"""attnlab explore: a run as one page to play with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attnlab.cli import verbs
from attnlab.cli.outputs import Output, check_outputs
from attnlab.cli.say import say
from attnlab.cli.summary import has_terminal

SOURCE = ("A preset or an example by name, a Spec (.toml, .json), or a saved run, limit or flow (.nc). Left out: the presets, "
          "the first of them open.")
HIDE = "Panels to leave out, such as sweep,footer; also more than once."
LOCK = "Controls that readers cannot change, such as beta,n; also more than once."
RECORD = "Show a recording that Python computes now, also where the page could integrate the run itself."


@verbs.register("explore")
def explore(
    source: Annotated[str | None, typer.Argument(metavar="[PRESET|SPEC|RUN]", help=SOURCE, show_default=False)] = None,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The page, .html.")] = Path("explorer.html"),
    hide: Annotated[list[str] | None, typer.Option("--hide", metavar="PANEL,...", help=HIDE)] = None,
    lock: Annotated[list[str] | None, typer.Option("--lock", metavar="CONTROL,...", help=LOCK)] = None,
    guess: Annotated[bool, typer.Option("--guess", help="Readers first guess how many limits there will be.")] = False,
    record: Annotated[bool, typer.Option("--record", help=RECORD)] = False,
    member: Annotated[int, typer.Option(help="Which member of a batch.")] = 0,
    theme: Annotated[str, typer.Option(help="auto, light or dark.")] = "auto",
    title: Annotated[str | None, typer.Option(help="The title of the page.")] = None,
    work: Annotated[float | None, typer.Option(
        metavar="UNITS", help="Evaluations and events after which to stop looking for a certified limit. Default: 5e5.")] = None,
    budget: Annotated[float, typer.Option(metavar="SECONDS", help="When to give up the certified limit at the latest.")] = 20.0,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is not a page of attnlab explore.")] = False,
    is_opened: Annotated[bool | None, typer.Option(
        "--open/--no-open", help="Open the page in a browser; left out: in a terminal only.", show_default=False)] = None,
) -> None:
    """Write one HTML page in which a run plays and can be changed: drag tokens, eigenvalues and time up to infinity.

    The page needs no network and no server. A page that is there already is replaced whole or not at all.
    """
    from attnlab.explorer.entry import WORK, is_page
    from attnlab.explorer.entry import explore as write_page

    read = Path(source) if source is not None else Path()
    check_outputs([Output("--output", output, _check_page_name)], read, force or is_page(output))
    page = write_page(source, output, record=record, member=member, hide=_words(hide), lock=_words(lock), guess=guess,
                      theme=theme, title=title, work=WORK if work is None else work, budget=budget, progress=has_terminal())
    say(f"Open {output} in a browser: {output.stat().st_size / 1000:.0f} KB, everything inside.")
    if has_terminal() if is_opened is None else is_opened:
        import webbrowser

        webbrowser.open(page.absolute().as_uri())


def _words(lists: list[str] | None) -> list[str]:
    """The words of options that are given several times or with commas."""
    return [word.strip() for words in lists or [] for word in words.split(",") if word.strip()]


def _check_page_name(path: Path) -> None:
    if path.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"The name of a page must end in .html, got {path}: use {path.with_suffix('.html')}.")
