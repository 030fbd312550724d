"""The results of a sweep as a table: a pandas DataFrame with one row per cell, or an xarray Dataset
with labelled axes.

al.sweep.load("phase.toml")                     columns: one per key of the axes, one per number, then the status
al.sweep.load("phase.toml", as_="xarray")       one array per number over the axes; "share@0.5", "share@1.0" are over t
al.sweep.export("phase.toml", "phase.csv")      .csv, .parquet or .nc
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from attnlab.checks import MissingLibrary
from attnlab.files import write_bytes, write_text
from attnlab.netcdf import dataset_bytes
from attnlab.registry import unknown_name
from attnlab.sweep.definition import Sweep
from attnlab.sweep.grid import canonical_text, split_name
from attnlab.sweep.rows import Row, Rows

if TYPE_CHECKING:
    import numpy
    import pandas
    import xarray

FORMS = ("pandas", "xarray")
SUFFIXES = (".csv", ".parquet", ".nc")
AFTER = ("status", "error", "seconds", "seed", "digest")
"""The columns after axes and numbers."""

WORDS = ("status", "error", "digest")
"""Those of them that are words."""

TIME = "t"
"""The dimension of numbers that are kept at several times, "share@0.5"."""

Source = str | os.PathLike[str] | Sweep
"""A sweep: its .toml file, its .sqlite file, or a Sweep."""


@dataclass(frozen=True)
class Results:
    """The rows of a sweep with their axes {name: values}; a name may have several keys.

    sweep is None if there is only the database: then the axes are those of the rows, in ascending
    order.
    """

    rows: Sequence[Row]
    axes: Mapping[str, Sequence[Any]]
    numbers: Sequence[str]
    sweep: Sweep | None
    path: Path

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of the axes."""
        return tuple(key for name in self.axes for key in split_name(name))


@overload
def load(
    source: Source, as_: Literal["pandas"] = "pandas", *, small: bool = False
) -> pandas.DataFrame: ...
@overload
def load(source: Source, as_: Literal["xarray"], *, small: bool = False) -> xarray.Dataset: ...
@overload
def load(source: Source, as_: str, *, small: bool = False) -> pandas.DataFrame | xarray.Dataset: ...
def load(
    source: Source, as_: str = "pandas", *, small: bool = False
) -> pandas.DataFrame | xarray.Dataset:
    """Return the results of a sweep as a pandas DataFrame or as an xarray Dataset.

    Rows are in the order of the grid. Cells that are not computed yet are missing from the
    DataFrame, and NaN in the Dataset. Rows of cells that the sweep no longer has, or that were
    computed for other numbers, are left out.

    Parameters
    ----------
    source : str, path or Sweep
        The .toml or .sqlite file of the sweep, or the Sweep.
    as_ : str, optional
        "pandas" or "xarray". The DataFrame has one column per axis, named by its key, and one per
        number, then status, error, seconds, seed and digest.
    small : bool, optional
        Whether to read the small version of the sweep.

    Returns
    -------
    pandas.DataFrame or xarray.Dataset
        The results.

    Examples
    --------
    `sweep` has run with two values of dynamics.beta and four seeds.

    >>> import attnlab as al
    >>> al.sweep.load(sweep).shape[0]
    8
    >>> al.sweep.load(sweep, "xarray")["spread"].shape
    (2, 4)
    """
    if as_ not in FORMS:
        raise unknown_name("form of a table", as_, FORMS)
    results = read_results(source, small=small)
    return as_frame(results) if as_ == "pandas" else as_dataset(results)


def export(source: Source, path: str | os.PathLike[str], *, small: bool = False) -> Path:
    """Write the results of a sweep to a file. The file is replaced completely or not at all.

    Parameters
    ----------
    source : str, path or Sweep
        The .toml or .sqlite file of the sweep, or the Sweep.
    path : str or path
        The name of a .csv, .parquet or .nc file.
    small : bool, optional
        Whether to take the small version of the sweep.

    Returns
    -------
    Path
        The path of the file.

    Examples
    --------
    >>> import attnlab as al
    >>> al.sweep.export(sweep, "phase.csv").name
    'phase.csv'
    """
    target = check_export_name(path)
    results = read_results(source, small=small)
    if target.suffix.lower() == ".csv":
        write_text(target, as_frame(results, plain=True).to_csv(index=False, lineterminator="\n"))
    elif target.suffix.lower() == ".parquet":
        content = io.BytesIO()
        as_frame(results, plain=True).to_parquet(content, index=False, engine="pyarrow")
        write_bytes(target, content.getbuffer())
    else:
        write_bytes(target, dataset_bytes(as_dataset(results)))
    return target


