"""attnlab check: check a run against the theory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from attnlab.cli import verbs
from attnlab.cli.inputs import is_spec, read_run, read_spec
from attnlab.cli.outputs import Output, check_figure_name, check_outputs
from attnlab.cli.predict import NAMES
from attnlab.cli.say import say
from attnlab.cli.summary import has_terminal, is_interrupted, sentence
from attnlab.cli.theory_words import print_verdict_table, print_verdicts, record
from attnlab.run import run_spec
from attnlab.theory import theorems
from attnlab.types import RunInterrupted, Trajectory
from attnlab.verdicts import BatchVerdicts, Outcome

SOURCE = "A run (.nc), or a Spec to simulate first: .toml, .json, or the name of an example."


@verbs.register("check")
def check(
    source: Annotated[Path, typer.Argument(metavar="SPEC|RUN", help=SOURCE)],
    names: Annotated[
        list[str] | None, typer.Option("--name", metavar="STATEMENT", help=NAMES)
    ] = None,
    is_long: Annotated[
        bool, typer.Option("--long", help="Also evidence, hypotheses and details; of each member.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print everything as JSON; of a batch a list of lists.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Also draw it into this file (.png, .pdf, .svg)."),
    ] = None,
    work: Annotated[
        float | None,
        typer.Option(
            metavar="UNITS",
            help=(
                "Evaluations and events after which to stop looking for the limit. Default: 7.5e5."
            ),
        ),
    ] = None,
    budget: Annotated[
        float,
        typer.Option(metavar="SECONDS", help="When to give up looking for the limit of a run."),
    ] = 30.0,
    force: Annotated[bool, typer.Option("--force", help="Replace a figure that exists.")] = False,
) -> None:
    """Check a run against the theory: SUPPORTED, CONTRADICTED, OUT_OF_SCOPE or UNDECIDED, with
    numbers.

    Prints one line per statement. For a batch it prints a table: how many members came to each
    verdict. Exit code 1: a theorem or an estimate is CONTRADICTED, so the data are wrong, or
    attnlab is. A conjecture may be CONTRADICTED: this is a finding, and the exit code is 0.
    """
    if output is not None:
        check_outputs([Output("-o", output, check_figure_name)], source, force)
    from attnlab.theory import check as judge

    for name in names or ():
        theorems[name]  # raises with the nearest name, before the run is simulated
    run = _of_spec(source, has_terminal() and not as_json) if is_spec(source) else read_run(source)
    if not is_spec(source) and not run.is_ok:
        say(sentence(run), err=True)
    options = {} if work is None else {"work": work}
    found = judge(
        run, names=names or None, budget=budget, progress=has_terminal() and not as_json, **options
    )
    members = list(found) if isinstance(found, BatchVerdicts) else [found]
    if as_json:
        records = [[record(one) for one in member] for member in members]
        say(json.dumps(records if run.batch else records[0], indent=2, allow_nan=False))
    elif not run.batch:
        print_verdicts(members[0], is_long, check)
    else:
        print_verdict_table(source.stem, members, check)
        for number, member in enumerate(members if is_long else ()):
            say(f"\nMember {number}\n")
            print_verdicts(member, is_long, check)
    if output is not None:
        from attnlab.render import plot

        plot(members[0]).savefig(output)
        say(f"Figure written to {output}.", err=as_json)
    if any(
        one.outcome is Outcome.CONTRADICTED and one.kind != "conjecture"
        for member in members
        for one in member
    ):
        raise typer.Exit(1)


def _of_spec(source: Path, is_shown: bool) -> Trajectory:
    """Return the run of a Spec. If it ends early, say so: the part that exists is judged."""
    run = run_spec(read_spec(source), progress=is_shown, throw=False)
    if is_interrupted(run):
        raise RunInterrupted(sentence(run), run)
    if not run.is_ok:
        say(sentence(run), err=True)
    return run
