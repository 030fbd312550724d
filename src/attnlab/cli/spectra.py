"""attnlab spectra: the value matrices of the heads of a trained model, compared with random
heads.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

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
from attnlab.cli.say import say
from attnlab.cli.summary import has_terminal, print_table
from attnlab.cli.theory_words import plain
from attnlab.models.checkpoints.head_names import name_head
from attnlab.models.checkpoints.token_norms import FROM_GAINS

KINDS = ("plane", "map")
TEXT = (
    "Measure the norms of tokens (for beta) on this text; may be given again. Default: estimate"
    " them from gains and biases."
)
MODEL = (
    "A name (`attnlab models` lists them), a folder with config.json and weights, or hf:owner/name."
)
FIGURE = (
    "Draw into this file (.png, .pdf, .svg): eigenvalues in the complex plane, or for more than 16"
    " heads a map of verdicts."
)

LEGEND = (
    "One row per head: L5H10 is head 10 of layer 5, counted from 0. leading eigenvalue of V: of"
    " largest modulus. gap: 1 - |next| / |leading|. score: the cosine of Q phi and K phi, phi the"
    " leading eigenvector. verdict: a good triple, or the kind of leading eigenvalue. what fails:"
    " the hypothesis of the nearest theorem that does not hold. beta: |x|^2 |sym M| / sqrt(d), the"
    " strength of the scores. + / - / turning: parts of the spectrum that attract, repel and"
    " rotate. non-normal: 0 where V is normal. condition: of the leading eigenvalue. In brackets:"
    " the share of {null} random heads of the same shapes and norms with a smaller number."
)


@verbs.register("spectra")
def spectra(
    model: Annotated[str, typer.Argument(metavar="MODEL", help=MODEL)],
    layer: Annotated[int | None, typer.Option(help="Only this layer, counted from 0.")] = None,
    head: Annotated[
        int | None, typer.Option(help="Only this head of each layer, counted from 0.")
    ] = None,
    csv: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write every number, one line per head, into this file (.csv, .parquet).",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    figure: Annotated[Path | None, typer.Option(metavar="FILE", help=FIGURE)] = None,
    kind: Annotated[
        str | None,
        typer.Option(metavar="plane|map", help="The kind of figure, for any number of heads."),
    ] = None,
    page: Annotated[int, typer.Option(help="Which 16 heads the plane shows, counted from 0.")] = 0,
    null: Annotated[
        int, typer.Option(metavar="N", help="How many random heads to draw for comparison.")
    ] = 200,
    rng: Annotated[int, typer.Option(help="The seed of those draws.")] = 0,
    offset: Annotated[
        int, typer.Option(help="With rotary positions: the query's place minus the key's.")
    ] = 0,
    fold_norm: Annotated[
        bool, typer.Option(help="Put the gain of a norm before attention into the matrices.")
    ] = True,
    text: Annotated[list[str] | None, typer.Option(metavar="TEXT", help=TEXT)] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
) -> None:
    """List the heads of a model: leading eigenvalue of V = W_O W_V, the theorem that applies, and
    how unusual it is.

    In brackets: the share of Gaussian heads of the same shapes and norms with a smaller number.
    Only --text runs the model.
    """
    _check_options(model, csv, figure, kind, force)
    from attnlab.models.catalog.sources import load
    from attnlab.models.studies.findings import findings
    from attnlab.models.studies.spectra_table import spectra as table_of

    loaded = load(model)
    is_shown = has_terminal() and not as_json
    frame = table_of(
        loaded, layer, head, null, rng, fold_norm, offset, texts=text or (), progress=is_shown
    )
    if figure is not None:
        from attnlab.render.spectra_figure import ON_A_PAGE, draw_spectra, draw_verdict_map

        is_plane = kind == "plane" or kind is None and len(frame) <= ON_A_PAGE
        options: Any = {"page": page, "fold_norm": fold_norm, "offset": offset, "rng": rng}
        (
            draw_spectra(loaded, layer, head, **options) if is_plane else draw_verdict_map(frame)
        ).savefig(figure)
    if csv is not None:
        write_table(csv, frame)
    if as_json:
        record = {
            **frame.attrs,
            "summary": findings(frame)[0],
            "rows": rows_of(frame),
        }
        say(json.dumps(plain(record), indent=2, allow_nan=False))
    else:
        _print(frame)
        say(findings(frame)[0])
    for path, what in ((csv, "Table"), (figure, "Figure")):
        if path is not None:
            say(f"{what} written to {path}.", err=as_json)


def _check_options(
    model: str, csv: Path | None, figure: Path | None, kind: str | None, is_forced: bool
) -> None:
    """Refuse outputs that cannot be written or drawn, before anything is computed."""
    if kind is not None and kind not in KINDS:
        raise ValueError(f"--kind must be plane or map, got {kind!r}.")
    if kind is not None and figure is None:
        raise ValueError(f"--kind {kind} needs a figure: name its file with --figure.")
    outputs = [] if csv is None else [Output("--csv", csv, check_table_name)]
    outputs += [] if figure is None else [Output("--figure", figure, check_figure_name)]
    check_outputs(outputs, Path(model), is_forced)


def _print(frame: Any) -> None:
    from attnlab.models.studies.judgement import short_reason

    facts = frame.attrs
    columns = (
        "head",
        "leading eigenvalue of V",
        "gap",
        "score",
        "verdict",
        "what fails",
        "beta",
        "+ / - / turning",
        "non-normal",
        "condition",
    )
    rows = []
    for row in frame.itertuples():
        rows.append(
            (
                name_head(row.layer, row.head),
                _with_rank(row, "lambda1", _eigenvalue(row.lambda1)),
                _with_rank(row, "gap") if row.is_real else "-",
                _with_rank(row, "score"),
                row.verdict,
                short_reason(row),
                _with_rank(row, "effective_beta"),
                " / ".join(
                    f"{getattr(row, name):.0%}"
                    for name in ("attractive_weight", "repulsive_weight", "rotational_weight")
                ),
                _with_rank(row, "non_normality"),
                _with_rank(row, "condition"),
            )
        )
    tied = f", the same in all {facts['layers']} layers" if facts["is_tied"] else ""
    sizes = sorted({f"{size:.3g}" for size in frame["token_norm"]}, key=float)
    is_estimate = frame["norms"].iloc[0] == FROM_GAINS
    norms = (
        "norms of tokens"
        f" {'estimated from gains and biases' if is_estimate else frame['norms'].iloc[0]}: "
    )
    norms += " to ".join(dict.fromkeys((sizes[0], sizes[-1]))) + (
        " (--text measures them)" if is_estimate else ""
    )
    shape = f"{facts['family']}, d = {facts['d']}, head size {facts['head_size']}{tied}"
    print_table(
        f"{facts['model']}: {shape}; {norms}",
        LEGEND.format(null=facts["null_draws"]),
        columns,
        rows,
    )


def _with_rank(row: Any, name: str, words: str = "") -> str:
    """Format a number and, in brackets, the share of the null draws below it."""
    rank = getattr(row, f"{name}_quantile")
    place = (
        ""
        if rank != rank
        else " [<1%]"
        if rank < 0.01
        else " [>99%]"
        if rank > 0.99
        else f" [{rank:.0%}]"
    )
    return (words or f"{getattr(row, name):.3g}") + place


def _eigenvalue(value: complex) -> str:
    return f"{value.real:.3f}" if value.imag == 0 else f"{value.real:.3f} ± {abs(value.imag):.3f}i"
