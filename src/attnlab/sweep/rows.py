"""The results of a sweep: one SQLite file with one row per cell, written by one process.
Experiments resume from it, too.

    with Rows("phase.sqlite", axes=["n"], numbers=["spread"]).open() as rows:
        todo = [cell for digest, cell in cells if digest not in rows.done()]
        rows.write([Row(digest, "ok", {"n": 2}, {"spread": 0.3})])
    list(Rows("phase.sqlite").read())

The file is made completely and then renamed. Each `write` is one transaction, so a row exists or
not, whenever the process ends.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import math
import os
import sqlite3
import struct
import sys
import urllib.parse
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from attnlab.displayed import Displayed, short_repr
from attnlab.files import CannotWrite, cannot_write, replace_file
from attnlab.sweep.lock import hold_lock

FORMAT = "attnlab sweep 1"
APPLICATION = 0x61666D31
"""SQLite's application_id ("afm1" in ASCII), which identifies our files before SQLite opens
them.
"""

OK, REFUSED, CRASHED = "ok", "refused", "crashed"
"""Statuses besides the names of types.Status: the cell is complete; its Spec was refused; its
worker ended during it.
"""

_SCHEMA = """
PRAGMA application_id = {application};
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT);
CREATE TABLE cells (digest TEXT PRIMARY KEY, status TEXT NOT NULL, error TEXT, seconds REAL, seed INTEGER, versions TEXT,
                    measured TEXT, axes TEXT, numbers TEXT);
