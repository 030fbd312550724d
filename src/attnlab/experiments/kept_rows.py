"""What was measured of the cases of an experiment: in memory, and in a SQLite file from which an
interrupted attempt goes on.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from attnlab.experiments.exact import from_text, to_text
from attnlab.experiments.results import remove
from attnlab.spec import canonical_text
from attnlab.sweep.grid import Cell
from attnlab.sweep.rows import OK, NotRows, Row, Rows


def digest_of(part: str, case: Cell) -> str:
    """A name for a case of a part."""
    return _digest(canonical_text([part, case]))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


class KeptRows:
    """What was measured, by the digest of its case; also in the rows of a file, where there is one.

    key: what rows depend on beside their case. Rows with another key are measured again, and
    damaged rows, too.
    """

    def __init__(self, rows: Rows | None = None, key: str = ""):
        self._rows, self._key = rows, key
        self._texts: dict[str, str] = {}
        for row in rows.read() if rows is not None else ():
            text = row.numbers.get("text")
            if (
                row.measured == key
                and isinstance(text, str)
                and row.numbers.get("check") == _digest(text)
            ):
                self._texts[row.digest] = text

    def __contains__(self, digest: str) -> bool:
        return digest in self._texts

    def value(self, digest: str) -> Any:
        """What was measured of a case. It is always read from its text, so that a restart changes
        nothing.
        """
        return from_text(self._texts[digest])

    def row(self, digest: str, case: Cell, measured: Any) -> Row:
        """The row of a case, for `write`."""
        text = to_text(measured)
        return Row(digest, OK, case, {"text": text, "check": _digest(text)}, measured=self._key)

    def write(self, rows: list[Row]) -> None:
        """Keep rows. After this call they are in the file, even if the process is killed."""
        if self._rows is not None:
            self._rows.write(rows)
        self._texts |= {row.digest: row.numbers["text"] for row in rows}


@contextlib.contextmanager
def open_rows(folder: Path, key: str) -> Iterator[KeptRows]:
    """The rows that an earlier attempt left in a folder, open for more. A file that cannot be read
    is replaced.
    """
    rows = Rows(folder / "rows.sqlite")
    with contextlib.ExitStack() as stack:
        folder.mkdir(exist_ok=True)
        try:
            stack.enter_context(rows.open())
            kept = KeptRows(rows, key)
        except (NotRows, NotADirectoryError):
            stack.close()
            remove(folder)
            folder.mkdir()
            stack.enter_context(rows.open())
            kept = KeptRows(rows, key)
        yield kept
