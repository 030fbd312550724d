"""attnlab sweep: many runs from one file."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attnlab.cli import verbs
from attnlab.cli.outputs import Output, check_figure_name, check_outputs
from attnlab.cli.say import say
from attnlab.displayed import count_words

if TYPE_CHECKING:
    from attnlab.sweep.definition import Sweep
    from attnlab.sweep.run import Plan
    from attnlab.sweep.runner import Estimate, Tally

SHOWN = 3
"""The most failed cells whose sentences are printed."""


@verbs.register("sweep")
def sweep(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE.toml", help="The sweep: a base Spec, axes over its keys, numbers."
        ),
    ],
    small: Annotated[
        bool,
        typer.Option(
            "--small", help="The small version, with the values under `small` in the file."
        ),
    ] = False,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers",
            metavar="N",
            help="Processes on this machine. Default: one per core. 0: this process alone.",
        ),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="Compute on a Dask cluster: tcp://HOST:PORT, or the word local."
        ),
    ] = None,
    retry: Annotated[
        str | None,
        typer.Option(
            metavar="STATUS",
            help="Compute failed cells again: the word failed, or one status such as max_steps.",
        ),
    ] = None,
    prune: Annotated[
        bool, typer.Option("--prune", help="Remove the rows of cells that FILE.toml no longer has.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Confirm that more than a million cells are wanted.")
    ] = False,
    export: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="TABLE",
            help=(
                "Also write the results into this file (.csv, .parquet, .nc). May be given several"
                " times."
            ),
        ),
    ] = None,
    plot: Annotated[
        str | None,
        typer.Option(
            metavar="X,Y",
            help="Also draw these columns: an axis and a number, or two axes and a number.",
        ),
    ] = None,
    refine: Annotated[
        str | None,
        typer.Option(
            metavar="LEVEL",
            help=(
                "Compute only cells near where the number of --plot crosses LEVEL (a number), or"
                " changes (the word "
                "change)."
            ),
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FIGURE",
            help="Where --plot draws (.png, .pdf, .svg). Default: FILE.png.",
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace tables and figures that exist.")
    ] = False,
) -> None:
    """Compute every cell of a sweep that has no result yet, and keep one row per cell in
    FILE.sqlite.

    You may interrupt it at any time; the same command continues. Exit code 1: a cell failed.
    """
    from attnlab.sweep.definition import Sweep

    asked = Sweep.load(file)
    columns = None if plot is None else [name.strip() for name in plot.split(",")]
    if output is not None and columns is None:
        raise ValueError("-o names the figure of --plot. Give --plot X,Y too.")
    figure = None if columns is None else output or file.with_suffix(".png")
    _check_outputs(asked, file, export or [], columns, figure, force)
    source = asked.reduced() if small else asked
    options: dict[str, Any] = {
        "retry": retry or (),
        "workers": workers,
        "client": scheduler,
        "yes": yes,
    }
    if refine is not None:
        if prune:
            raise ValueError(
                "--prune and --refine cannot be combined. Run --prune first, on its own."
            )
        is_ok = _compute_changes(source, columns, refine, **options)
    else:
        tally = _compute(asked, small, prune=prune, **options)
        _report(source, tally)
        is_ok = tally.is_ok
    for table in export or []:
        from attnlab.sweep.table import export as write_table

        write_table(asked, table, small=small)
        say(f"Saved as {table}.")
    if columns is not None and figure is not None:
        from attnlab.sweep.drawing import plot as draw

        draw(asked, *columns, small=small).savefig(figure)
        say(f"Figure written to {figure}.")
    if not is_ok:
        raise typer.Exit(1)


def _check_outputs(
    asked: Sweep,
    file: Path,
    tables: list[Path],
    columns: list[str] | None,
    figure: Path | None,
    force: bool,
) -> None:
    """Refuse impossible tables, columns and figures before anything is computed."""
    from attnlab.sweep.table import check_export_name

    outputs = [
        Output("--export", table, lambda path: (check_export_name(path), None)[1])
        for table in tables
    ]
    if figure is not None:
        outputs.append(Output("-o", figure, check_figure_name))
    check_outputs(outputs, file, force)
    if columns is not None:
        from attnlab.sweep.drawing import check_columns

        check_columns(asked, columns)


def _compute_changes(source: Sweep, columns: list[str] | None, level: str, **options: Any) -> bool:
    """Compute the cells near where the number of the figure changes, and return whether none of
    them failed.
    """
    from attnlab.sweep.refine import check_refinement
    from attnlab.sweep.refine import refine as refine_sweep

    if columns is None:
        raise ValueError("--refine needs the number of --plot X,Y,NUMBER. Give --plot too.")
    check_refinement(source, columns)
    try:
        number = None if level == "change" else float(level)
    except ValueError:
        raise ValueError(f"--refine must be a number or the word change, got {level!r}.") from None
    with _explain_interrupt(source):
        found = refine_sweep(source, *columns, level=number, progress=True, **options)
    say(
        f"{found.cells:,} of {found.total:,} cells show where {columns[-1]} changes, in"
        f" {found.rounds} rounds: {source.rows_path}."
    )
    if found.failed:
        say(
            f"{count_words(found.failed, 'cell')} failed; the column error says why. --retry failed"
            " computes them again.",
            err=True,
        )
    return not found.failed


@contextlib.contextmanager
def _explain_interrupt(asked: Sweep) -> Iterator[None]:
    """A context in which Ctrl-C and SIGTERM print where the rows are and how to continue."""
    try:
        with _terminable():
            yield
    except KeyboardInterrupt:
        say(
            f"Interrupted. Finished cells are in {asked.rows_path}; the same command continues from"
            " there.",
            err=True,
        )
        raise typer.Exit(130) from None
    except _Terminated:
        say(
            f"Terminated. Finished cells are in {asked.rows_path}; the same command continues from"
            " there.",
            err=True,
        )
        raise typer.Exit(143) from None


def _compute(asked: Sweep, small: bool, **options: Any) -> Tally:
    """Run the sweep."""
    from attnlab.sweep.run import run_sweep

    def look(plan: Plan) -> None:
        _say_plan(asked, plan, options["prune"])

    with _explain_interrupt(asked):
        tally = run_sweep(
            asked, small=small, progress=True, announce=_say_estimate, look=look, **options
        )
    return tally


class _Terminated(BaseException):
    """SIGTERM as an exception, so that workers end and the terminal is restored."""


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    """A context in which SIGTERM raises _Terminated."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(*_: Any) -> None:
        signal.signal(
            signal.SIGTERM, signal.SIG_IGN
        )  # once: a second signal must not interrupt the cleaning up
        raise _Terminated

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _say_plan(asked: Sweep, plan: Plan, is_pruned: bool) -> None:
    """Say how many cells have results already, and which rows belong to no cell."""
    from attnlab.sweep.check import describe_cell

    total = len(plan.pending) + plan.kept
    kept = (
        f", {plan.kept:,} of them {_be(plan.kept)} in {asked.rows_path} already"
        if plan.kept
        else ""
    )
    say(f"{count_words(total, 'cell')}{kept}.")
    if plan.outdated:
        say(
            f"{count_words(plan.outdated, 'cell')} {_be(plan.outdated)} computed again, because the"
            " table [numbers] has changed."
        )
    if plan.others:
        some = "; ".join(describe_cell(dict(row.axes)) for row in plan.named)
        dots = "; ..." if plan.others > len(plan.named) else ""
        done = "Removed" if is_pruned else "Kept; --prune removes them"
        say(
            f"{count_words(plan.others, 'row')} of cells that {asked.path} does not have:"
            f" {some}{dots}. {done}."
        )