def check_export_name(path: str | os.PathLike[str]) -> Path:
    """Return the path of a table. Refuse an unknown suffix, or one whose library is missing."""
    target = Path(path)
    suffix = target.suffix.lower()
    if suffix not in SUFFIXES:
        raise ValueError(
            f"The name of a table must end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}, got"
            f" {target.name!r}."
        )
    if suffix == ".parquet":
        try:
            import pyarrow  # noqa: F401
        except ImportError as problem:
            raise MissingLibrary(
                "A .parquet file needs pyarrow, which is not installed: pip install pyarrow. "
                "A .csv or .nc file needs no other library."
            ) from problem
    return target


def read_results(source: Source, *, small: bool = False) -> Results:
    """Return the rows of a sweep in the order of its grid."""
    if isinstance(source, Sweep):
        return _results_of_sweep(source.reduced() if small else source)
    if Path(source).suffix == ".sqlite":
        if small:
            raise ValueError(
                "small needs the file of the sweep, which defines its small version. Give the .toml"
                " file."
            )
        return _results_of_rows(Path(source))
    sweep = Sweep.load(source)
    return _results_of_sweep(sweep.reduced() if small else sweep)


def _results_of_sweep(sweep: Sweep) -> Results:
    """Return the rows of the cells of a sweep that were computed for its numbers."""
    database = Rows(sweep.rows_path)
    found = {row.digest: row for row in database.read() if row.measured == sweep.measured}
    _check_any(found.values(), sweep.rows_path)
    rows = []
    for cell in sweep.grid:
        row = found.get(sweep.digest_of(cell))
        if row is not None:
            rows.append(
                Row(**{**vars(row), "axes": cell})
            )  # 5 and 5.0 are one Spec: the file of the sweep decides
    if not rows:
        raise ValueError(
            f"{sweep.rows_path} has {len(found)} rows, but none of a cell of {sweep.path}, which"
            " has changed since. Run the sweep again."
        )
    return Results(rows, sweep.grid.axes, tuple(sweep.numbers), sweep, sweep.rows_path)


def _results_of_rows(path: Path) -> Results:
    """Return all rows of a database. Rows for different tables of numbers keep their own
    numbers.
    """
    rows = list(Rows(path).read())
    _check_any(rows, path)
    keys = list(dict.fromkeys(key for row in rows for key in row.axes))
    numbers = list(dict.fromkeys(name for row in rows for name in row.numbers))
    noted = json.loads(Rows(path).meta().get("numbers", "[]"))
    numbers = [
        name for name in noted if name in numbers or all(not row.numbers for row in rows)
    ] + [name for name in numbers if name not in noted]
    axes = {key: _sort_values([row.axes[key] for row in rows if key in row.axes]) for key in keys}
    place = {
        key: {canonical_text(value): number for number, value in enumerate(values)}
        for key, values in axes.items()
    }
    rows.sort(
        key=lambda row: [place[key].get(canonical_text(row.axes.get(key)), -1) for key in keys]
    )
    return Results(rows, axes, numbers, None, path)


def _check_any(rows: Iterable[Row], path: Path) -> None:
    if not any(True for _ in rows):
        raise ValueError(f"{path} has no rows for these numbers yet. Run the sweep first.")


def _sort_values(values: Sequence[Any]) -> list[Any]:
    """Return the different values: numbers ascending, others in the order of their texts."""
    known = {canonical_text(value): value for value in values}
    if all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in known.values()
    ):
        return sorted(known.values())
    return [known[text] for text in sorted(known)]


def as_frame(results: Results, plain: bool = False) -> pandas.DataFrame:
    """Return the results as a pandas DataFrame. plain: lists and tables of axes as JSON text, for
    files.
    """
    import pandas

    columns: dict[str, Any] = {}
    for key in results.keys:
        values = [row.axes.get(key) for row in results.rows]
        columns[key] = [_as_text(value) for value in values] if plain else values
    for name in results.numbers:
        columns[_free(name, results.keys)] = _number_column(results.rows, name)
    for name in AFTER:
        values = [getattr(row, name) for row in results.rows]
        columns[_free(name, [*results.keys, *results.numbers])] = (
            values
            if name != "seconds"
            else [float("nan") if value is None else value for value in values]
        )
    return pandas.DataFrame({name: _series(pandas, values) for name, values in columns.items()})


