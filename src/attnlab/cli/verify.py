"""attnlab verify: check a saved certificate again."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from attnlab.cli import verbs
from attnlab.cli.say import as_options, say
from attnlab.cli.summary import has_terminal, print_table
from attnlab.store.plain import plain_value
from attnlab.verification import verify as verify_file

LEGEND = (
    "One row per member, counted from 0: certificate, whether it holds; way, how the limit was"
    " certified; reason, what was found."
)
WORDS = {True: "holds", False: "does not hold", None: "not verified"}


@verbs.register("verify")
def verify(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="LIMIT", help="A file that `attnlab limit -o limit.nc` or al.save wrote."
        ),
    ],
    again: Annotated[
        bool,
        typer.Option(
            "--again", help="Also compute the limit again from its first tokens, and compare."
        ),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print everything as JSON; of a batch a list.")
    ] = False,
    member: Annotated[
        int | None, typer.Option(help="Which member of a batch is printed in full.")
    ] = None,
    work: Annotated[
        float | None,
        typer.Option(
            metavar="UNITS",
            help="With --again: evaluations and events after which to stop. Default: 1.5e6.",
        ),
    ] = None,
    budget: Annotated[
        float, typer.Option(metavar="SECONDS", help="With --again: when to give up.")
    ] = 60.0,
) -> None:
    """Check whether a saved certificate follows from the state saved with it. Prints what was
    checked and what was not.

    Exit code 0: the certificate holds, for every member of a batch. Exit code 1: it does not hold,
    the limit is undecided, or the file holds no state.
    """
    found = verify_file(
        source, again=again, work=work, budget=budget, progress=has_terminal() and not as_json
    )
    members = found if isinstance(found, list) else [found]
    if member is not None and not 0 <= member < len(members):
        raise ValueError(
            f"--member must be the number of a member, 0 to {len(members) - 1}, got {member}."
        )
    if as_json:
        records = [plain_value(one) for one in members]
        say(
            json.dumps(
                records if isinstance(found, list) else records[0], indent=2, allow_nan=False
            )
        )
    elif not isinstance(found, list) or member is not None:
        say(as_options(str(members[member or 0]), verify))
    else:
        print_table(
            source.stem,
            LEGEND,
            ("member", "certificate", "way", "reason"),
            [
                (number, WORDS[one.holds], one.way or None, one.reason)
                for number, one in enumerate(members)
            ],
        )
        counts = Counter(one.holds for one in members)
        plural = {True: "hold", False: "do not hold", None: "not verified"}
        found_words = {
            holds: (WORDS if counts[holds] == 1 else plural)[holds]
            for holds in WORDS
            if counts[holds]
        }
        words = ", ".join(f"{counts[holds]} {word}" for holds, word in found_words.items())
        say(f"{len(members)} certificates: {words}.")
    if not all(one.holds for one in members):
        raise typer.Exit(1)
