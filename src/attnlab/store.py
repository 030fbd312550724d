"""Runs on disk and as labelled arrays: save, load, to_xarray.

A run is one NetCDF-4 file without pickle: the states in the frame they were integrated in, the weights, and
everything else as JSON in the attributes, so that `load(path)` gives back every bit. It is written under a temporary
name in the same folder and then renamed: whoever reads sees the old file or the new one, never a part.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import uuid
from collections.abc import Mapping
from dataclasses import fields
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab.types import Dynamics, FeedForward, Solve, Spec, Status, Trajectory, Weights

if TYPE_CHECKING:
    import xarray

FORMAT = 1
"""The version of the layout on disk; raise it when an older attnlab could no longer read what is written."""

MARKER = "attnlab_format"
OBSERVED = "observed_"
FEEDFORWARD = ("W", "bias", "bias_outside")


class NotARun(ValueError):
    """A file that is not a whole attnlab run; the message says why."""


class MissingRun(NotARun, FileNotFoundError):
    """There is no file."""


class CannotWrite(OSError):
    """A place that a run cannot be written to; the message says why."""


def save(run: Trajectory, path: str | os.PathLike[str]) -> None:
    """Write a run to a NetCDF file; an existing file is replaced whole or not at all."""
    path = Path(path)
    if path.is_dir():
        raise CannotWrite(f"{path} is a folder: give the name of a file in it, such as {path / 'run.nc'}.")
    if not path.parent.is_dir():
        raise CannotWrite(f"There is no folder {path.parent}: make it first.")
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:12]}.tmp")
    try:
        _write(run, temporary)
        os.replace(temporary, path)
    except OSError as problem:
        raise CannotWrite(f"{path} cannot be written: {problem.strerror or 'the folder does not take it'}.") from problem
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def load(path: str | os.PathLike[str]) -> Trajectory:
    """The run that `save` wrote to a file, bit for bit."""
    import xarray

    path = Path(path)
    _check_marker(path)
    try:
        # nothing is decoded: a float stays the bits it was written as
        with xarray.open_dataset(path, engine="h5netcdf", decode_times=False, mask_and_scale=False) as data:
            return _from_disk(data.load())
    except (KeyError, OSError, RuntimeError, TypeError, ValueError) as problem:
        raise NotARun(f"{path} is damaged: {problem}") from problem


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

    return xarray.Dataset(_variables(run), attrs={MARKER: FORMAT, **_words(run), **_versions()})


def run_from(data: xarray.Dataset) -> Trajectory:
    """The run that `dataset_of` was made of."""
    return _from_disk(data)


def _write(run: Trajectory, path: Path) -> None:
    """The file of a run. Written without xarray, which takes longer to import than a small run to compute."""
    import h5netcdf
    import h5py

    variables = _variables(run)
    with h5netcdf.File(path, "w") as file:
        for axes, array in variables.values():
            for axis, length in zip(axes, array.shape, strict=True):
                if axis not in file.dimensions:
                    file.dimensions[axis] = length
        for name, (axes, array) in variables.items():
            kind = array.dtype.kind
            attributes: dict[str, int | str] = {}
            if kind == "c":                                         # NetCDF has neither complex numbers
                file.dimensions.setdefault("real_imaginary", 2)
                axes, array, attributes = (*axes, "real_imaginary"), np.stack([array.real, array.imag], -1), {"complex": 1}
            elif kind == "b":                                       # nor truth values: this is how xarray knows them again
                array, attributes = array.astype("i1"), {"dtype": "bool"}
            variable = file.create_variable(name, axes, h5py.string_dtype() if kind in "UO" else array.dtype)
            variable[...] = array.astype(object) if kind in "UO" and array.ndim else array if array.ndim else array.item()
            for word, value in attributes.items():
                variable.attrs[word] = value
        for word, value in {MARKER: FORMAT, **_words(run), **_versions()}.items():
            file.attrs[word] = value
        file.attrs["created"] = datetime.now(UTC).isoformat(timespec="seconds")


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


def _from_disk(data: xarray.Dataset) -> Trajectory:
    words, solve_words = json.loads(data.attrs["dynamics"]), json.loads(data.attrs["solve"])
    arrays = {str(name): variable.values for name, variable in data.variables.items()}
    V = (arrays["V_left"], arrays["V_right"]) if "V_left" in arrays else arrays["V"]
    weights = Weights(Q=arrays["Q"], K=arrays["K"], V=V, source=data.attrs["source"])
    sigma = words.pop("sigma")
    forward = None
    if sigma is not None:
        forward = FeedForward(sigma=sigma, **{name: arrays.get(f"feedforward_{name}") for name in FEEDFORWARD})
    statuses = np.array([Status[str(name)] for name in arrays["status"].ravel()], dtype=object).reshape(arrays["status"].shape)
    spec = data.attrs["spec"]
    return Trajectory(
        dynamics=Dynamics(weights, feedforward=forward, **words),
        solve=Solve(times=arrays["asked_times"], **solve_words),
        times=arrays["time"],
        states=arrays["states"],
        frame=data.attrs["frame"],
        log_scale=arrays["log_scale"],
        basis=arrays.get("basis"),
        growth=arrays.get("growth"),
        turn=arrays.get("turn"),
        status=statuses if statuses.ndim else statuses.item(),
        error=_scalar_or_array(arrays.get("error")),
        spec=Spec.from_json(spec) if spec else None,
        observed={name.removeprefix(OBSERVED): _observed(data[name]) for name in arrays if name.startswith(OBSERVED)},
        stats=_decoded(json.loads(data.attrs["stats"])),
    )


def _check_marker(path: Path) -> None:
    """Refuse, with the reason, whatever is not a whole file that `save` wrote."""
    import h5py

    if not path.exists():
        raise MissingRun(f"There is no run at {path}.")
    if path.is_dir():
        raise NotARun(f"{path} is a folder: give the name of a run's file.")
    try:
        with h5py.File(path, "r") as file:
            found = np.ravel(file.attrs.get(MARKER, ()))        # NetCDF keeps a number as a list of one
    except OSError as problem:
        if "truncated" in str(problem):
            raise NotARun(f"{path} is cut off: it was not written or copied to its end.") from None
        raise NotARun(f"{path} is not a NetCDF-4 file: give a file that `save` or `attnlab run` wrote.") from None
    if found.size != 1 or found.dtype.kind not in "iu":
        raise NotARun(f"{path} is a NetCDF or HDF5 file, but not a run that `save` or `attnlab run` wrote. Other files of "
                      "attnlab, such as those of `attnlab sentence`, open with xarray.open_dataset.")
    if found[0] > FORMAT:
        raise NotARun(f"{path} has format {found[0]}, and this attnlab reads up to format {FORMAT}: upgrade attnlab.")


def _words(run: Trajectory) -> dict[str, Any]:
    """The attributes that say what was run."""
    dynamics, solve = run.dynamics, run.solve
    words = {name: getattr(dynamics, name) for name in ("geometry", "kernel", "mask", "beta", "dt")}
    words["sigma"] = dynamics.feedforward.sigma if dynamics.feedforward is not None else None
    return {
        "dynamics": json.dumps(words),
        "solve": json.dumps({field.name: getattr(solve, field.name) for field in fields(solve) if field.name != "times"}),
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


def _observed(variable: xarray.DataArray) -> np.ndarray:
    values = variable.values
    return np.ascontiguousarray(values).view(complex)[..., 0] if variable.attrs.get("complex") else values


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
            return np.array(value["array"], dtype=value["dtype"]).reshape(value["shape"])
        return {key: _decoded(entry) for key, entry in value["table"].items()}
    return [_decoded(entry) for entry in value] if isinstance(value, list) else value
