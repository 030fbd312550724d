"""attnlab flow: run the equation of the theory with the weights of a trained head, from a text or
random tokens.
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
    check_spec_name,
    check_table_name,
    rows_of,
    write_table,
)
from attnlab.cli.plot import Title, Width, check_width, draw_into, say_caption
from attnlab.cli.say import as_options, has_terminal, say, say_paragraph
from attnlab.cli.summary import print_table
from attnlab.cli.theory_words import plain, record
from attnlab.cli.token_ids import check_tokenizer, read_ids
from attnlab.models.checkpoints.head_names import name_head, name_heads
from attnlab.store import save
from attnlab.verdicts import count_outcomes

MODEL = (
    "A name (`attnlab models` lists them), a folder with config.json and weights, or hf:owner/name."
)
TEXT = "Start from this sentence, as it enters the layer of the real model."
START = (
    "Start from random tokens: sphere (with the norm that the tokens of this layer have when the"
    " model reads random ids), normal or cube."
)
STEPPER = "How it is solved. Default: adaptive for a small system, else rk4."
STEPS = "The length of fixed steps; 0: adaptive steps. Default: 0.01 for rk4 and euler."
CHECK = "Verdicts of the theory, for one head. Default: only if they do not take minutes."

HEADS_LEGEND = (
    "One row per head: L5H10 is head 10 of layer 5, counted from 0. leading eigenvalue of V: the"
    " one of largest modulus. next: the one after it. gap: 1 - |next| / |leading|. score: the"
    " cosine of Q phi and K phi, phi the leading eigenvector. verdict: a good triple, or the kind"
    " of leading eigenvalue. what fails: the hypothesis of the nearest theorem that does not hold."
)
CLUSTERS_LEGEND = (
    "One row per cluster: tokens, how many; words, which; they attend to: the token that receives"
    " most of their attention, and its share; nearest start, cosine: the first token whose"
    " direction is nearest to theirs."
)
ROWS = 6


@verbs.register("flow")
def flow(
    model: Annotated[str, typer.Argument(metavar="MODEL", help=MODEL)],
    layer: Annotated[int, typer.Option(help="The layer, counted from 0.")] = 0,
    head: Annotated[
        int | None, typer.Option(help="The head, counted from 0. Default: all heads of the layer.")
    ] = None,
    text: Annotated[str | None, typer.Option(help=TEXT)] = None,
    ids: Annotated[
        str | None, typer.Option(metavar="1,2,3", help="Token ids instead of a text.")
    ] = None,
    start: Annotated[str | None, typer.Option(metavar="sphere|normal|cube", help=START)] = None,
    n: Annotated[
        int | None, typer.Option("--n", help="How many random tokens. Default: 30.")
    ] = None,
    rng: Annotated[int, typer.Option(help="The seed of random tokens.")] = 0,
    t_end: Annotated[float, typer.Option(help="The end of the flow.")] = 5.0,
    saves: Annotated[int, typer.Option(help="How many times are kept, equally spaced.")] = 51,
    stepper: Annotated[str | None, typer.Option(metavar="adaptive|rk4|euler", help=STEPPER)] = None,
    dt: Annotated[float | None, typer.Option(help=STEPS)] = None,
    rtol: Annotated[
        float | None, typer.Option(help="The tolerance of adaptive steps. Default: 1e-6.")
    ] = None,
    max_steps: Annotated[
        int | None, typer.Option(help="The most adaptive steps. Default: 20,000.")
    ] = None,
    cosine: Annotated[
        float,
        typer.Option(help="Tokens whose directions have at least this cosine form one cluster."),
    ] = 0.9,
    special: Annotated[
        bool, typer.Option(help="Add the model's own tokens, such as [CLS], at the ends.")
    ] = True,
    limit: Annotated[
        bool, typer.Option(help="Look for the certified limit at t = infinity, for one head.")
    ] = True,
    check: Annotated[bool | None, typer.Option("--check/--no-check", help=CHECK)] = None,
    work: Annotated[
        float | None,
        typer.Option(
            metavar="UNITS",
            help="Evaluations and events after which to stop looking for the limit. Default: 5e5.",
        ),
    ] = None,
    budget: Annotated[
        float, typer.Option(metavar="SECONDS", help="When to give up looking for the limit.")
    ] = 20.0,
    figure: Annotated[
        Path | None,
        typer.Option("--figure", "-o", metavar="FILE", help="Draw it (.png, .pdf, .svg)."),
    ] = None,
    width: Width = None,
    title: Title = True,
    nc: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write everything, the limit too, into this NetCDF file (.nc) for al.load.",
        ),
    ] = None,
    spec: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the Spec of this run (.toml, .json), for attnlab run, limit, explore.",
        ),
    ] = None,
    csv: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write numbers, one line per time, into this file (.csv, .parquet).",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print everything but the tokens themselves as JSON.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
) -> None:
    """Run the idealised flow with the weights of a trained head: clusters, leaders, eigenvalues of
    P, limit, verdicts.

    The flow has attention only: no biases, norms or feed-forward layers. A run that stops early is
    shown up to its end.
    """
    named = (
        ("-o", figure, check_figure_name),
        ("--csv", csv, check_table_name),
        ("--nc", nc, check_run_name),
        ("--spec", spec, check_spec_name),
    )
    outputs = [
        Output(option, path, check_name) for option, path, check_name in named if path is not None
    ]
    check_outputs(outputs, Path(model), force)
    check_width(width)
    _check_start(text, ids, start, n)
    from attnlab.models.catalog.sources import load
    from attnlab.models.studies.flows import flow as flow_of
    from attnlab.models.studies.tidy import table

    numbers = None if ids is None else read_ids(ids)
    loaded = load(model)
    if text is not None:
        check_tokenizer(loaded)
    given: dict[str, Any] = {
        name: value
        for name, value in (("rtol", rtol), ("max_steps", max_steps))
        if value is not None
    }
    found = flow_of(
        loaded,
        layer,
        head,
        text=text,
        ids=numbers,
        special=special,
        start=start,
        n=n,
        rng=rng,
        t_end=t_end,
        saves=saves,
        stepper=stepper,
        dt=dt,
        cosine=cosine,
        limit=limit,
        check=check,
        work=work,
        budget=budget,
        progress=has_terminal() and not as_json,
        **given,
    )
    caption = None if figure is None else draw_into(figure, found, width, title)
    if csv is not None:
        write_table(csv, table(found))
    if nc is not None:
        save(found, nc)
    if spec is not None and found.run.spec is not None:  # only a model with a name has a Spec
        found.run.spec.save(spec)
    if as_json:
        say(json.dumps(plain(_record(found)), indent=2, allow_nan=False))
    else:
        _print(found)
    for path, what in ((figure, "Figure"), (csv, "Table"), (nc, "Data"), (spec, "Spec")):
        if path is not None:
            say(f"{what} written to {path}.", err=as_json)
    say_caption(caption, title, err=as_json)


def _check_start(text: str | None, ids: str | None, start: str | None, n: int | None) -> None:
    """Refuse options that name no start or two, before a model is loaded."""
    if text is not None and ids is not None:
        raise ValueError("Give --text or --ids, not both.")
    for option, value in (("--start", start), ("--n", n)):
        if value is not None and (text is not None or ids is not None):
            raise ValueError(f"{option} is for random tokens. Give either it, or --text or --ids.")
    if n is not None and n < 2:
        raise ValueError(
            f"--n must be at least 2, so that tokens can attend to each other; got {n}."
        )


def _record(found: Any) -> dict[str, Any]:
    from attnlab.models.studies.tidy import table

    data = found.data
    limit = found.limit
    return {
        **data.attrs,
        "said": _findings_with_options(found),
        "words": list(found.words),
        "explained": data["explained"].values,
        "heads": [_head_record(one) for one in found.heads],
        "times": rows_of(table(found)),
        "label": data["label"].values[-1].astype(int),
        "received": data["received"].values[-1],
        "eigenvalue_moduli": data["eigenvalue"].values[-1],
        "in_doubt": found.in_doubt,
        "clusters": _clusters(found),
        "limit": (
            None
            if limit is None
            else {
                "count": limit.count,
                "grade": str(limit.grade),
                "certified": limit.certified,
                "labels": limit.labels,
                "leaders": limit.leaders,
                "place_count": limit.place_count,
                "error": float(limit.error),
                "reason": limit.reason,
                **({} if found.end is None else found.end.record),
            }
        ),
        "no_limit": found.no_limit,
        "verdicts": [record(one) for one in found.verdicts],
        "no_check": found.no_check,
        "statistics": {
            name: found.run.stats.get(name)
            for name in ("steps", "rejected", "evaluations", "reached", "seconds")
        },
    }


def _head_record(one: Any) -> dict[str, Any]:
    from attnlab.models.studies.judgement import theorem_of, verdict

    numbers = one.numbers
    applies, why = theorem_of(numbers, one.weights)
    return {
        "head": one.head,
        "lambda1": numbers.lambda1,
        "lambda2": numbers.lambda2,
        "gap": numbers.gap,
        "score": numbers.score,
        "verdict": verdict(numbers),
        "applies": applies,
        "why_not": why,
    }


def _clusters(found: Any) -> list[dict[str, Any]]:
    """Return one record per cluster at the end, with words for its tokens."""
    word = [one.strip() or repr(one) for one in found.words]
    return [
        {
            "tokens": len(one.members),
            "words": [word[i] for i in one.members],
            "leader": word[one.leader],
            "share": one.share,
            "nearest_start": word[one.nearest],
            "cosine": one.cosine,
        }
        for one in found.clusters
    ]


def _print(found: Any) -> None:
    from attnlab.models.studies.flow_findings import MOST_CLUSTERS, list_words, quote_word
    from attnlab.models.studies.tidy import table

    data = found.data
    rows: list[tuple[Any, ...]]
    rows = [
        (
            name_head(data.attrs["layer"], one["head"]),
            _eigenvalue(one["lambda1"]),
            _eigenvalue(one["lambda2"]),
            float(one["gap"]),
            float(one["score"]),
            one["verdict"],
            one["why_not"] or "-",
        )
        for one in map(_head_record, found.heads)
    ]
    columns: tuple[str, ...] = (
        "head",
        "leading eigenvalue of V",
        "next",
        "gap",
        "score",
        "verdict",
        "what fails",
    )
    print_table(f"{_place(data)}: the eigenvalues of V = W_O W_V", HEADS_LEGEND, columns, rows)
    times = np.unique(np.linspace(0, data.sizes["time"] - 1, ROWS).astype(int))
    rows = [
        (
            f"{row.time:.3g}",
            f"{row.clusters:.0f}",
            f"{row.cosine:.3f}",
            f"{row.rank:.1f}",
            f"{row.log_norm:.2f}",
            f"{row.second_modulus:.3g}",
            f"{row.gap:.3g}",
            f"{row.attention_rank:.1f}",
            f"{row.radius:.6g}",
            f"{quote_word(row.leader_word)} {row.leader_share:.0%}",
        )
        for row in table(found).iloc[times].itertuples()
    ]
    several = data.sizes["head"] > 1
    second, radius = (
        ("2nd of mean P", "radius of sum P") if several else ("2nd of P", "radius of P")
    )
    columns = (
        "t",
        "clusters",
        "cosine",
        "rank",
        "log |x|",
        second,
        "gap",
        "rank of P",
        radius,
        "leader",
    )
    legend = (
        f"One row per time t. clusters: of directions, at cosine {data.attrs['cosine_scale']:g}."
        f" cosine: mean over pairs of tokens. rank: effective, of {data.sizes['token']}. log |x|:"
        f" mean over tokens. {second}: second largest modulus of the eigenvalues. gap: 1 minus it."
        f" rank of P: effective{', mean over heads' if several else ''}. {radius}: largest modulus."
        " leader: the token that receives most attention, and its share."
    )
    print_table(f"from {data.attrs['start']}", legend, columns, rows)
    clusters = _clusters(found)
    rows = [
        (
            one["tokens"],
            list_words(one["words"]),
            f"{quote_word(one['leader'])} {one['share']:.0%}",
            f"{quote_word(one['nearest_start'])} {one['cosine']:.2f}",
        )
        for one in clusters[:MOST_CLUSTERS]
    ]
    columns = ("tokens", "words", "they attend to", "nearest start, cosine")
    print_table(
        f"clusters at t = {float(data['time'].values[-1]):g}", CLUSTERS_LEGEND, columns, rows
    )
    if len(clusters) > MOST_CLUSTERS:
        say(f"and {len(clusters) - MOST_CLUSTERS} more")
    for sentence in _findings_with_options(found):
        say_paragraph(sentence)
    for one in found.verdicts:
        say_paragraph(as_options(str(one), flow))
    if len(found.verdicts) > 1:
        say(f"{count_outcomes(found.verdicts)}.")


def _findings_with_options(found: Any) -> list[str]:
    """Return the findings, with options of the command in place of arguments of Python."""
    from attnlab.models.studies.findings import findings

    return [as_options(sentence, flow) for sentence in findings(found)]


def _place(data: Any) -> str:
    facts = data.attrs
    which = name_heads(facts["layer"], facts["head"] if facts["head"] >= 0 else None)
    return f"{facts['model']}, {which}{' (' + facts['paper'] + ')' if facts['paper'] else ''}"


def _eigenvalue(value: complex) -> str:
    return f"{value.real:.3f}" if value.imag == 0 else f"{value.real:.3f} ± {abs(value.imag):.3f}i"
