"""attnlab sentence: run a text through a trained model, layer by layer, and through variants of the
model.
"""

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
from attnlab.cli.token_ids import check_tokenizer, read_ids
from attnlab.progress import track
from attnlab.store import save

MODEL = (
    "A name (`attnlab models` lists them), a folder with config.json and weights, or hf:owner/name."
)
TEXT = "The sentence, in quotation marks; leave it out if you give --ids."
ONLY = (
    "Only these variants besides the real stack: no_mlp, no_norm, attention_only, no_mask, tied,"
    " twin, random, untrained."
)
FIGURE = "Draw curves and leaders into this file (.png, .pdf, .svg)."
LAYER = "The layer that the variant `tied` and the iteration repeat, counted from 0."
ITERATED = (
    "Draw into this file what one layer does when it is repeated (also for a model whose layers are"
    " not tied)."
)
DIGITS = {"cosine": 3, "clusters": 0, "rank": 1, "entropy": 2, "turn": 3}


@verbs.register("sentence")
def sentence(
    model: Annotated[str, typer.Argument(metavar="MODEL", help=MODEL)],
    text: Annotated[str | None, typer.Argument(metavar="TEXT", help=TEXT)] = None,
    ids: Annotated[
        str | None, typer.Option(metavar="1,2,3", help="Token ids instead of a text.")
    ] = None,
    special: Annotated[
        bool, typer.Option(help="Add the model's own tokens, such as [CLS], at the ends.")
    ] = True,
    only: Annotated[str | None, typer.Option(metavar="NAMES", help=ONLY)] = None,
    cosine: Annotated[
        float,
        typer.Option(help="Tokens whose directions have at least this cosine form one cluster."),
    ] = 0.9,
    layer: Annotated[int, typer.Option(help=LAYER)] = 0,
    times: Annotated[int, typer.Option(help="The most repetitions of a tied layer.")] = 400,
    rng: Annotated[int, typer.Option(help="The seed of the random weights.")] = 0,
    figure: Annotated[
        Path | None, typer.Option("--figure", "-o", metavar="FILE", help=FIGURE)
    ] = None,
    words: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw the words in their principal planes into it."),
    ] = None,
    iteration: Annotated[Path | None, typer.Option(metavar="FILE", help=ITERATED)] = None,
    csv: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the numbers of all variants and layers into this file (.csv, .parquet).",
        ),
    ] = None,
    nc: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write everything, tokens too, into this NetCDF file (.nc)."
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print everything but the tokens themselves as JSON.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
) -> None:
    """Show what each layer does to the tokens of a sentence, in the real model and in variants of
    it.

    The variants leave parts out. Others are the idealised model of the theory and, as nulls, random
    weights of the same sizes and untrained weights. If all layers are tied (ALBERT), the layer is
    also repeated until the tokens settle.
    """
    named = (
        ("--figure", figure, check_figure_name),
        ("--words", words, check_figure_name),
        ("--iteration", iteration, check_figure_name),
        ("--csv", csv, check_table_name),
        ("--nc", nc, check_run_name),
    )
    check_outputs(
        [Output(option, path, check) for option, path, check in named if path is not None],
        Path(model),
        force,
    )
    chosen = None if only is None else [name.strip() for name in only.split(",") if name.strip()]
    if words is not None and chosen is not None and "twin" not in chosen:
        raise ValueError(
            "--words draws the real stack next to the idealised model. Add twin to --only, which"
            f" is {only}."
        )
    from attnlab.models.catalog.sources import load
    from attnlab.models.studies.sentences import sentence as measured
    from attnlab.models.studies.tied import iterate

    numbers = None if ids is None else read_ids(ids)
    loaded = load(model)
    _check_given(loaded, text, numbers)
    repeated, is_repeated = None, loaded.config.is_tied or iteration is not None
    with track(has_terminal() and not as_json) as progress:
        first = progress.part(0.0, 0.7 if is_repeated else 1.0, "reading")
        data = measured(
            loaded,
            text,
            ids=numbers,
            special=special,
            only=chosen,
            cosine=cosine,
            tied_layer=layer,
            rng=rng,
            progress=first,
        )
        if is_repeated:
            repeated = iterate(
                loaded,
                text,
                ids=numbers,
                special=special,
                layer=layer,
                times=times,
                cosine=cosine,
                progress=progress.part(0.7, 1.0, "repeating"),
            )
    if as_json:
        say(json.dumps(plain(_record(data, repeated)), indent=2, allow_nan=False))
    else:
        _print(data, repeated)
    _write(data, repeated, figure, words, iteration, csv, nc)
    for path, what in (
        (figure, "Figure"),
        (words, "Figure"),
        (iteration, "Figure"),
        (csv, "Table"),
        (nc, "Data"),
    ):
        if path is not None:
            say(f"{what} written to {path}.", err=as_json)


