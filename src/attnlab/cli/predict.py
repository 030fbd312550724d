"""attnlab predict: print what the theory says, without a simulation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from attnlab.cli import verbs
from attnlab.cli.inputs import is_spec, read_run, read_spec
from attnlab.cli.say import say
from attnlab.cli.theory_words import print_prediction_table, print_predictions, record
from attnlab.run import resolve
from attnlab.theory import theorems

SOURCE = (
    "A Spec (.toml, .json, or the name of an example), or a run (.nc), whose first tokens are used."
)
NAMES = "Only this statement; may be given several times. `attnlab list results` shows all of them."


@verbs.register("predict")
def predict(
    source: Annotated[Path, typer.Argument(metavar="SPEC|RUN", help=SOURCE)],
    names: Annotated[
        list[str] | None, typer.Option("--name", metavar="STATEMENT", help=NAMES)
    ] = None,
    is_long: Annotated[
        bool, typer.Option("--long", help="Also every hypothesis, with the number behind it.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print everything as JSON; of a batch a list of lists.")
    ] = False,
) -> None:
    """Print what the theory says about a Spec, from its weights and first tokens. Nothing is
    simulated.

    Prints one line per statement, applicable statements first. For a batch it prints a table: how
    many members each statement applies to.
    """
    from attnlab.theory.verbs import predictions

    chosen = list(names or theorems)
    if is_spec(source):
        resolved = resolve(read_spec(source))
        dynamics, x0 = resolved.dynamics, resolved.x0
    else:
        run = read_run(source)
        states, log_scale = run.scaled_x()  # later tokens may be beyond double precision
        dynamics, x0 = (
            run.dynamics,
            states[..., 0, :, :] * np.exp(log_scale[..., 0])[..., None, None],
        )
    starts = x0.reshape(-1, *x0.shape[-2:])
    members = [predictions(dynamics, np.array(start), chosen) for start in starts]
    if as_json:
        records = [[record(one) for one in member] for member in members]
        say(json.dumps(records if x0.ndim > 2 else records[0], indent=2, allow_nan=False))
    elif x0.ndim > 2:
        print_prediction_table(source.stem, members)
    else:
        print_predictions(members[0], is_long)
