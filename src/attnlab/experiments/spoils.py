"""Spoils: damages to the data of an experiment, which a claim must notice. Each is a function data
-> data; the data stay whole.

spoils = {
    "rates are half as large": scaled("fits", "slope", 0.5),
    "heads make no difference": constant("cases", ("count", "gap"), 1.0, where={"family":
    "synthetic"}), "starts in another order": shuffled("starts", "points"), "theorems contradicted":
    contradicted, "tokens drift": computed("run", states=lambda run: run["states"] * (1 +
    run["time"])),
    "errors cancel": changed("run", cancel),            # a change of your own, where none of these fits
}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from attnlab.experiments.record import Data

Spoil = Callable[[Data], Data]
Columns = str | Sequence[str]


def changed(name: str, change: Callable[[Any], Any]) -> Spoil:
    """The data with a changed copy of one Dataset; `change` may alter the copy, or return
    another.
    """

    def spoiled(data: Data) -> Data:
        copy = data[name].copy(deep=True)
        return {**data, name: other if (other := change(copy)) is not None else copy}

    return spoiled


def replaced(
    name: str,
    columns: Columns,
    change: Callable[[np.ndarray], Any],
    where: Mapping[str, Any] | None = None,
) -> Spoil:
    """One Dataset with other values in some of its columns: change(values) of each.

    where: only in the rows (entries of the first axis) in which every named column has the wanted
    value, or one of several.
    """

    def alter(dataset: Any) -> None:
        chosen: Any = ...
        for key, wanted in (where or {}).items():
            found = np.isin(dataset[key].values, wanted)
            chosen = found if chosen is ... else chosen & found
        for column in [columns] if isinstance(columns, str) else columns:
            values = dataset[column].values.copy()
            other = np.asarray(change(values[chosen]))
            values = (
                values.astype(np.result_type(values, other)) if other.dtype.kind in "fU" else values
            )
            values[chosen] = other
            dataset[column] = (dataset[column].dims, values)

    return changed(name, alter)


def computed(name: str, **columns: Callable[[Any], Any]) -> Spoil:
    """Return the spoil that gives columns of one Dataset new values, each computed from the Dataset
    as it was.

    The values have the shape of the column, or can be broadcast to it.
    """

    def alter(dataset: Any) -> None:
        found = {column: change(dataset) for column, change in columns.items()}
        for column, values in found.items():
            axes = dataset[column].dims
            aligned = values.transpose(*axes).values if hasattr(values, "dims") else values
            dataset[column] = (axes, np.broadcast_to(aligned, dataset[column].shape).copy())

    return changed(name, alter)


def scaled(
    name: str, columns: Columns, factor: float, where: Mapping[str, Any] | None = None
) -> Spoil:
    """Values times a factor."""
    return replaced(name, columns, lambda values: values * factor, where)


def shifted(
    name: str, columns: Columns, by: float, where: Mapping[str, Any] | None = None
) -> Spoil:
    """Values and a number."""
    return replaced(name, columns, lambda values: values + by, where)


def constant(
    name: str, columns: Columns, value: Any, where: Mapping[str, Any] | None = None
) -> Spoil:
    """One value in all places."""
    return replaced(name, columns, lambda values: np.full(values.shape, value), where)


def shuffled(name: str, columns: Columns, where: Mapping[str, Any] | None = None) -> Spoil:
    """The values of all rows in another order, the same for each column: what depends on the row is
    lost.
    """
    return replaced(
        name, columns, lambda values: np.random.default_rng(0).permutation(values, axis=0), where
    )


def reversed_rows(name: str, columns: Columns, where: Mapping[str, Any] | None = None) -> Spoil:
    """The values in reversed order, along the first axis: what grew now decays."""
    return replaced(name, columns, lambda values: values[::-1], where)


def first_for_all(name: str, columns: Columns, where: Mapping[str, Any] | None = None) -> Spoil:
    """The entry of the first row in all rows: nothing depends on the row any more."""
    return replaced(name, columns, lambda values: np.broadcast_to(values[:1], values.shape), where)


def dropped(name: str, count: int = 1, axis: str | None = None) -> Spoil:
    """A Dataset without its last entries along an axis, its first axis unless another is named."""

    def drop(dataset: Any) -> Any:
        along = axis if axis is not None else next(iter(dataset.sizes))
        return dataset.isel({along: slice(0, max(dataset.sizes[along] - count, 0))})

    return changed(name, drop)


def together(*spoils: Spoil) -> Spoil:
    """Several damages at once."""

    def spoiled(data: Data) -> Data:
        for spoil in spoils:
            data = spoil(data)
        return data

    return spoiled


def contradicted(data: Data) -> Data:
    """The data in which every verdict on the runs is CONTRADICTED."""
    return constant("verdicts", "outcome", "CONTRADICTED")(data)
