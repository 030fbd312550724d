"""The observables of a run. Memory is checked before the run; they are computed after it, so that
Ctrl-C keeps the run.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from attnlab.analysis import observables
from attnlab.analysis.under_way import Measurement
from attnlab.capacity import check_memory
from attnlab.progress import Progress
from attnlab.types import Status, Trajectory

Observable = Callable[[Trajectory], np.ndarray]


def find_observables(
    names: Sequence[str], shape: tuple[int, ...], heads: int
) -> dict[str, Observable]:
    """Return the observables of these names, for first tokens (*batch, n, d). Refuse those that
    need too much memory.
    """
    if isinstance(names, str):
        raise TypeError(
            f"observe must be a list of names, got the single word {names!r}. Use"
            f" observe=[{names!r}]."
        )
    if not names:
        return {}
    found: dict[str, Observable] = {name: observables[name] for name in names}
    pairs = int(np.prod(shape[:-2], dtype=int)) * heads * shape[-2] ** 2
    for name, function in found.items():
        held = getattr(function, "numbers_a_pair", 0)
        what = f"The pairs of {shape[-2]} tokens, for the observable {name},"
        check_memory(what, held * pairs, "Leave it out, or take fewer tokens.")
    return found


def add_observables(
    run: Trajectory, functions: Mapping[str, Observable], progress: Progress
) -> Trajectory:
    """The run with its observables.

    After Ctrl-C it has Status.INTERRUPTED, all its states, and NaN at the times whose observables
    were not computed. A run whose observable leaves the range of double precision ends before that
    time, with Status.NON_FINITE.
    """
    observed: dict[str, np.ndarray] = {}
    for number, (name, function) in enumerate(functions.items()):
        if not _measure(
            name, function, run, observed, progress.piece(number, len(functions), name)
        ):
            return mark_interrupted(
                dataclasses.replace(run, observed=observed), f"the observable {name} was computed"
            )
    return _cut_where_not_finite(dataclasses.replace(run, observed=observed))


def _measure(
    name: str,
    function: Observable,
    run: Trajectory,
    observed: dict[str, np.ndarray],
    progress: Progress,
) -> bool:
    """Put the values of `function` into `observed`. Return whether they are complete; after Ctrl-C
    only some times are done.
    """
    from attnlab.engine.threads import do_unless_interrupted

    measurement = Measurement()
    found: list[np.ndarray] = []

    def work() -> None:
        measure = getattr(function, "measure", None)
        found.append(np.asarray(function(run) if measure is None else measure(run, measurement)))

    def stop() -> None:
        measurement.is_stopped = True

    is_whole = do_unless_interrupted(work, stop, progress, fraction=lambda: measurement.fraction)
    values = found[0] if found else measurement.values
    if values is not None:
        observed[name] = (
            values if is_whole else np.array(values)
        )  # a copy: the work may still be ending
    return is_whole


def is_interrupted(run: Trajectory) -> bool:
    """Whether Ctrl-C stopped some member of the run."""
    return Status.INTERRUPTED in np.ravel(np.asarray(run.status, dtype=object)).tolist()


def mark_interrupted(run: Trajectory, during: str) -> Trajectory:
    """Return the run with Status.INTERRUPTED instead of OK. `during` names the interrupted
    activity: all states exist.
    """
    statuses = np.array(run.status, dtype=object)
    statuses[statuses == Status.OK] = Status.INTERRUPTED
    return dataclasses.replace(
        run,
        status=statuses if run.batch else statuses.item(),
        stats={**run.stats, "interrupted": during},
    )


def _cut_where_not_finite(run: Trajectory) -> Trajectory:
    """Return the run up to the time at which an observable is not finite. A batch holds NaN after
    it.
    """
    batch, count = run.batch, len(run.times)
    good = (
        np.isfinite(run.states).all(axis=(-2, -1)).reshape(-1, count).sum(axis=1)
    )  # (b,) times of each member
    kept, culprit = good.copy(), ""
    for name, values in run.observed.items():
        if values.dtype.kind not in "fc" or values.shape[: len(batch) + 1] != (*batch, count):
            continue
        finite = np.isfinite(values).reshape(len(kept), count, -1).all(axis=2)
        until = np.where(finite.all(axis=1), count, finite.argmin(axis=1))
        if (until < kept).any():
            kept, culprit = np.minimum(kept, until), name
    if not culprit:
        return run
    last, is_late = int(kept.max()), np.arange(count) >= kept[:, None]  # (b, T)

    def cut(values: np.ndarray) -> np.ndarray:
        values = values.reshape(len(kept), count, *values.shape[len(batch) + 1 :])[:, :last]
        values = np.where(
            is_late[:, :last].reshape(len(kept), last, *[1] * (values.ndim - 2)), np.nan, values
        )
        return values.reshape(*batch, last, *values.shape[2:])

    statuses = np.array(run.status, dtype=object).reshape(-1)
    statuses[(kept < good) & (statuses == Status.OK)] = Status.NON_FINITE
    reached = np.where(
        kept < good, np.append(run.times, 0.0)[kept - 1], np.ravel(run.stats["reached"])
    )
    log_scale = run.log_scale.reshape(len(kept), count)[:, :last]
    stats: dict[str, Any] = {
        **run.stats,
        "not_finite": culprit,
        "reached": reached.reshape(batch) if batch else reached.item(),
    }
    return dataclasses.replace(
        run,
        times=run.times[:last],
        states=cut(run.states),
        log_scale=log_scale.reshape(*batch, last),
        stats=stats,
        status=statuses.reshape(batch) if batch else statuses.item(),
        observed={name: cut(values) for name, values in run.observed.items()},
    )