"""
_COLUMNS = (
    "digest",
    "status",
    "error",
    "seconds",
    "seed",
    "versions",
    "measured",
    "axes",
    "numbers",
)


class NotRows(ValueError):
    """Raised for a file that is not a database of a sweep, or is damaged. The file was not
    changed.
    """


@dataclass(frozen=True)
class Row(Displayed):
    """The result of one cell of a sweep.

    Attributes
    ----------
    digest : str
        The digest of the Spec of the cell.
    status : str
        "ok", or why the cell is not complete.
    axes : mapping
        {key: value} of the cell.
    numbers : mapping
        {name: a float, a whole number, a word or None}. NaN is kept as None. It may be empty if the
        status is not "ok".
    error : str or None
        A sentence, if the status is not "ok".
    seconds, seed, versions : float, int and str, or None
        The computing time, the seed of the cell, and the versions of the libraries.
    measured : str
        The digest of the table of numbers for which it was computed.

    Examples
    --------
    >>> import attnlab as al
    >>> row = al.sweep.Row("0123456789abcdef", "ok", {"n": 2}, {"spread": 0.5})
    >>> al.sweep.Row.from_json(row.to_json()) == row
    True
    """

    digest: str
    status: str
    axes: Mapping[str, Any]
    numbers: Mapping[str, Any] = field(default_factory=dict)
    error: str | None = None
    seconds: float | None = None
    seed: int | None = None
    versions: str | None = None
    measured: str = ""
    __repr__ = short_repr

    @property
    def is_ok(self) -> bool:
        """Whether the cell is complete."""
        return self.status == OK

    def to_json(self) -> dict[str, Any]:
        """Return the row as a table that JSON holds. `from_json` reads it."""
        return {name: getattr(self, name) for name in _COLUMNS} | {
            "axes": dict(self.axes),
            "numbers": {name: _to_json(value) for name, value in self.numbers.items()},
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Row:
        """Return the row in a table from JSON.

        Parameters
        ----------
        data : mapping
            The table, as `to_json` returns it.

        Returns
        -------
        Row
            The row.
        """
        return cls(
            **{**data, "numbers": {name: _read(value) for name, value in data["numbers"].items()}}
        )


def _to_json(value: Any) -> Any:
    """Return a number as JSON: NaN as null, infinity as a word."""
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else "inf" if value > 0 else "-inf"
    return value


def _read(value: Any) -> Any:
    return (
        {"inf": math.inf, "-inf": -math.inf}.get(value, value) if isinstance(value, str) else value
    )


class Rows:
    """The SQLite file of results at `path`. Only one process writes at a time. Any number of
    processes may read.

    Parameters
    ----------
    path : str or path
        The name of the file.
    axes, numbers : sequence of str, optional
        The columns of the view `wide`, for other programs. They are used when the file is opened
        for writing.
    source : str, optional
        The name of the sweep's file.

    Examples
    --------
    >>> import attnlab as al
    >>> with al.sweep.Rows("results.sqlite").open() as rows:
    ...     rows.write([al.sweep.Row("0123456789abcdef", "ok", {"n": 2}, {"spread": 0.5})])
    >>> [row.numbers["spread"] for row in al.sweep.Rows("results.sqlite").read()]
    [0.5]
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        axes: Sequence[str] = (),
        numbers: Sequence[str] = (),
        source: str = "",
    ):
        self.path = Path(path)
        self.axes, self.numbers, self.source = tuple(axes), tuple(numbers), source
        self._connection: sqlite3.Connection | None = None

    @contextlib.contextmanager
    def open(self) -> Iterator[Rows]:
        """Return a context in which only this process writes. The file is created if it does not
        exist.

        Raises
        ------
        InUse
            Another process writes.
        NotRows
            The file is not a database of a sweep.
        CannotWrite
            The folder or the file cannot be written to.
        """
        check_place(self.path)
        lock = self.path.with_name(f".{self.path.name}.lock")
        with hold_lock(lock, f"writing the results of this sweep, {self.path},"):
            if self.path.exists():
                check_file(self.path)
            else:
                self._create()
            connection = sqlite3.connect(self.path, isolation_level=None, timeout=60.0)
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = NORMAL")
                self._connection = connection
                self._describe()
                yield self
            except sqlite3.Error as problem:
                raise _explain(self.path, problem) from problem
            finally:
                self._connection = None
                connection.close()

    def done(self, measured: str = "", retry: Collection[str] = ()) -> set[str]:
        """Return the digests of the cells that need not be computed.

        Parameters
        ----------
        measured : str, optional
            The digest of the table of numbers. An empty one accepts every row.
        retry : collection of str, optional
            Statuses whose cells are to be computed again, or "failed" for all but "ok".

        Returns
        -------
        set of str
            The digests.
        """
        return {
            digest
            for digest, status in self.statuses(measured).items()
            if status not in retry and not (status != OK and "failed" in retry)
        }

    def statuses(self, measured: str = "") -> dict[str, str]:
        """Return {digest: status} of the rows.

        Parameters
        ----------
        measured : str, optional
            The digest of the table of numbers of the rows. An empty one accepts every row.
        """
        question, values = "SELECT digest, status FROM cells", []
        if measured:
            question, values = f"{question} WHERE measured = ?", [measured]
        with self._reading() as connection:
            return {
                digest: sys.intern(status)
                for digest, status in connection.execute(question, values)
            }

    def write(self, rows: Iterable[Row]) -> None:
        """Write rows in one transaction. A row of the same digest is replaced.

        Parameters
        ----------
        rows : iterable of Row
            The rows.
        """
        assert self._connection is not None, "Rows.write needs the context of Rows.open."
        marks = ", ".join("?" * len(_COLUMNS))
        packed = [_pack(row) for row in rows]
        with self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.executemany(
                f"INSERT OR REPLACE INTO cells ({', '.join(_COLUMNS)}) VALUES ({marks})", packed
            )

    def read(self, *, failed: bool = False) -> Iterator[Row]:
        """Return every row in the order of writing. The file need not be open.

        Parameters
        ----------
        failed : bool, optional
            Whether to return only the rows that failed.

        Returns
        -------
        iterator of Row
            The rows.
        """
        where = f"WHERE status != '{OK}'" if failed else ""
        with self._reading() as connection:
            for found in connection.execute(
                f"SELECT {', '.join(_COLUMNS)} FROM cells {where} ORDER BY rowid"
            ):
                yield _unpack(self.path, dict(zip(_COLUMNS, found, strict=True)))

    def count(self) -> dict[str, int]:
        """Return {status: number of rows}."""
        with self._reading() as connection:
            return dict(
                connection.execute(
                    "SELECT status, count(*) FROM cells GROUP BY status ORDER BY status"
                )
            )

    def meta(self) -> dict[str, str]:
        """Return the metadata of the file: format, source, axes and numbers (JSON), and the time of
        creation.
        """
        with self._reading() as connection:
            return dict(connection.execute("SELECT key, value FROM meta"))

    def delete(self, digests: Iterable[str]) -> None:
        """Remove the rows of some cells, in one transaction.

        Parameters
        ----------
        digests : iterable of str
            The digests of the cells.
        """
        assert self._connection is not None, "Rows.delete needs the context of Rows.open."
        with self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.executemany(
                "DELETE FROM cells WHERE digest = ?", ((digest,) for digest in digests)
            )

    @contextlib.contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """Yield the open connection, or one that only reads. Refuse a file that cannot be read."""
        try:
            if self._connection is not None:
                yield self._connection
                return
            check_file(self.path)
            connection = _connect_to_read(self.path)
            try:
                yield connection
            finally:
                connection.close()
        except sqlite3.Error as problem:
            raise _explain(self.path, problem) from problem

    def _create(self) -> None:
        """Create the file under another name, then rename it, so that an interrupted process leaves
        no partial file.
        """
        created = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        with replace_file(self.path) as temporary:
            connection = sqlite3.connect(temporary, isolation_level=None)
            try:
                connection.executescript(_SCHEMA.format(application=APPLICATION))
                connection.executemany(
                    "INSERT INTO meta VALUES (?, ?)", [("format", FORMAT), ("created", created)]
                )
            except sqlite3.Error as problem:
                raise cannot_write(self.path, str(problem)) from problem
            finally:
                connection.close()

    def _describe(self) -> None:
        """Record axes and numbers, and make the view that shows them as columns, if they have
        changed.
        """
        assert self._connection is not None
        words = {
            "source": self.source,
            "axes": json.dumps(self.axes),
            "numbers": json.dumps(self.numbers),
        }
        if not self.axes or words.items() <= self.meta().items():
            return
        columns = ["digest", "status", "error", "seconds", "seed"]
        taken = set(columns)
        for table, names in (("axes", self.axes), ("numbers", self.numbers)):
            for name in names:
                path, column = (
                    "$." + json.dumps(name, ensure_ascii=False),
                    name if name not in taken else f"{table}.{name}",
                )
                taken.add(column)
                columns.append(
                    f"json_extract({table}, {_quote(path, chr(39))}) AS {_quote(column, chr(34))}"
                )
        with self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", words.items())
            self._connection.execute("DROP VIEW IF EXISTS wide")
            self._connection.execute(f"CREATE VIEW wide AS SELECT {', '.join(columns)} FROM cells")


