"""Runs, limits and verdicts as xarray Datasets and back: what compute hands to claims and figures,
also by way of the disk.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from attnlab.experiments.record import Data
from attnlab.store import MARKER, dataset_of, run_from
from attnlab.store.document import with_distinct_axes
from attnlab.store.kinds.limit import limit_of, limit_variables
from attnlab.store.kinds.verdict import verdict_columns
from attnlab.types import Dynamics, Limit, Trajectory
from attnlab.verdicts import Verdict

__all__ = [
    "dataset_of", "limit_dataset", "limit_from", "limit_in", "limit_of_run", "rows_where", "run_from",
    "run_in", "select", "table", "table_of_rows", "verdict_dataset",
]  # fmt: skip


def table(columns: Mapping[str, Any], axis: str = "row", **attributes: Any) -> Any:
    """A Dataset of columns of equal length along one axis."""
    import xarray

    return xarray.Dataset(
        {name: (axis, np.asarray(values)) for name, values in columns.items()}, attrs=attributes
    )


def table_of_rows(
    rows: Sequence[Mapping[str, Any]],
    axis: str = "row",
    axes: Mapping[str, Sequence[str]] | None = None,
    **attributes: Any,
) -> Any:
    """A Dataset of rows with the same keys along one axis. axes: for keys whose entries are arrays,
    the names of their axes.
    """
    import xarray

    columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    return xarray.Dataset(
        {name: ((axis, *(axes or {}).get(name, ())), values) for name, values in columns.items()},
        attrs=attributes,
    )


def rows_where(data: Any, **wanted: Any) -> np.ndarray:
    """The mask of the rows of a table in which every named column has the wanted value, or one of
    several.
    """
    return np.asarray(
        np.logical_and.reduce([np.isin(data[name].values, value) for name, value in wanted.items()])
    )


def select(data: Any, **wanted: Any) -> Any:
    """Return the rows of a table in which each column has the wanted value, or one of several."""
    rows, *_ = data[next(iter(wanted))].dims
    return data.isel({rows: rows_where(data, **wanted)})


def limit_dataset(limit: Limit) -> Any:
    """A Limit as a Dataset; the equation is not in it, it is that of the run, and the state is left
    out.
    """
    import xarray

    variables = with_distinct_axes(limit_variables(limit))
    return xarray.Dataset(
        {name: (axes, values, dict(about)) for name, (axes, values, about) in variables.items()},
        attrs={"kind": "limit", "grade": str(limit.grade)},
    )


def limit_from(data: Any, dynamics: Dynamics) -> Limit:
    """The Limit that `limit_dataset` was made of."""
    return limit_of(
        {str(name): variable.values for name, variable in data.variables.items()}, dynamics
    )


def verdict_dataset(verdicts: Mapping[str, Sequence[Verdict]]) -> Any:
    """What the theory says of each run: one row per verdict, {name of the run: its verdicts}."""
    names = [name for name, some in verdicts.items() for _ in some]
    columns = verdict_columns([one for some in verdicts.values() for one in some])
    return table({"run": names, **columns}, "verdict", kind="verdicts")


def run_in(data: Data, name: str = "run") -> Trajectory:
    """The run kept under a name."""
    return run_from(data[name])


def limit_of_run(data: Data, run: Trajectory) -> Limit | None:
    """The Limit that `study` kept beside a run, under the name that belongs to that run; None where
    there is none.
    """
    for name, dataset in data.items():
        kept = "limit" if name == "run" else f"{name}_limit"
        if (
            kept in data
            and MARKER in dataset.attrs
            and np.array_equal(run_from(dataset).states, run.states)
        ):
            return limit_in(data, kept, name)
    return None


def limit_in(data: Data, name: str = "limit", run: str = "run") -> Limit:
    """The Limit kept under a name; its equation is that of the run."""
    return limit_from(data[name], run_from(data[run]).dynamics)