def as_dataset(results: Results) -> xarray.Dataset:
    """Return the results as an xarray Dataset over the axes, numbers at several times also over t.
    Missing cells: NaN or "".
    """
    import numpy as np
    import xarray

    names = list(results.axes)
    place = {
        name: {canonical_text(value): number for number, value in enumerate(values)}
        for name, values in results.axes.items()
    }
    shape = tuple(len(values) for values in results.axes.values())
    indices = tuple(
        np.array(column)
        for column in zip(
            *(
                [place[name][canonical_text(_axis_value(row, name))] for name in names]
                for row in results.rows
            ),
            strict=True,
        )
    )
    coordinates: dict[str, Any] = {}
    for name, values in results.axes.items():
        for number, key in enumerate(keys := split_name(name)):
            column = [value[number] for value in values] if len(keys) > 1 else list(values)
            coordinates[key] = (name, np.array([_as_text(value) for value in column]))
    arrays: dict[str, Any] = {}
    groups = time_groups(results.numbers)
    dimensions = _time_dimensions(groups)
    for name, times in groups.items():
        columns = [f"{name}@{time!r}" for time in times] or [name]
        filled = [
            _fill(np, shape, indices, _number_column(results.rows, column)) for column in columns
        ]
        if times:
            coordinates[dimensions[name]] = (dimensions[name], np.array(times))
            arrays[name] = ([*names, dimensions[name]], np.stack(filled, axis=-1))
        else:
            arrays[name] = (names, filled[0])
    for name in AFTER:
        values = [getattr(row, name) for row in results.rows]
        arrays[_free(name, [*arrays, *coordinates])] = (
            names,
            _fill(np, shape, indices, values, name in WORDS),
        )
    return xarray.Dataset(arrays, coordinates, attrs={"sweep": results.path.stem})


def time_groups(numbers: Iterable[str]) -> dict[str, list[float]]:
    """Return {name: times, ascending}: "share@0.5" and "share@1.0" are share at two times; others
    have no times.
    """
    groups: dict[str, list[float]] = {}
    for number in numbers:
        name, mark, time = number.rpartition("@")
        if mark:
            groups.setdefault(name, []).append(float(time))
        else:
            groups.setdefault(number, [])
    return {name: sorted(times) for name, times in groups.items()}


def _time_dimensions(groups: Mapping[str, Sequence[float]]) -> dict[str, str]:
    """Return {number: dimension} of the numbers with times: t, or t_name if another number has
    other times.
    """
    first = next((tuple(times) for times in groups.values() if times), ())
    return {
        name: TIME if tuple(times) == first else f"{TIME}_{name}"
        for name, times in groups.items()
        if times
    }


def _axis_value(row: Row, name: str) -> Any:
    keys = split_name(name)
    return [row.axes[key] for key in keys] if len(keys) > 1 else row.axes[keys[0]]


def _number_column(rows: Sequence[Row], name: str) -> list[Any]:
    """Return a number of all rows: floats with NaN for missing values, or words with None."""
    values = [row.numbers.get(name) for row in rows]
    if any(isinstance(value, str) for value in values):
        return [None if value is None else str(value) for value in values]
    return [float("nan") if value is None else value for value in values]


def _fill(
    np: Any,
    shape: tuple[int, ...],
    indices: tuple[Any, ...],
    values: Sequence[Any],
    has_words: bool = False,
) -> numpy.ndarray:
    """Return an array over the axes, with NaN (or "" for words) for missing rows and values."""
    if has_words or any(isinstance(value, str) for value in values):
        array = np.full(shape, "", dtype=object)
        array[indices] = np.array(
            ["" if value is None else value for value in values], dtype=object
        )
        return array.astype(str)
    array = np.full(shape, np.nan)
    array[indices] = [np.nan if value is None else float(value) for value in values]
    return array


def _series(pandas: Any, values: list[Any]) -> pandas.Series:
    return (
        pandas.Series(values, dtype=object)
        if any(isinstance(value, str | list | dict) or value is None for value in values)
        else pandas.Series(values)
    )


def _as_text(value: Any) -> Any:
    return canonical_text(value) if isinstance(value, list | dict) else value


def _free(name: str, taken: Iterable[str]) -> str:
    """Return the name of a column: number.NAME if an axis or a later column has the name
    already.
    """
    return f"number.{name}" if name in taken else name