def check_place(path: Path) -> None:
    """Refuse a place where no database can be written, before anything is computed."""
    if not path.parent.is_dir():
        raise CannotWrite(f"There is no folder {path.parent}. Create it first.")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise CannotWrite(
            f"You may not write to the folder {path.parent}, which must hold the results {path}. "
            "Copy the sweep's file to another folder."
        )
    if path.is_dir():
        raise CannotWrite(f"{path} is a folder, but the results need this name. Rename it.")
    if path.exists() and not os.access(path, os.R_OK | os.W_OK):
        raise CannotWrite(
            f"{path} cannot be written to: change its permissions, or copy the sweep's file to"
            " another folder."
        )


def check_file(path: Path) -> None:
    """Refuse a file that is not an undamaged database of ours, without changing it."""
    if not path.exists():
        raise FileNotFoundError(f"There are no results at {path}. Run the sweep first.")
    if not path.is_file():
        raise NotRows(f"{path} is not a file but a device or a pipe.")
    with path.open("rb") as file:
        head = file.read(100)
    if len(head) < 100 or not head.startswith(b"SQLite format 3\0"):
        raise NotRows(
            f"{path} is not a database of a sweep. Nothing in it was changed. Move it elsewhere and"
            " run the sweep again."
        )
    if struct.unpack(">I", head[68:72])[0] != APPLICATION:
        raise NotRows(
            f"{path} is a SQLite database, but not that of a sweep of attnlab. Nothing in it was"
            " changed. Move it elsewhere and run the sweep again."
        )
    try:
        with contextlib.closing(_connect_to_read(path)) as connection:
            ((word,),) = connection.execute(
                "SELECT value FROM meta WHERE key = 'format'"
            ).fetchall() or [("unknown",)]
            if word != FORMAT:
                raise NotRows(
                    f"{path} has the format {word!r}, but this version of attnlab reads {FORMAT!r}."
                    " Nothing in it was changed. Use the version of attnlab that wrote it."
                )
            problems = [found for (found,) in connection.execute("PRAGMA quick_check(1)")]
            present = [name for _, name, *_ in connection.execute("PRAGMA table_info(cells)")]
    except sqlite3.Error as problem:
        raise _explain(path, problem) from problem
    if problems != ["ok"]:
        raise _explain(path, sqlite3.DatabaseError(str(problems[0])))
    if tuple(present) != _COLUMNS:
        raise _explain(path, sqlite3.DatabaseError("columns are missing"))


def _connect_to_read(path: Path) -> sqlite3.Connection:
    """Return a connection that changes nothing. Without a log of another process it creates no log
    files either.
    """
    place = urllib.parse.quote(str(path.resolve()))
    has_log = path.with_name(f"{path.name}-wal").exists()
    return sqlite3.connect(
        f"file:{place}?{'mode=ro' if has_log else 'mode=ro&immutable=1'}", uri=True, timeout=60.0
    )


def _explain(path: Path, problem: sqlite3.Error) -> OSError | NotRows:
    """Return the error for the user that an error of SQLite means."""
    code = getattr(problem, "sqlite_errorname", "")
    if code.startswith(
        ("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")
    ):
        return cannot_write(path, str(problem), is_full=code.startswith("SQLITE_FULL"))
    if code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return CannotWrite(f"{path} is locked by another program. Close it and start again.")
    words = " ".join(str(problem).split())[:120].rstrip(".")
    return NotRows(
        f"{path} is damaged ({words}). Nothing in it was changed. Restore a copy, or move it"
        " elsewhere and run the sweep again."
    )


def _pack(row: Row) -> list[Any]:
    data = row.to_json()
    return [
        json.dumps(data[name], allow_nan=False) if name in ("axes", "numbers") else data[name]
        for name in _COLUMNS
    ]


def _unpack(path: Path, data: dict[str, Any]) -> Row:
    try:
        return Row.from_json(
            {**data, "axes": json.loads(data["axes"]), "numbers": json.loads(data["numbers"])}
        )
    except (ValueError, TypeError, AttributeError) as problem:
        raise _explain(
            path, sqlite3.DatabaseError(f"the row {data['digest']} cannot be read")
        ) from problem


def _quote(words: str, mark: str) -> str:
    return mark + words.replace(mark, 2 * mark) + mark
