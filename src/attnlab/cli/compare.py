"""attnlab compare: which heads changed between checkpoints of one shape."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from attnlab.cli import verbs
from attnlab.cli.outputs import (
    Output,
    check_figure_name,
    check_outputs,
    check_table_name,
    rows_of,
    write_table,
)
from attnlab.cli.say import has_terminal, say, say_paragraph
from attnlab.cli.summary import print_table
from attnlab.cli.theory_words import plain
from attnlab.cli.token_ids import check_tokenizer, read_ids, read_lines
from attnlab.models.checkpoints.head_names import name_head

MODEL = "The first model: a name, a folder with config.json and weights, or hf:owner/name."
OTHERS = "One or more models of the same shape, each compared with the first."
FIGURE = "Draw which heads changed, layers x heads (.png, .pdf, .svg)."
CSV = "Write the table with all numbers of all heads into this file (.csv, .parquet)."

SHOWN = 12
"""The most heads that the table on the terminal has for each model."""

LEGEND = (
    "One row per head, the {shown} that changed most of {heads}. V, M: |change| / |before|, in the"
    " Frobenius norm. writes, reads: overlap of the spaces that the head writes and reads, 1 is the"
    " same space and {chance:.2f} chance. before, after: the leading eigenvalue of V."
)
ON_TEXTS = (
    " attention: the share that moved to other tokens. first token, entropy: how much larger they"
    " are in the second model. In brackets: 95 % interval over {texts} texts. p: after Holm's"
    " correction; below 0.05 the head attends differently."
)
COLUMNS: tuple[str, ...] = ("head", "V", "M", "writes", "reads", "before", "after")


@verbs.register("compare")
def compare(
    model: Annotated[str, typer.Argument(metavar="MODEL", help=MODEL)],
    others: Annotated[list[str], typer.Argument(metavar="OTHERS", help=OTHERS)],
    texts: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A file with one text per line, UTF-8."),
    ] = None,
    ids: Annotated[
        list[str] | None,
        typer.Option(metavar="1,2,3", help="Token ids of a text; may be given again."),
    ] = None,
    special: Annotated[
        bool, typer.Option(help="Add the model's own tokens, such as [CLS], at the ends.")
    ] = True,
    figure: Annotated[
        Path | None, typer.Option("--figure", "-o", metavar="FILE", help=FIGURE)
    ] = None,
    csv: Annotated[Path | None, typer.Option(metavar="FILE", help=CSV)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole table as JSON.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
) -> None:
    """Show which heads changed from one checkpoint to others of the same shape.

    Matrices are compared exactly. With texts, attention is compared too, and a test says which
    heads attend differently.
    """
    named = (("--figure", figure, check_figure_name), ("--csv", csv, check_table_name))
    outputs = [Output(option, path, check) for option, path, check in named if path is not None]
    for source in (model, *others):
        check_outputs(outputs, Path(source), force)
    given: list[Any] = [] if texts is None else list(read_lines(texts))
    if texts is not None and not given:
        raise ValueError(f"{texts} must hold at least one text, one per line, but it is empty.")
    numbers = [np.array(read_ids(one)) for one in ids or []]
    from attnlab.models.catalog.sources import load
    from attnlab.models.studies.comparisons import compare as compared
    from attnlab.models.studies.comparisons import each_model
    from attnlab.models.studies.findings import findings

    loaded = [load(source) for source in (model, *others)]
    if given:
        for one in loaded:
            check_tokenizer(one)
    table = compared(
        *loaded,
        texts=[*given, *numbers],
        special=special,
        progress=has_terminal() and not as_json,
    )
    if as_json:
        record = {
            **table.attrs,
            "said": findings(table),
            "rows": rows_of(table),
        }
        say(json.dumps(plain(record), indent=2, allow_nan=False))
    else:
        for name, part in each_model(table):
            _print(part, table.attrs, f"{loaded[0].name} and {name}")
        for line in findings(table):
            say_paragraph(line)
    if figure is not None:
        from attnlab.render.comparison_figure import draw_comparison

        draw_comparison(table).savefig(figure)
    if csv is not None:
        write_table(csv, table)
    for path, what in ((figure, "Figure"), (csv, "Table")):
        if path is not None:
            say(f"{what} written to {path}.", err=as_json)


def _print(part: Any, facts: Mapping[str, Any], name: str) -> None:
    """Print the heads that changed most: by attention if there are texts, else by V and M."""
    from attnlab.models.studies.comparisons import most_changed

    rows = []
    for row in most_changed(part, SHOWN).itertuples():
        cells = [
            name_head(row.layer, row.head),
            *(_number(value, ".0%") for value in (row.value_change, row.score_change)),
            *(_number(value, ".2f") for value in (row.write_overlap, row.read_overlap)),
            *(_eigenvalue(value) for value in (row.lambda1_a, row.lambda1_b)),
        ]
        if facts["texts"]:
            cells += [
                _with_interval(row, "attention_change", ".0%"),
                _with_interval(row, "sink_change", "+.0%"),
                _with_interval(row, "entropy_change", "+.2f"),
                _number(row.p, ".2g"),
            ]
        rows.append(tuple(cells))
    legend = LEGEND.format(shown=len(rows), heads=len(part), chance=facts["chance_overlap"])
    columns = COLUMNS
    if facts["texts"]:
        legend += ON_TEXTS.format(texts=facts["texts"])
        columns = (*COLUMNS, "attention", "first token", "entropy", "p")
    print_table(name, legend, columns, rows)


def _number(value: float, form: str) -> str:
    return format(value, form) if np.isfinite(value) else "-"


def _eigenvalue(value: complex) -> str:
    if value.imag == 0:
        return f"{value.real:.3g}"
    return f"{value.real:.3g} ± {abs(value.imag):.3g}i"


def _with_interval(row: Any, name: str, form: str) -> str:
    """Format a mean and, in brackets, its interval."""
    low, high = getattr(row, f"{name}_low"), getattr(row, f"{name}_high")
    said = _number(getattr(row, name), form)
    return said if not np.isfinite(low) else f"{said} [{low:{form}}, {high:{form}}]"
