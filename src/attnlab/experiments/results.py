"""The folder of an experiment's results. It is written under a temporary name and renamed when it
is complete.

results/NAME/   index.html  record.json  claims.csv  FIGURE.png  FIGURE.pdf  NAME.gif  NAME.mp4
                data/SET.nc  data/SET.csv  specs/RUN.toml  verdicts.csv
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import json
import os
import shutil
import uuid
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from attnlab.experiments.record import Data
from attnlab.files import temporary_name, write_bytes, write_text
from attnlab.netcdf import dataset_bytes
from attnlab.store import MARKER, run_from, to_xarray
from attnlab.sweep.lock import hold_lock

RECORD = "record.json"
KEPT = ("data", "rows")
"""What a later attempt takes from an unfinished one: all data, or the rows that were measured."""

MOST_ROWS = 60_000
"""A longer table is written as NetCDF only: as CSV it would be ten times as large, and too long for
a spreadsheet.
"""


NEEDED = (
    "name",
    "title",
    "cite",
    "about",
    "size",
    "options",
    "claims",
    "holds",
    "figures",
    "movies",
    "verdicts",
    "specs",
)
"""What a record must have to be shown."""


class CannotKeep(OSError):
    """A folder that results cannot be written to; the message says why and what to do."""


def read_record(folder: Path) -> dict[str, Any] | None:
    """The record of complete results. None where there is none, or where an older attnlab wrote
    another format.
    """
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    if (
        not isinstance(record, dict)
        or record.get("is_complete") is not True
        or any(name not in record for name in NEEDED)
    ):
        return None
    return record if record["figures"] and isinstance(record["claims"], list) else None


def check_folder(folder: Path) -> None:
    """Refuse a folder that takes no files, before anything is computed."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = temporary_name(folder / "probe")
        probe.touch()
        probe.unlink()
    except OSError as problem:
        raise CannotKeep(
            f"The folder {folder} cannot be written to ({problem.strerror}): choose another one"
            " with -o."
        ) from None


@contextlib.contextmanager
def staging(folder: Path, name: str) -> Iterator[Path]:
    """The folder in which one process makes the results of an experiment; an interrupted attempt
    may have begun it.
    """
    check_folder(folder)
    place, lock = folder / f".{name}.unfinished", folder / f".{name}.lock"
    if lock.is_symlink() or not lock.is_file():
        remove(lock)
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(
                hold_lock(
                    lock, f"making {folder / name}", "wait for it, or choose another folder with -o"
                )
            )
        except OSError as problem:
            raise CannotKeep(
                f"{lock} cannot be opened ({problem.strerror}): choose another folder with -o."
            ) from None
        if not place.is_dir():
            remove(place)
        place.mkdir(exist_ok=True)
        for leftover in place.iterdir():
            if (
                leftover.name not in KEPT or not leftover.is_dir()
            ):  # such as figures of an older version
                remove(leftover)
        for old in folder.glob(f".{name}.*.old"):  # of an attempt that ended between two renamings
            if (folder / name).exists():
                remove(old)
            else:
                os.replace(old, folder / name)
        yield place


def remove(path: Path) -> None:
    """Remove a file, a link or a folder with its contents, if it exists."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def move_into_place(made: Path, target: Path) -> None:
    """Rename `made` to `target`. What was there before is removed afterwards."""
    before = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}.old")
    if target.exists() or target.is_symlink():
        os.replace(target, before)
    os.replace(made, target)
    remove(before)


def write_json(path: Path, thing: Any) -> None:
    """Write JSON that every reader takes."""
    write_text(path, json.dumps(thing, indent=1, allow_nan=False) + "\n")


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write a table as CSV; all rows have the keys of the first."""
    rows = list(rows)
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, fieldnames=list(rows[0]) if rows else ["nothing"])
    writer.writeheader()
    writer.writerows(rows)
    write_text(path, text.getvalue())


def write_data(folder: Path, data: Data, key: str) -> None:
    """Write every Dataset as NetCDF, then a file with the key and the digests, which says that all
    are there.
    """
    folder.mkdir(exist_ok=True)
    digests = {}
    for name, dataset in data.items():
        content = dataset_bytes(dataset)
        write_bytes(folder / f"{name}.nc", content)
        digests[name] = hashlib.sha256(content).hexdigest()
    write_json(folder / "key.json", {"key": key, "names": list(data), "digests": digests})


def read_data(folder: Path, key: str) -> dict[str, Any] | None:
    """The Datasets of an earlier attempt if all are there, undamaged and with the same key;
    otherwise None.
    """
    import xarray

    try:
        known = json.loads((folder / "key.json").read_text(encoding="utf-8"))
        if known["key"] != key:
            return None
        found = {}
        for name in known["names"]:
            content = (folder / f"{name}.nc").read_bytes()
            if (
                hashlib.sha256(content).hexdigest() != known["digests"][name]
            ):  # HDF5 must not see damage: it may never return
                return None
            with xarray.open_dataset(
                io.BytesIO(content), engine="h5netcdf", decode_times=False, mask_and_scale=False
            ) as data:
                found[name] = data.load()
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return found


def write_tables(folder: Path, data: Data) -> list[str]:
    """Write every Dataset as CSV, one file per set of axes, and return the names of those that are
    too long.
    """
    left_out = []
    for name, dataset in data.items():
        shown = readable(dataset)
        kinds: dict[tuple[str, ...], list[str]] = {}
        for variable in shown.data_vars:
            axes = tuple(map(str, shown[variable].dims))
            if axes and shown[variable].size:
                kinds.setdefault(axes, []).append(str(variable))
        for axes, variables in kinds.items():
            label = name if len(kinds) == 1 else f"{name}_by_{'_'.join(axes)}"
            if max(shown[variable].size for variable in variables) > MOST_ROWS:
                left_out.append(label)
                continue
            write_text(
                folder / f"{label}.csv",
                shown[variables].reset_coords(drop=True).to_dataframe().to_csv(),
            )
    return left_out


def readable(dataset: Any) -> Any:
    """A Dataset for readers: the tokens of a run, the end of each token of a limit; others
    unchanged.
    """
    import xarray

    if MARKER in dataset.attrs:
        tokens = to_xarray(run_from(dataset))
        return tokens[[name for name in ("x", "z") if name in tokens]]
    if dataset.attrs.get("kind") == "limit":
        ends = dataset["points"].values @ dataset["basis"].values.T
        columns = {"label": dataset["labels"].values, "leader": dataset["leaders"].values}
        columns |= {f"limit_{axis + 1}": ends[:, axis] for axis in range(ends.shape[1])}
        return xarray.Dataset({name: ("token", values) for name, values in columns.items()})
    return dataset
