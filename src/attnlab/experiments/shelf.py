"""The folder of an experiment's results: written beside its place and moved there when complete, so that nothing is half there.

    results/NAME/   index.html  record.json  claims.csv  FIGURE.png  FIGURE.pdf  NAME.gif  NAME.mp4
                    data/SET.nc  data/SET.csv  specs/RUN.toml  verdicts.csv
"""

from __future__ import annotations

import contextlib
import csv
import json
import os
import shutil
import uuid
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from attnlab.experiments.record import Data
from attnlab.store import MARKER, run_from, to_xarray

RECORD = "record.json"
MOST_ROWS = 60_000
"""A table with more rows is left to NetCDF: nobody opens it in a spreadsheet, and it would be ten times as large."""


NEEDED = ("name", "title", "cite", "about", "size", "options", "claims", "holds", "figures", "movies", "verdicts", "specs")
"""What a record must have to be shown."""


class CannotKeep(OSError):
    """A folder that results cannot be written to; the message says why and what to do."""


class InUse(ValueError):
    """Another process is making these results now."""


def read_record(folder: Path) -> dict[str, Any] | None:
    """The record of complete results, or None; also where an older attnlab wrote it otherwise."""
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(record, dict) or record.get("is_complete") is not True or any(name not in record for name in NEEDED):
        return None
    return record if record["figures"] and isinstance(record["claims"], list) else None


def check_folder(folder: Path) -> None:
    """Refuse a folder that takes no files, before anything is computed."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".{uuid.uuid4().hex[:8]}"
        probe.write_text("")
        probe.unlink()
    except OSError as problem:
        raise CannotKeep(f"The folder {folder} cannot be written to ({problem.strerror}): choose another one with -o.") from None


@contextlib.contextmanager
def workshop(folder: Path, name: str) -> Iterator[Path]:
    """The folder in which the results of an experiment are made, which an interrupted attempt may have begun; for one process."""
    check_folder(folder)
    place, lock = folder / f".{name}.unfinished", folder / f".{name}.lock"
    _take(lock, f"{folder / name}")
    try:
        place.mkdir(exist_ok=True)
        for leftover in place.iterdir():
            if leftover.name == "data":
                continue
            if leftover.is_dir():                                    # figures of another text may be among them
                shutil.rmtree(leftover)
            else:
                leftover.unlink()
        for old in folder.glob(f".{name}.*.old"):                    # of an attempt that was ended between two renamings
            if (folder / name).exists():
                shutil.rmtree(old, ignore_errors=True)
            else:
                os.replace(old, folder / name)
        yield place
    finally:
        lock.unlink(missing_ok=True)


def _take(lock: Path, what: str) -> None:
    """Make a file that says who is at work; one of a process that is gone is taken over."""
    for _ in range(2):
        try:
            with lock.open("x", encoding="utf-8") as file:
                file.write(str(os.getpid()))
            return
        except FileExistsError:
            try:
                owner = int(lock.read_text(encoding="utf-8") or 0)
                os.kill(owner, 0)
            except (ValueError, OSError):
                lock.unlink(missing_ok=True)
                continue
            raise InUse(f"Process {owner} is making {what} now: wait for it, or choose another folder with -o. If there is no "
                        f"such process, remove {lock}.") from None
    raise InUse(f"{lock} cannot be taken: another process is making {what}.")


def move_into_place(made: Path, target: Path) -> None:
    """made becomes target; what was there before is removed when the new is in place."""
    before = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}.old")
    if target.exists() or target.is_symlink():
        os.replace(target, before)
    os.replace(made, target)
    if before.is_dir() and not before.is_symlink():
        shutil.rmtree(before, ignore_errors=True)
    else:
        before.unlink(missing_ok=True)


def write_whole(path: Path, text: str) -> None:
    """Write a text file under a temporary name, then rename it."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    try:
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_json(path: Path, thing: Any) -> None:
    """Write JSON that every reader takes."""
    write_whole(path, json.dumps(thing, indent=1, allow_nan=False) + "\n")


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write a table as CSV; all rows have the keys of the first."""
    rows = list(rows)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]) if rows else ["nothing"])
        writer.writeheader()
        writer.writerows(rows)


def write_data(folder: Path, data: Data, key: str) -> None:
    """Every Dataset as NetCDF, then the key that says that all of them are there."""
    folder.mkdir(exist_ok=True)
    for name, dataset in data.items():
        temporary = folder / f".{name}.tmp"
        try:
            dataset.to_netcdf(temporary, engine="h5netcdf")
            os.replace(temporary, folder / f"{name}.nc")
        finally:
            temporary.unlink(missing_ok=True)
    write_json(folder / "key.json", {"key": key, "names": list(data)})


def read_data(folder: Path, key: str) -> dict[str, Any] | None:
    """The Datasets of an earlier attempt, if all are there and they are of the same key; else None."""
    import xarray

    try:
        known = json.loads((folder / "key.json").read_text(encoding="utf-8"))
        if known["key"] != key:
            return None
        found = {}
        for name in known["names"]:
            with xarray.open_dataset(folder / f"{name}.nc", engine="h5netcdf", decode_times=False, mask_and_scale=False) as data:
                found[name] = data.load()
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found


def write_tables(folder: Path, data: Data) -> list[str]:
    """Every Dataset as CSV, a file for each set of axes; returns the names of those that are too long for it."""
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
            shown[variables].reset_coords(drop=True).to_dataframe().to_csv(folder / f"{label}.csv")
    return left_out


def readable(dataset: Any) -> Any:
    """What a person would want of a Dataset: of a run its tokens, of a limit where each token ends; others as they are."""
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
