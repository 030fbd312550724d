"""Runs on disk and as labelled arrays: save, load, to_xarray.

A run is one NetCDF-4 file without pickle: the states in the frame they were integrated in, the weights, and everything else as
JSON in the attributes, so that `load(path)` gives back every bit. A checksum of all of it is in the file, and `load` verifies it.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping
from dataclasses import fields
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab.dynamics import equation
from attnlab.files import CannotWrite as CannotWrite
from attnlab.files import write_bytes
from attnlab.netcdf import Unreadable, checksum, file_bytes, read_file
from attnlab.registry import unknown_name
from attnlab.types import FRAMES, STEPPERS, FeedForward, Solve, Spec, Status, Trajectory, Weights

if TYPE_CHECKING:
    import xarray

FORMAT = 2
"""The version of the layout on disk. Format 1 has no checksum."""

MARKER = "attnlab_format"
CHECKSUM = "checksum"
OBSERVED = "observed_"
FEEDFORWARD = ("W", "bias", "bias_outside")
WORDS = ("dynamics", "solve", "source", "frame", "spec", "digest", "stats")
SOLVE_WORDS = tuple(field.name for field in fields(Solve) if field.name != "times")
ARRAYS = ("time", "states", "log_scale", "status", "error", "Q", "K", "V", "V_left", "V_right", "basis", "growth", "turn",
          "asked_times", *(f"feedforward_{name}" for name in FEEDFORWARD))

LARGEST_LOG_SCALE = 1e6
"""Logarithms of a scale above this are damage in a file of format 1: no run of attnlab 0.1.0 went so far."""


class NotARun(ValueError):
    """A file that is not a whole attnlab run; the message says why."""


class MissingRun(NotARun, FileNotFoundError):
    """There is no file."""


def save(run: Trajectory, path: str | os.PathLike[str]) -> None:
    """Write a run to a NetCDF file; an existing file is replaced whole or not at all."""
    path = Path(path)
    if path.is_dir():
        raise CannotWrite(f"{path} is a folder: give the name of a file in it, such as {path / 'run.nc'}.")
    if not path.parent.is_dir():
        raise CannotWrite(f"There is no folder {path.parent}: make it first.")
    variables = _variables(run)
    created = datetime.now(UTC).isoformat(timespec="seconds")
    write_bytes(path, file_bytes(variables, {**_attributes(run, variables), "created": created}))


def load(path: str | os.PathLike[str]) -> Trajectory:
    """Return the run that `save` wrote to a file, bit for bit.

    Raises ValueError or OSError, with one sentence, for every file that is not a whole run: a file that was damaged (its checksum
    says so), cut off, or written by another program; a pipe or a device; words or numbers that no run has; arrays that lie in
    another file, or are compressed. Files of format 1, written before there was a checksum, still load. They pass all other
    checks, but a number in them may have changed unseen. Load and save them once to add a checksum.
    """
    path = Path(path)
    if not path.exists():
        raise MissingRun(f"There is no run at {path}.")
    try:
        arrays, words = read_file(path, _is_part, {MARKER: "number", CHECKSUM: "text", **dict.fromkeys(WORDS, "text")})
        _check_words(words)
        has_checksum = words[MARKER] > 1 or CHECKSUM in words
        if has_checksum:
            _check_checksum(arrays, words)
        run = _run(arrays, words)
        _check_run(run)
        if not has_checksum:
            _check_plausible(run)
        return run
    except PermissionError as problem:
        raise NotARun(f"{path} cannot be read: {problem.strerror or 'permission denied'}.") from problem
    except Unreadable as problem:
        raise NotARun(f"{path} {problem}") from None
    except Exception as problem:            # HDF5, h5py and JSON answer damage with errors of every kind
        raise NotARun(f"{path} {_reason(problem)}") from problem


def to_xarray(run: Trajectory) -> xarray.Dataset:
    """The run as labelled arrays: x and z (batch, time, token, coordinate), status, error and what was observed.

    A frame that does not exist (z on the sphere) or exceeds double precision is left out, and the attribute
    `x_absent` or `z_absent` says why.
    """
    import xarray

    batch = _batch_axes(run)
    data = xarray.Dataset(coords={"time": run.times}, attrs={**_words(run), **_versions()})
    for name in ("x", "z"):
        try:
            values = getattr(run, name)
        except (OverflowError, ValueError) as problem:
            data.attrs[f"{name}_absent"] = str(problem)
            continue
        if values is None:
            data.attrs[f"{name}_absent"] = "z = e^{-tV} x is defined in R^d only, and this run lives on the sphere."
        else:
            data[name] = ((*batch, "time", "token", "coordinate"), values)
    data["status"] = (batch, _status_names(run))
    if run.error is not None:
        data["error"] = (batch, np.asarray(run.error, dtype=float))
    for name, values in run.observed.items():
        data[name] = _observed_variable(run, name, values)
    return data


def dataset_of(run: Trajectory) -> xarray.Dataset:
    """Everything in a run as one Dataset, from which `run_from` makes it again bit for bit; to look at, take to_xarray."""
    import xarray

    variables = _variables(run)
    return xarray.Dataset(dict(variables), attrs=_attributes(run, variables))


def run_from(data: xarray.Dataset) -> Trajectory:
    """The run that `dataset_of` was made of."""
    return _run({str(name): variable.values for name, variable in data.variables.items()}, data.attrs)


def _attributes(run: Trajectory, variables: Mapping[str, tuple[tuple[str, ...], np.ndarray]]) -> dict[str, Any]:
    """The words of a run, what wrote it, and the checksum of words and arrays."""
    words = _words(run)
    found = checksum({name: array for name, (_, array) in variables.items()}, words)
    return {MARKER: FORMAT, CHECKSUM: found, **words, **_versions()}


def _variables(run: Trajectory) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
    """{name: (axes, array)} of everything in a run that is an array."""
    weights, forward, batch = run.dynamics.weights, run.dynamics.feedforward, tuple(_batch_axes(run))
    found: dict[str, tuple[tuple[str, ...], Any]] = {"time": (("time",), run.times)}
    found["states"] = ((*batch, "time", "token", "coordinate"), run.states)
    found["log_scale"] = ((*batch, "time"), run.log_scale)
    found["status"] = (batch, _status_names(run))
    if run.error is not None:
        found["error"] = (batch, np.asarray(run.error, dtype=float))
    found["Q"], found["K"] = (("head", "key", "coordinate"), weights.Q), (("head", "key", "coordinate"), weights.K)
    if weights.is_factored:
        found["V_left"] = (("head", "coordinate", "rank"), weights.V[0])
        found["V_right"] = (("head", "rank", "coordinate"), weights.V[1])
    else:
        found["V"] = (("head", "row", "coordinate"), weights.V)
    if forward is not None:
        for name in FEEDFORWARD:
            array = getattr(forward, name)
            if array is not None:
                found[f"feedforward_{name}"] = (("row", "coordinate")[: array.ndim], array)
    if run.basis is not None:
        found["basis"] = (("row", "coordinate"), run.basis)
        found["growth"], found["turn"] = (("coordinate",), run.growth), (("coordinate",), run.turn)
    found["asked_times"] = (("asked",), run.solve.times)
    for name, values in run.observed.items():
        axes, array = _observed_variable(run, name, values)
        found[f"{OBSERVED}{name}"] = (tuple(axes), array)
    return {name: (axes, np.asarray(array)) for name, (axes, array) in found.items()}


def _is_part(name: str) -> bool:
    """Whether a variable of a file is part of a run; NetCDF keeps its axes as variables too."""
    return name in ARRAYS or name.startswith(OBSERVED)


def _check_words(words: Mapping[str, Any]) -> None:
    """Refuse what is not a run of a format that is known."""
    if words.get(MARKER, 0) < 1:
        raise Unreadable("is a NetCDF or HDF5 file, but not a run that `save` or `attnlab run` wrote. Other files of attnlab, "
                         "such as those of `attnlab sentence`, open with xarray.open_dataset.")
    if words[MARKER] > FORMAT:
        raise Unreadable(f"has format {words[MARKER]}, and this attnlab reads up to format {FORMAT}: upgrade attnlab.")
    missing = [word for word in WORDS if word not in words]
    if missing:
        raise Unreadable(f"is damaged: the attribute {missing[0]} is missing.")


def _check_checksum(arrays: Mapping[str, np.ndarray], words: Mapping[str, Any]) -> None:
    if words.get(CHECKSUM) != checksum(arrays, {word: words[word] for word in WORDS}):
        raise Unreadable("is damaged: its content does not have the checksum that was saved with it. Make the run again, or take "
                         "a copy.")


def _reason(problem: Exception) -> str:
    """What an error of HDF5 or of a check means for the user, as the end of a sentence that begins with the file."""
    said = " ".join(str(problem).split())
    if isinstance(problem, OSError) and "truncated" in said:
        return "is cut off: it was not written or copied to its end."
    if isinstance(problem, OSError) and "signature" in said:
        return "is not a NetCDF-4 file: give a file that `save` or `attnlab run` wrote."
    if isinstance(problem, KeyError):
        return f"is damaged: {said} is missing."
    return f"is damaged: {said[:200] or type(problem).__name__}"


def _run(arrays: Mapping[str, np.ndarray], words: Mapping[str, Any]) -> Trajectory:
    """The Trajectory of arrays and words; every word is checked."""
    V = (arrays["V_left"], arrays["V_right"]) if "V_left" in arrays else arrays["V"]
    weights = Weights(Q=arrays["Q"], K=arrays["K"], V=V, source=words["source"])
    options = _table(words["dynamics"], "dynamics", ("geometry", "kernel", "mask", "beta", "dt", "sigma"))
    sigma = options.pop("sigma")
    forward = None
    if sigma is not None:
        forward = FeedForward(sigma=sigma, **{name: arrays.get(f"feedforward_{name}") for name in FEEDFORWARD})
    solve = Solve(times=arrays["asked_times"], **_table(words["solve"], "solve", SOLVE_WORDS))
    names = [("stepper", solve.stepper, STEPPERS), ("frame", solve.frame, FRAMES), ("frame", words["frame"], FRAMES[1:]),
             *(("status", name, Status.__members__) for name in arrays["status"].ravel())]
    for kind, name, known in names:
        if name not in known:
            raise unknown_name(kind, name, known)
    statuses = np.array([Status[name] for name in arrays["status"].ravel()], dtype=object).reshape(arrays["status"].shape)
    return Trajectory(
        dynamics=equation(weights, feedforward=forward, **options),
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
        observed={name.removeprefix(OBSERVED): array for name, array in arrays.items() if name.startswith(OBSERVED)},
        stats=_stats(words["stats"]),
    )


def _stats(text: str) -> dict[str, Any]:
    found = _decoded(json.loads(text))
    if not isinstance(found, dict):
        raise ValueError("stats must be a table.")
    return found


def _table(text: str, name: str, keys: tuple[str, ...]) -> dict[str, Any]:
    """The JSON table `text`, which must have these keys."""
    found = json.loads(text)
    if not isinstance(found, dict) or set(found) != set(keys):
        raise ValueError(f"{name} must be a table of {', '.join(keys)}.")
    return found


def _check_run(run: Trajectory) -> None:
    """Refuse shapes that do not belong together, and numbers that no run has."""
    if run.states.ndim < 3 or run.d != run.dynamics.weights.d:
        raise ValueError(f"states must have the axes time, token and coordinate, like the weights; got {run.states.shape}.")
    batch, d, length = run.batch, run.d, len(run.times)
    shapes = {"times": (length,), "states": (*batch, length, run.n, d), "log_scale": (*batch, length), "basis": (d, d),
              "growth": (d,), "turn": (d,)}
    for name, shape in shapes.items():
        array = getattr(run, name)
        if array is not None and (np.shape(array) != shape or np.asarray(array).dtype != float):
            raise ValueError(f"{name} must have shape {shape} in double precision, got {np.shape(array)}.")
        if array is not None and name not in ("states", "log_scale") and not np.isfinite(array).all():
            raise ValueError(f"{name} must be finite.")
    if len({run.basis is None, run.growth is None, run.turn is None}) > 1 or run.turn is not None and run.turn[-1] != 0.0:
        raise ValueError("basis, growth and turn must be there together, and the last entry of turn must be 0.")
    _check_solve(run.solve)
    if np.shape(run.status) != batch or run.error is not None and np.shape(run.error) != batch:
        raise ValueError(f"status and error must have the shape of the batch, {batch}.")
    if run.error is not None and (np.asarray(run.error) < 0).any():          # NaN: the finer run did not get as far
        raise ValueError(f"error must not be negative, got {np.nanmin(run.error):g}.")
    if (np.diff(run.times) <= 0).any() or length and run.times[0] < 0:
        raise ValueError("times must ascend from 0 or later.")
    is_bad = ~(np.isfinite(run.states).all(axis=(-2, -1)) & np.isfinite(run.log_scale))                 # (*batch, T)
    is_ended = np.isnan(run.states).all(axis=(-2, -1)) & (np.asarray(run.status) != Status.OK)[..., None] & bool(batch)
    if (is_bad & ~is_ended).any() or (np.diff(is_ended.astype(int), axis=-1) < 0).any():
        raise ValueError("states must be finite, except after the end of a member of a batch that stopped early.")


def _check_plausible(run: Trajectory) -> None:
    """Refuse numbers that only damage can have put into a run that no checksum protects."""
    if (np.abs(run.log_scale) > LARGEST_LOG_SCALE).any():
        raise ValueError(f"log_scale must be at most {LARGEST_LOG_SCALE:g}, got {np.nanmax(np.abs(run.log_scale)):.3g}.")
    from attnlab.analysis import observables

    leading, is_ok = (*run.batch, len(run.times)), np.asarray(run.status, dtype=object) == Status.OK
    for name, values in run.observed.items():
        if values.dtype.kind not in "biufc":
            raise ValueError(f"The observable {name} must hold numbers.")
        if name not in observables:             # an observable of the user's own has the shape and the numbers that they gave it
            continue
        if values.shape[: len(leading)] != leading:
            raise ValueError(f"The observable {name} must hold numbers for each of the {len(run.times)} times.")
        if not np.isfinite(values[is_ok]).all():
            raise ValueError(f"The observable {name} must be finite in a run with status OK.")


def _check_solve(solve: Solve) -> None:
    """Refuse options that no run has. What may be asked for is narrower; older files may go beyond it."""
    for name, value in ((name, getattr(solve, name)) for name in ("t_end", "rtol", "atol", "dt", "max_steps", "layers")):
        if value is None and name in ("dt", "layers"):
            continue
        kinds = int if name in ("max_steps", "layers") else (int, float)
        if isinstance(value, bool) or not isinstance(value, kinds) or not 0 <= value < np.inf:
            raise ValueError(f"{name} must be a number of at least 0, got {value!r}.")
    if solve.times.ndim != 1 or solve.times.dtype != float or not np.isfinite(solve.times).all():
        raise ValueError("The times that were asked for must be finite numbers along one axis.")


def _words(run: Trajectory) -> dict[str, Any]:
    """The attributes that say what was run."""
    dynamics, solve = run.dynamics, run.solve
    words = {name: getattr(dynamics, name) for name in ("geometry", "kernel", "mask", "beta", "dt")}
    words["sigma"] = dynamics.feedforward.sigma if dynamics.feedforward is not None else None
    return {
        "dynamics": json.dumps(words),
        "solve": json.dumps({name: getattr(solve, name) for name in SOLVE_WORDS}),
        "source": dynamics.weights.source,
        "frame": run.frame,
        "spec": run.spec.to_json() if run.spec is not None else "",
        "digest": run.spec.digest() if run.spec is not None else "",
        "stats": json.dumps(_encoded(run.stats)),
    }


def _versions() -> dict[str, str]:
    libraries = ("attnlab", "numpy", "scipy", "numba", "xarray", "h5netcdf", "h5py")
    return {"python_version": platform.python_version(), **{f"{name}_version": version(name) for name in libraries}}


def _batch_axes(run: Trajectory) -> tuple[str, ...]:
    return ("batch",) if len(run.batch) == 1 else tuple(f"batch_{i}" for i in range(len(run.batch)))


def _status_names(run: Trajectory) -> np.ndarray:
    status = np.asarray(run.status, dtype=object)
    return np.array([member.name for member in status.ravel()], dtype=str).reshape(status.shape)


def _observed_variable(run: Trajectory, name: str, values: Any) -> tuple[tuple[str, ...], np.ndarray]:
    """(axes, array): batch and time where the shape begins with them, head for one number a head, then axes of its own."""
    array = np.asarray(values)
    leading = (*run.batch, len(run.times))
    named: tuple[str, ...] = (*_batch_axes(run), "time") if array.shape[: len(leading)] == leading else ()
    if array.shape == (*leading, run.dynamics.weights.heads):
        named = (*named, "head")
    return (*named, *(f"{name}_axis_{i}" for i in range(array.ndim - len(named)))), array


def _scalar_or_array(array: np.ndarray | None) -> Any:
    return array if array is None or array.ndim else float(array)


def _encoded(value: Any) -> Any:
    """`value` as JSON; an array keeps its type and shape."""
    if isinstance(value, np.ndarray):
        return {"array": value.ravel().tolist(), "dtype": value.dtype.str, "shape": list(value.shape)}
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
            # the length of words is their own: a long one that is only declared would take memory
            return np.array(value["array"], dtype="U" if kind.kind == "U" else kind).reshape(value["shape"])
        return {key: _decoded(entry) for key, entry in value["table"].items()}
    return [_decoded(entry) for entry in value] if isinstance(value, list) else value
