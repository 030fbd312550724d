"""The files that the verbs write. Every name is checked before the work starts."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnlab.cli.inputs import SPEC_SUFFIXES
from attnlab.cli.say import say
from attnlab.files import write_text
from attnlab.store import save

MOVIE_SUFFIXES = (".gif", ".mp4")
RUN_SUFFIXES = (".nc", ".csv", ".npz", ".mat")
RESULT_SUFFIXES = (*RUN_SUFFIXES, ".json")
"""Files of numbers: attnlab reads .nc again, the others are for other programs."""
TABLE_SUFFIXES = (".csv", ".parquet")


@dataclass(frozen=True)
class Output:
    """A file to write: the option that names it, its path, and a check that refuses a name that
    cannot work.
    """

    option: str
    path: Path
    check_name: Callable[[Path], None]


def check_outputs(outputs: Sequence[Output], source: Path, is_forced: bool) -> None:
    """Refuse an output that cannot be written, would overwrite the input, or exists (unless
    forced).
    """
    for number, output in enumerate(outputs):
        path = output.path
        if _is_same(path, source):
            raise ValueError(
                f"{output.option} would overwrite the input {path}. Choose another name."
            )
        for other in outputs[:number]:
            if _is_same(path, other.path):
                raise ValueError(
                    f"{other.option} and {output.option} are the same file, {path}. Choose two"
                    " names."
                )
        _check_place(path)
        output.check_name(path)
    for output in outputs:
        if output.path.exists() and not is_forced:
            raise ValueError(
                f"{output.path} exists already. Choose another name, or add --force to replace it."
            )


def check_run_name(path: Path) -> None:
    """Refuse a name that does not end like the name of a run."""
    if path.suffix.lower() != ".nc":
        raise ValueError(
            f"The name of a run must end in .nc, got {path}: use {path.with_suffix('.nc')}."
        )


def check_spec_name(path: Path) -> None:
    """Refuse a name that does not end like the name of a Spec."""
    if path.suffix not in SPEC_SUFFIXES:
        raise ValueError(
            f"The name of a Spec must end in .toml or .json, got {path}: use"
            f" {path.with_suffix('.toml')}."
        )


def check_data_name(path: Path) -> None:
    """Refuse a name that is neither for a run nor for the data of a run in another format."""
    if path.suffix.lower() not in RUN_SUFFIXES:
        raise ValueError(
            f"The name of a run must end in .nc, .csv, .npz or .mat, got {path}: use"
            f" {path.with_suffix('.nc')}."
        )


def check_table_name(path: Path) -> None:
    """Refuse a name that is not the name of a table."""
    if path.suffix.lower() not in TABLE_SUFFIXES:
        raise ValueError(
            f"The name of a table must end in .csv or .parquet, got {path}: use"
            f" {path.with_suffix('.csv')}."
        )


def write_table(path: Path, table: Any) -> None:
    """Write a pandas table as CSV or as Parquet, depending on the name."""
    if path.suffix.lower() == ".csv":
        write_text(path, table.to_csv(index=False))
    else:
        save(table, path)


def rows_of(table: Any) -> list[dict[str, Any]]:
    """Return the rows of a pandas table for JSON; a missing whole number is None."""
    import pandas

    return [
        {name: None if value is pandas.NA else value for name, value in row.items()}
        for row in table.to_dict("records")
    ]


def check_result_name(path: Path) -> None:
    """Refuse a name that is neither for numbers nor for a figure."""
    if path.suffix.lower() not in RESULT_SUFFIXES:
        check_figure_name(path)


def write_result(path: Path, result: Any, draw: Callable[[], Any], err: bool = False) -> None:
    """Save a result, or the figure that `draw` returns, depending on the name, and say so."""
    if path.suffix.lower() in RESULT_SUFFIXES:
        save(result, path)
        say(f"Saved as {path}.", err=err)
    else:
        draw().savefig(path)
        say(f"Figure written to {path}.", err=err)


def check_figure_name(path: Path) -> None:
    """Refuse a name that is not the name of a figure."""
    from attnlab import render

    if is_movie_name(path):  # matplotlib would write a .gif that does not move
        raise ValueError(
            f"{path} is the name of a movie: a figure's name ends in .png, .pdf or .svg."
        )
    if path.suffix.lower() == ".nc":
        raise ValueError(f"{path} is the name of data: a figure's name ends in .png, .pdf or .svg.")
    render.check_figure_name(path)


def check_movie_name(path: Path) -> None:
    """Refuse a name that is not the name of a movie."""
    from attnlab import render

    render.check_movie_name(path)


def is_movie_name(path: Path) -> bool:
    """Whether the name is that of a movie, not of a figure."""
    return path.suffix.lower() in MOVIE_SUFFIXES


def _check_place(path: Path) -> None:
    if path.is_dir():
        raise ValueError(f"{path} is a folder: give the name of a file.")
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is a device or a pipe: give the name of a file.")
    folder = path.parent if not path.is_symlink() else Path(os.path.realpath(path)).parent
    if not folder.is_dir():
        raise ValueError(f"There is no folder {folder}. Create it first.")
    if not os.access(folder, os.W_OK):
        raise ValueError(f"You may not write to the folder {folder}. Choose another one.")


def _is_same(one: Path, other: Path) -> bool:
    """Whether two names mean one file, also through links."""
    if one.exists() and other.exists():
        return one.samefile(other)
    return os.path.realpath(one) == os.path.realpath(other)
