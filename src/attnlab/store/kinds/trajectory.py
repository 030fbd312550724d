"""A run: the states in the frame they were integrated in, the weights, and everything else as
words.

The file has x and z for other programs. They are derived, so `load` verifies their bits and then
derives them again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab.netcdf import Variable, checksum
from attnlab.registry import unknown_name
from attnlab.store.document import CHECKSUM, FIRST_WITH_CHECKSUM, MARKER, versions
from attnlab.store.equations import (
    EQUATION_ARRAYS,
    equation_from,
    equation_variables,
    equation_words,
    read_table,
)
from attnlab.store.packing import Arrays, Kind, Labelled, Packed, Words, kinds
from attnlab.store.run_checks import check_run
from attnlab.types import FRAMES, STEPPERS, Dynamics, Solve, Spec, Status, Trajectory, Weights

if TYPE_CHECKING:
    import xarray

OBSERVED = "observed_"
WORDS = ("dynamics", "solve", "source", "frame", "spec", "digest", "stats")
SOLVE_WORDS = tuple(field.name for field in fields(Solve) if field.name not in ("times", "rng"))
ARRAYS = (
    "time",
    "states",
    "log_scale",
    "status",
    "error",
    *EQUATION_ARRAYS,
    "basis",
    "growth",
    "turn",
    "asked_times",
)

MOST_VIEWED = 5_000_000
"""x and z are put into the file up to this many numbers, 40 MB each."""

MOST_EXPONENTIAL = 64
"""If each time needs a matrix exponential, they are put there up to this dimension. Beyond, saving
would take seconds.
"""

ABOUT = {
    "time": {"long_name": "time t", "units": "1"},
    "states": {
        "long_name": "tokens in the form in which they were integrated, see the attribute frame",
        "units": "1",
    },
    "log_scale": {
        "long_name": "logarithm of the scale that was taken out of the states",
        "units": "1",
    },
    "status": {"long_name": "how the run ended"},
    "error": {"long_name": "measured error, relative to the largest token", "units": "1"},
    "basis": {
        "long_name": "columns: real eigenbasis of the sum of the V, in which the states are given"
    },
    "growth": {"long_name": "real parts of the eigenvalues", "units": "1"},
    "turn": {
        "long_name": "imaginary parts, at the first of the two coordinates of a pair",
        "units": "1",
    },
    "asked_times": {"long_name": "times that were asked for", "units": "1"},
    "x": {"long_name": "tokens x(t)", "units": "1"},
    "z": {"long_name": "rescaled tokens z(t) = exp(-t V) x(t), V summed over heads", "units": "1"},
}


def pack(run: Trajectory) -> Packed:
    """Everything in a run, as arrays and words."""
    batch = batch_axes(run)
    found: dict[str, tuple[tuple[str, ...], Any]] = {"time": (("time",), run.times)}
    found["states"] = ((*batch, "time", "token", "coordinate"), run.states)
    found["log_scale"] = ((*batch, "time"), run.log_scale)
    found["status"] = (batch, _status_names(run))
    if run.error is not None:
        found["error"] = (batch, np.asarray(run.error, dtype=float))
    if run.basis is not None:
        found["basis"] = (("row", "coordinate"), run.basis)
        found["growth"], found["turn"] = (("coordinate",), run.growth), (("coordinate",), run.turn)
    found["asked_times"] = (("asked",), run.solve.times)
    variables = {
        name: Variable(axes, np.asarray(array), ABOUT[name])
        for name, (axes, array) in found.items()
    }
    variables |= equation_variables(run.dynamics)
    variables |= {
        f"{OBSERVED}{name}": _observed_variable(run, name, values)
        for name, values in run.observed.items()
    }
    return Packed(variables, words_of(run))


def unpack(arrays: Arrays, words: Words) -> Trajectory:
    """Return the run of arrays and words. Every word is checked; x and z are ignored."""
    solve = Solve(
        times=arrays["asked_times"], **read_table(words["solve"], "solve", SOLVE_WORDS, ("rng",))
    )
    names = [
        ("stepper", solve.stepper, STEPPERS),
        ("frame", solve.frame, FRAMES),
        ("frame", words["frame"], FRAMES[1:]),
        *(("status", name, Status.__members__) for name in arrays["status"].ravel()),
    ]
    for kind, name, known in names:
        if name not in known:
            raise unknown_name(kind, name, known)
    statuses = np.array([Status[name] for name in arrays["status"].ravel()], dtype=object).reshape(
        arrays["status"].shape
    )
    run = Trajectory(
        dynamics=equation_from(arrays, words),
        solve=solve,
        times=arrays["time"],
        states=arrays["states"],
        frame=words["frame"],
        log_scale=arrays["log_scale"],
        basis=arrays.get("basis"),
        growth=arrays.get("growth"),
        turn=arrays.get("turn"),
        status=statuses if statuses.ndim else statuses.item(),
        error=_scalar_or_array(arrays.get("error")),
        spec=Spec.from_json(words["spec"]) if words["spec"] else None,
        observed={
            name.removeprefix(OBSERVED): array
            for name, array in arrays.items()
            if name.startswith(OBSERVED)
        },
        stats=_stats(words["stats"]),
    )
    check_run(run)
    return run


def label(run: Trajectory) -> Labelled:
    """x and z (batch, time, token, coordinate), status, error and what was observed."""
    batch, viewed = batch_axes(run), _views(run, is_bounded=False)
    variables = {"time": Variable(("time",), run.times, ABOUT["time"]), **viewed.variables}
    variables["status"] = Variable(batch, _status_names(run), ABOUT["status"])
    if run.error is not None:
        variables["error"] = Variable(batch, np.asarray(run.error, dtype=float), ABOUT["error"])
    variables |= {
        name: _observed_variable(run, name, values) for name, values in run.observed.items()
    }
    return Labelled(variables, {**words_of(run), **versions(), **viewed.words}, ("time",))


def view(run: Trajectory) -> Labelled:
    """Return x and z if they are put into a file."""
    return _views(run, is_bounded=True)


def tabulate(run: Trajectory) -> dict[str, np.ndarray]:
    """One row per member (of a batch), time and token, with the columns x1, x2, ..., z1, z2, ..."""
    viewed = _views(run, is_bounded=False).variables
    if not viewed:
        raise ValueError(
            "Neither x nor z of this run can be written as numbers. Save it as a .nc file."
        )
    sizes = {
        **dict(zip(batch_axes(run), run.batch, strict=True)),
        "time": len(run.times),
        "token": run.n,
    }
    places = np.indices(tuple(sizes.values())).reshape(len(sizes), -1)
    columns = {
        "member" if axis == "batch" else axis: place
        for axis, place in zip(sizes, places, strict=True)
    }
    columns["time"] = run.times[columns["time"]]
    for name, variable in viewed.items():
        rows = variable.values.reshape(-1, run.d)
        columns |= {f"{name}{i + 1}": rows[:, i] for i in range(run.d)}
    return columns


def dataset_of(run: Trajectory) -> xarray.Dataset:
    """Return everything in a run as one Dataset, from which `run_from` restores it bit for bit. For
    people: to_xarray.
    """
    import xarray

    packed = pack(run)
    found = checksum(
        {name: variable.values for name, variable in packed.variables.items()}, packed.words
    )
    variables = {name: (axes, values) for name, (axes, values, _) in packed.variables.items()}
    return xarray.Dataset(
        variables,
        attrs={MARKER: FIRST_WITH_CHECKSUM, CHECKSUM: found, **packed.words, **versions()},
    )


def run_from(data: xarray.Dataset) -> Trajectory:
    """The run that `dataset_of` was made of."""
    return unpack(
        {str(name): variable.values for name, variable in data.variables.items()}, data.attrs
    )


def is_part(name: str) -> bool:
    """Whether an array in a file of format 1 or 2 is part of a run; NetCDF keeps its axes as arrays
    too.
    """
    return name in ARRAYS or name.startswith(OBSERVED)


def words_of(run: Trajectory) -> dict[str, str]:
    """The attributes that say what was run."""
    return {
        **equation_words(run.dynamics),
        "solve": json.dumps(_solve_words(run.solve)),
        "frame": str(run.frame),
        "spec": run.spec.to_json() if run.spec is not None else "",
        "digest": run.spec.digest() if run.spec is not None else "",
        "stats": json.dumps(_encoded(run.stats)),
    }


def _solve_words(solve: Solve) -> dict[str, Any]:
    """How it was solved, in words; the seed only where there is one."""
    words = {
        name: str(value) if isinstance(value := getattr(solve, name), str) else value
        for name in SOLVE_WORDS
    }
    return words if solve.rng is None else {**words, "rng": solve.rng}


def batch_axes(run: Trajectory) -> tuple[str, ...]:
    """The names of the axes of a batch."""
    return ("batch",) if len(run.batch) == 1 else tuple(f"batch_{i}" for i in range(len(run.batch)))


def _views(run: Trajectory, is_bounded: bool) -> Labelled:
    """x and z, and for each that is left out a word that says why, such as x_absent."""
    axes = (*batch_axes(run), "time", "token", "coordinate")
    variables, words = {}, {}
    for name in ("x", "z"):
        why = _why_not_viewed(run, name) if is_bounded else ""
        values = None
        if not why:
            try:
                values = run.x if name == "x" else run.rescaled
            except (ArithmeticError, ValueError) as problem:
                why = str(problem)
        if values is None:
            words[f"{name}_absent"] = why
        else:
            variables[name] = Variable(axes, values, ABOUT[name])
    return Labelled(variables, words)


def _why_not_viewed(run: Trajectory, name: str) -> str:
    """Return why x or z is not put into a file, for readers in other programs; "" if it is."""
    how = f"attnlab.to_xarray(attnlab.load(path)) has {name}."
    if run.states.size > MOST_VIEWED:
        return (
            f"{name} has {run.states.size} numbers, and up to {MOST_VIEWED} are put into the file:"
            f" {how}"
        )
    is_moved = name != run.frame and (run.frame == "z" or run.basis is None)
    if is_moved and run.d > MOST_EXPONENTIAL:
        return (
            f"{name} takes a matrix exponential in {run.d} dimensions for each time, which is not"
            f" done on saving: {how}"
        )
    return ""


def _status_names(run: Trajectory) -> np.ndarray:
    status = np.asarray(run.status, dtype=object)
    return np.array([member.name for member in status.ravel()], dtype=str).reshape(status.shape)


def _observed_variable(run: Trajectory, name: str, values: Any) -> Variable:
    """Its axes: batch and time where the shape begins with them, head for one number per head, then
    axes of its own.
    """
    array = np.asarray(values)
    leading = (*run.batch, len(run.times))
    named: tuple[str, ...] = (
        (*batch_axes(run), "time") if array.shape[: len(leading)] == leading else ()
    )
    if array.shape == (*leading, run.dynamics.weights.heads):
        named = (*named, "head")
    axes = (*named, *(f"{name}_axis_{i}" for i in range(array.ndim - len(named))))
    return Variable(axes, array, {"long_name": name.replace("_", " "), "units": "1"})


def _scalar_or_array(array: np.ndarray | None) -> Any:
    return array if array is None or array.ndim else float(array)


def _stats(content: str) -> dict[str, Any]:
    found = _decoded(json.loads(content))
    if not isinstance(found, dict):
        raise ValueError("stats must be a table.")
    return found


def _encoded(value: Any) -> Any:
    """`value` as JSON; an array keeps its type and shape."""
    if isinstance(value, np.ndarray):
        return {
            "array": value.ravel().tolist(),
            "dtype": value.dtype.str,
            "shape": list(value.shape),
        }
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {"table": {key: _encoded(entry) for key, entry in value.items()}}
    return [_encoded(entry) for entry in value] if isinstance(value, list | tuple) else value


def _decoded(value: Any) -> Any:
    if isinstance(value, dict):
        if "array" in value:
            kind = np.dtype(value["dtype"])
            if kind.kind not in "biufU":
                raise ValueError(f"stats must hold numbers and words, got the type {kind}.")
            # words have their own length: a long declared length would waste memory
            return np.array(value["array"], dtype="U" if kind.kind == "U" else kind).reshape(
                value["shape"]
            )
        return {key: _decoded(entry) for key, entry in value["table"].items()}
    return [_decoded(entry) for entry in value] if isinstance(value, list) else value


def _samples() -> dict[str, Trajectory]:
    rng = np.random.default_rng(0)
    weights = Weights(
        V=rng.normal(size=(2, 3, 3)), Q=rng.normal(size=(2, 2, 3)), K=rng.normal(size=(2, 2, 3))
    )
    states = rng.normal(size=(2, 4, 5, 3))
    states[1, 3:] = np.nan
    solve = Solve(t_end=1.0, times=np.linspace(0.0, 1.0, 4))
    status = np.array([Status.OK, Status.STALLED], dtype=object)
    spec = Spec(
        weights={"family": "identity"},
        start={"law": "sphere", "n": 5, "d": 3},
        solve={"t_end": 1.0},
    )
    one = Trajectory(
        Dynamics(weights),
        solve,
        solve.times,
        states[0],
        "x",
        np.zeros(4),
        Status.OK,
        error=1e-9,
        spec=spec,
        observed={"diameter": np.arange(4.0)},
        stats={"steps": 7, "each": np.arange(3)},
    )
    many = Trajectory(
        Dynamics(weights, mask="causal"), solve, solve.times, states, "z", np.zeros((2, 4)), status
    )
    return {"one": one, "batch": many}


kinds.register("trajectory")(
    Kind(
        title="a run",
        is_one=lambda thing: isinstance(thing, Trajectory),
        pack=pack,
        unpack=unpack,
        label=label,
        samples=_samples,
        words=WORDS,
        axis="run",
        tabulate=tabulate,
        views=view,
    )
)
