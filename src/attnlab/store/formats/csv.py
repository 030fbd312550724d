"""A plain table with a header line, which pandas, R, Julia and spreadsheets read. Numbers are
written with all their digits.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np

from attnlab.files import write_text
from attnlab.store.formats import Format, formats
from attnlab.store.packing import Kind

MOST_CELLS = 10_000_000
"""Cells of a table: about 200 MB of text, written in some ten seconds."""

ROWS_AT_ONCE = 10_000


def table_of(thing: Any, kind: Kind, path: Path) -> dict[str, np.ndarray]:
    """Return the columns of a result, all of one length. Raise ValueError if it has no table."""
    if kind.tabulate is None:
        raise ValueError(f"{path}: there is no table of {kind.title}. Save it as a .nc file.")
    columns = {name: np.asarray(values) for name, values in kind.tabulate(thing).items()}
    if not columns:
        raise ValueError(
            f"{path}: this result is empty, and a table needs columns. Save it as a .nc file."
        )
    return columns


def write(thing: Any, kind: Kind, path: Path) -> None:
    """Write the table of a result."""
    columns = table_of(thing, kind, path)
    rows = len(next(iter(columns.values())))
    if rows * len(columns) > MOST_CELLS:
        raise ValueError(
            f"{path}: a table of {rows} rows and {len(columns)} columns is too large for text,"
            f" which may have {MOST_CELLS} cells. Save it as a .nc or .npz file, or keep fewer"
            " times."
        )
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for first in range(0, rows, ROWS_AT_ONCE):
        block = [_cells(values[first : first + ROWS_AT_ONCE]) for values in columns.values()]
        writer.writerows(zip(*block, strict=True))
    write_text(path, text.getvalue())


def _cells(values: np.ndarray) -> list[Any]:
    """Cells as text: a float by its shortest digits that give the same double, NaN and Inf as R and
    pandas know them.
    """
    if values.dtype.kind != "f":
        return values.tolist()
    named = {"nan": "NaN", "inf": "Inf", "-inf": "-Inf"}
    return [named.get(cell := repr(value), cell) for value in values.tolist()]


formats.register("csv")(Format("a table", write))
