"""save, load and to_xarray. The kind of result decides how it is stored, the suffix of the file in
which format.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from attnlab.files import CannotWrite, write_bytes
from attnlab.netcdf import Unreadable
from attnlab.store.document import CHECKSUM, MARKER, document_bytes, read_document
from attnlab.store.formats import formats, suffix_of
from attnlab.store.packing import kind_of, kinds
from attnlab.store.run_checks import check_plausible

if TYPE_CHECKING:
    import pandas
    import xarray

    from attnlab.models.studies.flows import Flow
    from attnlab.types import Limit, Trajectory
    from attnlab.verdicts import Prediction, Verdict

    Saved: TypeAlias = (
        Trajectory | Limit | Verdict | Prediction | Flow | xarray.Dataset | pandas.DataFrame
    )
    Result: TypeAlias = (
        Saved
        | Sequence[Limit]
        | Sequence[Verdict]
        | Sequence[Sequence[Verdict]]
        | Sequence[Prediction]
    )


class NotARun(ValueError):
    """Raised for a file that is not a complete result of attnlab. The message says why."""


class MissingRun(FileNotFoundError, NotARun):
    """Raised if there is no file."""


def save(result: Result, path: str | os.PathLike[str]) -> None:
    """Write a result to a file. An existing file is replaced completely or not at all.

    Parameters
    ----------
    result : Trajectory, Limit, verdicts, predictions, or what al.models returns
        A run, a Limit or a list of them, verdicts or predictions (one, a list, or the list of lists
        of a batch), a Flow, the Dataset of `sentence` or `iterate`, or the table of `spectra`.
    path : str or path
        The name of the file. A .nc file (or any other suffix) is NetCDF-4, which `load` reads back
        bit for bit. For other programs: .csv is a table, .npz has NumPy arrays, .mat is for MATLAB,
        and .json has limits and verdicts.

    Examples
    --------
    >>> import numpy as np
    >>> import attnlab as al
    >>> run = al.simulate(al.Weights(V=np.eye(2)), np.eye(2), t_end=1.0)
    >>> al.save(run, "run.nc")
    >>> bool((al.load("run.nc").states == run.states).all())
    True
    """
    path = Path(path)
    name = kind_of(result)
    if path.is_dir():
        raise CannotWrite(
            f"{path} is a folder: give the name of a file in it, such as {path / 'run.nc'}."
        )
    if not path.parent.is_dir():
        raise CannotWrite(f"There is no folder {path.parent}. Create it first.")
    kind, suffix = kinds[name], suffix_of(path)
    if suffix in formats:
        formats[suffix].write(result, kind, path)
    else:
        write_bytes(
            path,
            document_bytes(
                name, kind.pack(result), None if kind.views is None else kind.views(result)
            ),
        )


def load(path: str | os.PathLike[str]) -> Result:
    """Return the result in a .nc file that `save` wrote, of the same type, bit for bit.

    Runs of format 1, which have no checksum, still load. They pass all other checks, but a number
    in them may have changed unseen. Load and save them once to add a checksum.

    Parameters
    ----------
    path : str or path
        The name of the file.

    Returns
    -------
    Trajectory, Limit, Limits, Verdict, Verdicts, BatchVerdicts, Prediction, Predictions, Flow,
    Dataset or DataFrame
        What was saved.

    Raises
    ------
    ValueError or OSError
        The file is not a complete result: it is damaged (its checksum is wrong), cut off, or
        written by another program.

    Examples
    --------
    >>> import attnlab as al
    >>> al.save(al.limit(al.Weights(V=1.0), [[-1.0], [1.0]]), "limit.nc")
    >>> al.load("limit.nc").count
    2
    """
    path = Path(path)
    if not path.exists():
        raise MissingRun(f"There is no run at {path}.")
    suffix = suffix_of(path)
    if suffix in formats and path.is_file():
        raise NotARun(
            f"{path} is {formats[suffix].title}, which `load` does not read: it does not hold"
            " everything. Save the result as a .nc file and load that."
        )
    try:
        name, arrays, words = read_document(path)
        result = kinds[name].unpack(arrays, words)
        if words[MARKER] == 1 and CHECKSUM not in words:
            check_plausible(result)
        return result
    except PermissionError as problem:
        raise NotARun(
            f"{path} cannot be read: {problem.strerror or 'permission denied'}."
        ) from problem
    except Unreadable as problem:
        raise NotARun(f"{path} {problem}") from None
    except Exception as problem:  # HDF5, h5py and JSON answer damage with errors of every kind
        raise NotARun(f"{path} {_reason(problem)}") from problem


def to_xarray(result: Result) -> xarray.Dataset:
    """Return a result as labelled arrays. Axes have names, and `long_name` and `units` say what an
    array is.

    A run has x and z (batch, time, token, coordinate), status, error and its observables. A frame
    that does not exist (z on the sphere) or that exceeds double precision is left out, and the
    attribute `x_absent` or `z_absent` says why. A Limit has labels, leaders, points and limits
    (token, ..). A list of Limits has the axis `member` before them.

    Parameters
    ----------
    result : object
        What `save` takes.

    Returns
    -------
    xarray.Dataset
        The arrays.

    Examples
    --------
    >>> import numpy as np
    >>> import attnlab as al
    >>> data = al.to_xarray(al.simulate(al.Weights(V=np.eye(2)), np.eye(2), t_end=1.0))
    >>> data["x"].dims
    ('time', 'token', 'coordinate')
    """
    import xarray

    labelled = kinds[kind_of(result, "to_xarray")].label(result)
    variables = {
        name: (axes, values, dict(about))
        for name, (axes, values, about) in labelled.variables.items()
    }
    data = xarray.Dataset(
        {
            name: variable
            for name, variable in variables.items()
            if name not in labelled.coordinates
        },
        coords={name: variables[name] for name in labelled.coordinates},
        attrs=dict(labelled.words),
    )
    return data


def _reason(problem: Exception) -> str:
    """Explain an error of HDF5 or of a check, as the end of a sentence that begins with the
    file.
    """
    said = " ".join(str(problem).split())
    if isinstance(problem, OSError) and "truncated" in said:
        return "is cut off: it was not written or copied to its end."
    if isinstance(problem, OSError) and "signature" in said:
        return "is not a NetCDF-4 file: give a .nc file that `save` or a command of attnlab wrote."
    if isinstance(problem, KeyError):
        return f"is damaged: {said} is missing."
    return f"is damaged: {said[:200] or type(problem).__name__}"