def _say_estimate(estimate: Estimate) -> None:
    """Say how many cells are left and how long they take."""
    say(
        f"{count_words(estimate.cells, 'cell')} {_be(estimate.cells)} left, at most about"
        f" {_in_words(estimate.seconds)} on {count_words(estimate.workers, 'worker')}: three timed"
        f" cells took {estimate.seconds_per_cell:.2g} s each, and batches of cells take less."
    )


def _be(count: int) -> str:
    return "is" if count == 1 else "are"


def _report(source: Sweep, tally: Tally) -> None:
    """Print how many cells were computed, kept and failed, with the sentences of some failed
    cells.
    """
    from attnlab.sweep.check import describe_cell

    failed = tally.failed + tally.kept_failed
    words = f", {failed:,} failed" if failed else ""
    say(
        f"{count_words(tally.computed, 'cell')} computed in {_in_words(tally.seconds)},"
        f" {tally.kept:,} kept{words}: {source.rows_path}."
    )
    if failed:
        for row in tally.failures[:SHOWN]:
            say(f"{describe_cell(dict(row.axes))}: {row.status}. {row.error}", err=True)
        if failed > SHOWN:
            say(f"... and {failed - SHOWN:,} more; the column error says why.", err=True)
        say("--retry failed computes them again.", err=True)


def _in_words(seconds: float) -> str:
    """Format a duration: 12 s, 3 min, 5 h, 2 days."""
    for size, name in ((86400.0, "days"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.2g} {name}"
    return f"{seconds:.2g} s"
