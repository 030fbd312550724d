"""attnlab survey: every head of a trained model on many texts, with intervals over the texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from attnlab.cli import verbs
from attnlab.cli.outputs import (
    Output,
    check_figure_name,
    check_outputs,
    check_run_name,
    check_table_name,
    rows_of,
    write_table,
)
from attnlab.cli.say import has_terminal, say, say_paragraph
from attnlab.cli.summary import print_table
from attnlab.cli.theory_words import plain
from attnlab.cli.token_ids import check_tokenizer, read_ids, read_lines
from attnlab.models.checkpoints.head_names import name_head
from attnlab.store import save

MODEL = (
    "A name (`attnlab models` lists them), a folder with config.json and weights, or hf:owner/name."
)
FIGURE = "Draw the attention that the first token receives, layers x heads (.png, .pdf, .svg)."
CSV = "Write the table with all numbers of all heads into this file (.csv, .parquet)."
NC = "Write the numbers of every text, head and token into this NetCDF file (.nc)."

LEGEND = (
    "One row per layer; layer: counted from 0, and end is the end of the stack. first token: share"
    " of the attention that it receives, mean over the heads. added: the same for all tokens that"
    " the model adds. strongest head: the head whose first token receives most. entropy: of"
    " attention rows, 1 is uniform. cosine, clusters: of the tokens that the layer reads, clusters"
    " at cosine {cosine:g}. In brackets: 95 % interval over {texts} texts."
)


@verbs.register("survey")
def survey(
    model: Annotated[str, typer.Argument(metavar="MODEL", help=MODEL)],
    texts: Annotated[
        list[str] | None, typer.Argument(metavar="TEXTS", help="Texts, each in quotation marks.")
    ] = None,
    file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A file with one text per line, UTF-8.")
    ] = None,
    ids: Annotated[
        list[str] | None,
        typer.Option(metavar="1,2,3", help="Token ids of a text; may be given again."),
    ] = None,
    special: Annotated[
        bool, typer.Option(help="Add the model's own tokens, such as [CLS], at the ends.")
    ] = True,
    cosine: Annotated[
        float,
        typer.Option(help="Tokens whose directions have at least this cosine form one cluster."),
    ] = 0.9,
    figure: Annotated[
        Path | None, typer.Option("--figure", "-o", metavar="FILE", help=FIGURE)
    ] = None,
    csv: Annotated[Path | None, typer.Option(metavar="FILE", help=CSV)] = None,
    nc: Annotated[Path | None, typer.Option(metavar="FILE", help=NC)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole table as JSON.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
) -> None:
    """Show what every head does on many texts: attention to the first token, entropy, leaders and
    clusters.

    Each number is a mean over the texts, with its 95 % interval.
    """
    named = (
        ("--figure", figure, check_figure_name),
        ("--csv", csv, check_table_name),
        ("--nc", nc, check_run_name),
    )
    check_outputs(
        [Output(option, path, check) for option, path, check in named if path is not None],
        Path(model),
        force,
    )
    given: list[Any] = [*(texts or []), *([] if file is None else read_lines(file))]
    if not given and not ids:
        raise ValueError(
            "Give texts in quotation marks, a file with one text per line (--file), or --ids with"
            " token ids such as 1,2,3."
        )
    numbers = [np.array(read_ids(one)) for one in ids or []]
    from attnlab.models.catalog.sources import load
    from attnlab.models.studies.findings import findings
    from attnlab.models.studies.surveys import intervals
    from attnlab.models.studies.surveys import survey as measured

    loaded = load(model)
    if given:
        check_tokenizer(loaded)
    data = measured(
        loaded,
        [*given, *numbers],
        special=special,
        cosine=cosine,
        progress=has_terminal() and not as_json,
    )
    table = intervals(data)
    if as_json:
        record = {
            **table.attrs,
            "said": findings(data),
            "rows": rows_of(table),
        }
        say(json.dumps(plain(record), indent=2, allow_nan=False))
    else:
        _print(data, table)
        for line in findings(data):
            say_paragraph(line)
    if figure is not None:
        from attnlab.render.survey_figure import draw_survey

        draw_survey(data).savefig(figure)
    if csv is not None:
        write_table(csv, table)
    if nc is not None:
        save(data, nc)
    for path, what in ((figure, "Figure"), (csv, "Table"), (nc, "Data")):
        if path is not None:
            say(f"{what} written to {path}.", err=as_json)


def _print(data: Any, table: Any) -> None:
    from attnlab.models.studies.surveys import interval_over_texts

    layers, texts = data.attrs["layers"], data.sizes["text"]
    rows = []
    for layer in range(layers + 1):
        of_tokens = [
            _with_interval(*interval_over_texts(name, data[name].values[:, layer], 0.95), form)
            for name, form in (("cosine", ".2f"), ("clusters", ".1f"))
        ]
        if layer == layers:
            rows.append(("end", "-", "-", "-", "-", *of_tokens))
            continue
        of_heads = [
            _with_interval(
                *interval_over_texts(name, data[name].values[:, layer].mean(axis=1), 0.95), form
            )
            for name, form in (("sink", ".0%"), ("special_share", ".0%"), ("entropy", ".2f"))
        ]
        heads = table[(table["number"] == "sink") & (table["layer"] == layer)]
        most = heads.iloc[int(heads["mean"].to_numpy().argmax())]
        strongest = (
            f"{name_head(layer, int(most['head']))}"
            f" {_with_interval(most['mean'], most['low'], most['high'], texts, '.0%')}"
        )
        rows.append((str(layer), *of_heads[:2], strongest, of_heads[2], *of_tokens))
    print_table(
        f"{data.attrs['model']}: {data.attrs['heads']} heads in each of {layers} layers, {texts}"
        f" text{'s' if texts != 1 else ''}",
        LEGEND.format(cosine=data.attrs["cosine_scale"], texts=texts),
        ("layer", "first token", "added", "strongest head", "entropy", "cosine", "clusters"),
        rows,
    )


def _with_interval(mean: float, low: float, high: float, texts: int, form: str) -> str:
    """Format a mean and, in brackets, its interval."""
    if not np.isfinite(mean):
        return "-"
    number = format(mean, form)
    return number if not np.isfinite(low) else f"{number} [{low:{form}}, {high:{form}}]"
