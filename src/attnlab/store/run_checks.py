"""Checks of a run from a file, which is untrusted input."""

from __future__ import annotations

import numpy as np

from attnlab.analysis import observables
from attnlab.types import Solve, Status, Trajectory

LARGEST_LOG_SCALE = 1e6
"""Logarithms of a scale above this are damage in a file of format 1: no run of attnlab 0.1.0 went
so far.
"""


def check_run(run: Trajectory) -> None:
    """Refuse inconsistent shapes, and numbers that no run has."""
    if run.states.ndim < 3 or run.d != run.dynamics.weights.d:
        raise ValueError(
            "states must have the axes time, token and coordinate, like the weights; got"
            f" {run.states.shape}."
        )
    batch, d, length = run.batch, run.d, len(run.times)
    shapes = {
        "times": (length,),
        "states": (*batch, length, run.n, d),
        "log_scale": (*batch, length),
        "basis": (d, d),
        "growth": (d,),
        "turn": (d,),
    }
    for name, shape in shapes.items():
        array = getattr(run, name)
        if array is not None and (np.shape(array) != shape or np.asarray(array).dtype != float):
            raise ValueError(
                f"{name} must have shape {shape} in double precision, got {np.shape(array)}."
            )
        if (
            array is not None
            and name not in ("states", "log_scale")
            and not np.isfinite(array).all()
        ):
            raise ValueError(f"{name} must be finite.")
    if (
        len({run.basis is None, run.growth is None, run.turn is None}) > 1
        or run.turn is not None
        and run.turn[-1] != 0.0
    ):
        raise ValueError(
            "basis, growth and turn must be there together, and the last entry of turn must be 0."
        )
    _check_solve(run.solve)
    if (
        np.asarray(run.status, dtype=object).shape != batch
        or run.error is not None
        and np.shape(run.error) != batch
    ):
        raise ValueError(f"status and error must have the shape of the batch, {batch}.")
    if (
        run.error is not None and (np.asarray(run.error) < 0).any()
    ):  # NaN: the finer run did not get as far
        raise ValueError(f"error must not be negative, got {np.nanmin(run.error):g}.")
    if (np.diff(run.times) <= 0).any() or length and run.times[0] < 0:
        raise ValueError("times must ascend from 0 or later.")
    is_bad = ~(
        np.isfinite(run.states).all(axis=(-2, -1)) & np.isfinite(run.log_scale)
    )  # (*batch, T)
    is_ended = (
        np.isnan(run.states).all(axis=(-2, -1))
        & (np.asarray(run.status) != Status.OK)[..., None]
        & bool(batch)
    )
    if (is_bad & ~is_ended).any() or (np.diff(is_ended.astype(int), axis=-1) < 0).any():
        raise ValueError(
            "states must be finite, except after the end of a member of a batch that stopped early."
        )


def check_plausible(run: Trajectory) -> None:
    """Refuse numbers that only damage can have put into a run that no checksum protects."""
    if (np.abs(run.log_scale) > LARGEST_LOG_SCALE).any():
        raise ValueError(
            f"log_scale must be at most {LARGEST_LOG_SCALE:g}, got"
            f" {np.nanmax(np.abs(run.log_scale)):.3g}."
        )
    leading, is_ok = (*run.batch, len(run.times)), np.asarray(run.status, dtype=object) == Status.OK
    for name, values in run.observed.items():
        if values.dtype.kind not in "biufc":
            raise ValueError(f"The observable {name} must hold numbers.")
        if (
            name not in observables
        ):  # an observable of the user's own has the shape and the numbers that they gave it
            continue
        if values.shape[: len(leading)] != leading:
            raise ValueError(
                f"The observable {name} must hold numbers for each of the {len(run.times)} times."
            )
        if not np.isfinite(values[is_ok]).all():
            raise ValueError(f"The observable {name} must be finite in a run with status OK.")


def _check_solve(solve: Solve) -> None:
    """Refuse options that no run has. What may be asked for is narrower; older files may go beyond
    it.
    """
    for name, value in (
        (name, getattr(solve, name))
        for name in ("t_end", "rtol", "atol", "dt", "max_steps", "layers")
    ):
        if value is None and name in ("dt", "layers"):
            continue
        kinds = int if name in ("max_steps", "layers") else (int, float)
        if isinstance(value, bool) or not isinstance(value, kinds) or not 0 <= value < np.inf:
            raise ValueError(f"{name} must be a number of at least 0, got {value!r}.")
    if solve.times.ndim != 1 or solve.times.dtype != float or not np.isfinite(solve.times).all():
        raise ValueError("The times that were asked for must be finite numbers along one axis.")
