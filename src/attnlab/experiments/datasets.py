"""Runs, limits and verdicts as xarray Datasets and back: what compute hands to claims and figures, also by way of the disk."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from attnlab.experiments.record import Data
from attnlab.store import dataset_of, run_from
from attnlab.types import Dynamics, Event, Limit, Trajectory
from attnlab.verdicts import Verdict

__all__ = [
    "changed", "contradicted", "dataset_of", "limit_dataset", "limit_from", "limit_in", "rows_where", "run_from", "run_in",
    "table", "verdict_dataset", "verdicts_said",
]  # fmt: skip


def table(columns: Mapping[str, Any], axis: str = "row", **attributes: Any) -> Any:
    """A Dataset of columns of equal length along one axis."""
    import xarray

    return xarray.Dataset({name: (axis, np.asarray(values)) for name, values in columns.items()}, attrs=attributes)


def rows_where(data: Any, **wanted: Any) -> np.ndarray:
    """The mask of the rows of a table in which every named column has the wanted value, or one of several."""
    return np.asarray(np.logical_and.reduce([np.isin(data[name].values, value) for name, value in wanted.items()]))


def limit_dataset(limit: Limit) -> Any:
    """A Limit as a Dataset; the equation is not in it, it is that of the run."""
    import xarray

    variables: dict[str, Any] = {
        "x0": (("token", "coordinate"), limit.x0), "labels": ("token", limit.labels), "leaders": ("token", limit.leaders),
        "basis": (("coordinate", "in_F"), limit.basis), "points": (("token", "in_F"), limit.points),
    }
    if limit.places is not None:
        variables["places"] = (("token", "coordinate"), limit.places)
    if len(limit.times):
        variables["z"] = (("time", "token", "coordinate"), limit.z)
        variables["path"] = (("time", "token", "in_F"), limit.path)
        variables["time"] = ("time", limit.times)
    events = np.array([(event.t, event.token, event.before, event.after) for event in limit.events], float).reshape(-1, 4)
    variables["events"] = (("event", "event_entry"), events)
    words = {name: getattr(limit, name) for name in ("error", "grade", "reason", "certificate", "t", "digits")}
    return xarray.Dataset(variables, attrs={**words, "kind": "limit"})


def limit_from(data: Any, dynamics: Dynamics) -> Limit:
    """The Limit that `limit_dataset` was made of."""
    arrays = {str(name): variable.values for name, variable in data.variables.items()}
    events = tuple(Event(float(t), int(i), int(a), int(b)) for t, i, a, b in arrays["events"])
    n, d = arrays["x0"].shape
    past: dict[str, Any] = {"times": arrays["time"], "z": arrays["z"], "path": arrays["path"]} if "z" in arrays else {}
    kinds = {"error": float, "grade": str, "reason": str, "certificate": str, "t": float, "digits": int}
    words: dict[str, Any] = {name: kind(data.attrs[name]) for name, kind in kinds.items()}
    kept: dict[str, Any] = {name: arrays[name].reshape(shape) for name, shape in
            (("x0", (n, d)), ("labels", (n,)), ("leaders", (n,)), ("basis", (d, -1)), ("points", (n, -1)))}
    return Limit(dynamics=dynamics, **kept, **words, events=events, places=arrays.get("places"), **past)


def verdict_dataset(verdicts: Mapping[str, Sequence[Verdict]]) -> Any:
    """What the theory says of each run: a row a verdict, {name of the run: its verdicts}."""
    rows = [(name, one) for name, some in verdicts.items() for one in some]
    columns: dict[str, Any] = {"run": [name for name, _ in rows]}
    columns |= {word: [str(getattr(one, word)) for _, one in rows] for word in ("theorem", "kind", "evidence", "unmet")}
    columns["outcome"] = [one.outcome.name for _, one in rows]
    columns |= {word: [float(getattr(one, word)) for _, one in rows] for word in ("measured", "bound", "resolution", "error")}
    return table(columns, "verdict", kind="verdicts")


def verdicts_said(data: Any, theorem: str, run: str | None = None) -> list[str]:
    """The outcomes of a theorem in a Dataset of verdicts, for one run or for all."""
    chosen = (data["theorem"].values == theorem) & ((data["run"].values == run) if run is not None else True)
    return [str(name) for name in data["outcome"].values[chosen]]


def changed(name: str, change: Callable[[Any], Any]) -> Callable[[Data], Data]:
    """A spoil: the data with a changed copy of one Dataset; `change` may alter the copy, or return another."""

    def spoiled(data: Data) -> Data:
        copy = data[name].copy(deep=True)
        return {**data, name: (other if (other := change(copy)) is not None else copy)}

    return spoiled


def contradicted(data: Data) -> Data:
    """A spoil: every verdict on the runs is CONTRADICTED."""

    def change(verdicts: Any) -> None:
        verdicts["outcome"] = ("verdict", np.array(["CONTRADICTED"] * verdicts.sizes["verdict"]))

    return changed("verdicts", change)(data)


def run_in(data: Data, name: str = "run") -> Trajectory:
    """The run kept under a name."""
    return run_from(data[name])


def limit_in(data: Data, name: str = "limit", run: str = "run") -> Limit:
    """The Limit kept under a name; its equation is that of the run."""
    return limit_from(data[name], run_from(data[run]).dynamics)