def _check_given(model: Any, text: str | None, ids: list[int] | None) -> None:
    """Refuse both a text and ids, or neither; a model without a tokenizer needs ids."""
    if text is None and ids is None:
        raise ValueError(
            "Give a sentence in quotation marks, or --ids with token ids such as 1,2,3."
        )
    if text is not None and ids is not None:
        raise ValueError("Give a sentence or --ids, not both.")
    if text is not None:
        check_tokenizer(model)


def _write(
    data: Any,
    repeated: Any,
    figure: Path | None,
    words: Path | None,
    iteration: Path | None,
    csv: Path | None,
    nc: Path | None,
) -> None:
    from attnlab.models.studies.tidy import table

    if figure is not None or words is not None or iteration is not None:
        from attnlab.render.sentence_figure import draw_iteration, draw_sentence
        from attnlab.render.sentence_planes import draw_words

        drawn = (
            (figure, draw_sentence, data),
            (words, draw_words, data),
            (iteration, draw_iteration, repeated),
        )
        for path, draw, shown in drawn:
            if path is not None:
                draw(shown).savefig(path)
    if csv is not None:
        write_table(csv, table(data))
    if nc is not None:
        save(data, nc)


def _record(data: Any, repeated: Any) -> dict[str, Any]:
    from attnlab.models.studies.findings import findings
    from attnlab.models.studies.tidy import table

    record = {
        **data.attrs,
        "about_variants": json.loads(data.attrs["about_variants"]),
        "said": findings(data),
        "words": data["word"].values,
        "ids": data["id"].values,
        "is_special": data["is_special"].values.astype(bool),
        "variants": rows_of(table(data)),
        "received": data["received"].sel(variant="real").values[: data.attrs["layers"]],
    }
    if repeated is not None:
        attributes = {
            name: value for name, value in repeated.attrs.items() if name not in data.attrs
        }
        record["iteration"] = {
            **attributes,
            "label": repeated["label"].values[-1],
            "passed": repeated["passed"].values,
            "passed_by_all": repeated["passed_by_all"].values,
        }
    return record


def _print(data: Any, repeated: Any) -> None:
    from attnlab.models.studies.findings import ends_of, findings
    from attnlab.models.studies.sentences import TITLES, name_leaders, special_words

    facts, last = data.attrs, data.attrs["layers"]
    real, n = data.sel(variant="real"), data.sizes["token"]
    leading = [
        ", ".join(" ".join(one.split()) for one in layer) for layer in name_leaders(data)
    ] + ["-"]
    rows = [
        (
            "start" if step == 0 else str(step - 1),
            *(_number(real, name, step) for name in ("cosine", "clusters", "rank")),
            *((_number(real, "entropy", step - 1), leading[step - 1]) if step else ("-", "-")),
        )
        for step in range(last + 1)
    ]
    tokens = (
        f"cosine: mean over pairs of tokens. clusters: at cosine {facts['cosine_scale']:g}. rank:"
        f" effective, of {n}. "
    )
    special = special_words(data, is_counted=True)
    legend = (
        "One row per layer; after layer: counted from 0, start is what enters the first. "
        + tokens
        + "its entropy: of the attention in that layer, 1 is uniform. its leaders: the tokens that"
        f" receive most of this attention, and their shares{f' ({special})' if special else ''}."
    )
    print_table(
        f"{facts['model']}: {n} tokens after each of {last} layers",
        legend,
        ("after layer", "cosine", "clusters", "rank", "its entropy", "its leaders"),
        rows,
    )
    rows = [
        (TITLES.get(name, name), *_ending(data.sel(variant=name), step))
        for name, step in ends_of(data)
    ]
    legend = (
        "One row per stack: the real one and its variants. layers: how many the tokens passed. "
        + tokens
        + "turn: mean of 1 - cosine to the same token in the real stack."
    )
    print_table(
        "at the end", legend, ("stack", "layers", "cosine", "clusters", "rank", "turn"), rows
    )
    for line in findings(data):
        say_paragraph(line)
    if repeated is not None:
        which = "Its layer" if facts["is_tied"] else f"Layer {repeated.attrs['layer']}"
        more = (
            " (--times sets the number of repetitions.)"
            if repeated.attrs["outcome"] in ("settling", "moving")
            else ""
        )
        say_paragraph(f"{which}, repeated: {repeated.attrs['answer']}{more}")


def _ending(numbers: Any, step: int) -> tuple[Any, ...]:
    return (
        step,
        *(_number(numbers, name, step) for name in ("cosine", "clusters", "rank", "turn")),
    )


def _number(numbers: Any, name: str, step: int) -> str:
    value = numbers[name].values[step]
    return f"{value:.{DIGITS[name]}f}" if np.isfinite(value) else "-"
