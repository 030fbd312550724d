"""attnlab explore: write a run as one interactive page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from attnlab.cli import verbs
from attnlab.cli.outputs import Output, check_outputs
from attnlab.cli.say import say
from attnlab.cli.summary import has_terminal
from attnlab.cli.token_ids import check_tokenizer, read_ids
from attnlab.progress import track

SOURCE = (
    "A preset or an example by name, a Spec (.toml, .json), or a saved run, limit or flow (.nc)."
    " Default: the presets, with the first one open."
)
HIDE = "Panels to leave out, such as sweep,footer; may be given again."
LOCK = "Controls that readers cannot change, such as beta,n; may be given again."
MODEL = (
    "A trained model: a name (`attnlab models` lists them), a folder, or hf:owner/name. Needs"
    " --text or --ids."
)
TEXT = (
    "The sentence that the model reads. The page shows it in the real stack and in the idealised"
    " one, layer by layer."
)
LAYER = "Also the flow of this layer alone, counted from 0."
HEAD = "Also the flow of this head alone, counted from 0; needs --layer."
T_END = "The end of the flow of the layer or head."
RECORD = (
    "Show a recording that Python computes now, even if the page could integrate the run itself."
)


@verbs.register("explore")
def explore(
    source: Annotated[
        str | None, typer.Argument(metavar="[PRESET|SPEC|RUN]", help=SOURCE, show_default=False)
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The page, .html.")
    ] = Path("explorer.html"),
    hide: Annotated[
        list[str] | None, typer.Option("--hide", metavar="PANEL,...", help=HIDE)
    ] = None,
    lock: Annotated[
        list[str] | None, typer.Option("--lock", metavar="CONTROL,...", help=LOCK)
    ] = None,
    model: Annotated[str | None, typer.Option(metavar="MODEL", help=MODEL)] = None,
    text: Annotated[str | None, typer.Option(metavar="TEXT", help=TEXT)] = None,
    ids: Annotated[
        str | None, typer.Option(metavar="1,2,3", help="Token ids instead of a text.")
    ] = None,
    layer: Annotated[int | None, typer.Option(help=LAYER)] = None,
    head: Annotated[int | None, typer.Option(help=HEAD)] = None,
    t_end: Annotated[float, typer.Option(help=T_END)] = 5.0,
    guess: Annotated[
        bool, typer.Option("--guess", help="Readers first guess how many limits there will be.")
    ] = False,
    record: Annotated[bool, typer.Option("--record", help=RECORD)] = False,
    member: Annotated[int, typer.Option(help="Which member of a batch.")] = 0,
    theme: Annotated[str, typer.Option(help="auto, light or dark.")] = "auto",
    title: Annotated[str | None, typer.Option(help="The title of the page.")] = None,
    work: Annotated[
        float | None,
        typer.Option(
            metavar="UNITS",
            help=(
                "Evaluations and events after which to stop looking for a certified limit. Default:"
                " 5e5."
            ),
        ),
    ] = None,
    budget: Annotated[
        float,
        typer.Option(metavar="SECONDS", help="When to give up looking for the certified limit."),
    ] = 20.0,
    force: Annotated[
        bool, typer.Option("--force", help="Replace a file that is not a page of attnlab explore.")
    ] = False,
    is_opened: Annotated[
        bool | None,
        typer.Option(
            "--open/--no-open",
            help="Open the page in a browser. Default: only in a terminal.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Write one HTML page that plays a run and lets you change it: drag tokens, eigenvalues, and
    time up to infinity.

    The page needs no network and no server. An existing page is replaced completely or not at all.
    """
    from attnlab.explorer.entry import WORK, is_page
    from attnlab.explorer.entry import explore as write_page

    of_model = {"text": text, "ids": ids, "layer": layer, "head": head}
    _check_model(model, source, of_model)
    read = Path(source if source is not None else model if model is not None else "")
    check_outputs([Output("--output", output, _check_page_name)], read, force or is_page(output))
    options: dict[str, Any] = {
        "hide": _words(hide),
        "lock": _words(lock),
        "guess": guess,
        "theme": theme,
        "title": title,
    }
    with track(has_terminal()) as progress:
        shown: Any = source
        if model is not None:
            shown = _read_model(model, of_model, t_end, work, budget, progress.part(0.0, 0.9))
        page = write_page(
            shown,
            output,
            record=record,
            member=member,
            work=WORK if work is None else work,
            budget=budget,
            progress=progress if model is None else progress.part(0.9, 1.0),
            **options,
        )
    say(f"Open {output} in a browser: {output.stat().st_size / 1000:.0f} KB, everything inside.")
    if has_terminal() if is_opened is None else is_opened:
        import webbrowser

        webbrowser.open(page.absolute().as_uri())


def _check_model(model: str | None, source: str | None, of_model: dict[str, Any]) -> None:
    """Refuse options that do not go together, before a model is loaded."""
    if model is None:
        for name, value in of_model.items():
            if value is not None:
                raise ValueError(
                    f"--{name} needs --model. Give the model too, such as --model minilm."
                )
    elif source is not None:
        raise ValueError(
            f"--model shows a trained model, and {source} shows something else. Give one of the"
            " two."
        )
    elif (of_model["text"] is None) == (of_model["ids"] is None):
        raise ValueError("Give either --text with the sentence that the model reads, or --ids.")
    elif of_model["head"] is not None and of_model["layer"] is None:
        raise ValueError(
            f"--head {of_model['head']} needs the number of its layer. Give --layer too."
        )


def _read_model(
    name: str,
    of_model: dict[str, Any],
    t_end: float,
    work: float | None,
    budget: float,
    progress: Any,
) -> list[Any]:
    """Return what the page shows: the flow of a layer or head if one was named, then the
    sentence.
    """
    from attnlab.explorer.recording import FRAMES
    from attnlab.models import flow, load, sentence

    given = {
        "text": of_model["text"],
        "ids": None if of_model["ids"] is None else read_ids(of_model["ids"]),
    }
    model = load(name)
    if given["text"] is not None:
        check_tokenizer(model)
    layer, head = of_model["layer"], of_model["head"]
    found: list[Any] = []
    if layer is not None:
        found.append(
            flow(
                model,
                layer,
                head,
                **given,
                t_end=t_end,
                saves=FRAMES // 2 + 1,
                check=False,
                work=work,
                budget=budget,
                progress=progress.part(0.0, 0.6),
            )
        )
    found.append(sentence(model, **given, only=["twin"], progress=progress.next_part(1.0)))
    return found


def _words(lists: list[str] | None) -> list[str]:
    """Return the words of options that are given several times or with commas."""
    return [word.strip() for words in lists or [] for word in words.split(",") if word.strip()]


def _check_page_name(path: Path) -> None:
    if path.suffix.lower() not in (".html", ".htm"):
        raise ValueError(
            f"The name of a page must end in .html, got {path}: use {path.with_suffix('.html')}."
        )
