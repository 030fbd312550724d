"""The records of the tour: Stop, the Chapter that it returns, and the parts of a chapter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any


@dataclass(frozen=True)
class Text:
    """A paragraph. label: words in bold before it, such as What you see."""

    text: str
    label: str = ""


@dataclass(frozen=True)
class Formula:
    """A line of mathematics, in plain letters."""

    text: str


@dataclass(frozen=True, eq=False)
class Picture:
    """A figure or movie as the bytes of a file. words: the text alternative. live: the record of a
    viewer for it.
    """

    file: str  # polytope_2d.png
    content: bytes
    words: str
    caption: str = ""
    is_narrow: bool = False  # readable on a phone without scrolling
    live: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Table:
    """A small table of plain words."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Row:
    """A line of the summary: one question and its answer.

    verdict    : the name of an Outcome, or for a trained model "right", "in part", "not so" or "no
               evidence", or "not here"
    limits     : the certified or proved number of limits, "undecided", or "" if there was no
                 question
    decided_at : the time after which no leader changes any more
    grade      : the grade of the limit; "proved": every rounding is enclosed
    error      : the error of the run, measured by a finer run
    is_ok      : False makes the whole tour end with exit code 1
    """

    stop: str
    name: str
    shows: str
    verdict: str
    predicts: str = ""
    found: str = ""
    limits: int | str = ""
    decided_at: float | None = None
    error: float | None = None
    n: int | None = None
    d: int | None = None
    time_asked: float | None = None
    time_reached: float | None = None
    status: str = ""
    seconds: float | None = None
    is_ok: bool = True
    grade: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return all fields, for JSON."""
        return {one.name: getattr(self, one.name) for one in fields(self)}


@dataclass(frozen=True)
class Card:
    """One row with its heading, verdict and numbers. The text about it follows below."""

    title: str
    row: Row
    facts: Mapping[str, str]


@dataclass(frozen=True, eq=False)
class Chapter:
    """The result of a stop: the parts in their order, rows of the summary, and further files next
    to the page.
    """

    parts: Sequence[Any]
    rows: Sequence[Row] = ()
    beside: Sequence[Picture] = ()

    @property
    def pictures(self) -> list[Picture]:
        """Every picture that becomes a file."""
        return [*(part for part in self.parts if isinstance(part, Picture)), *self.beside]


@dataclass(frozen=True)
class Stop:
    """A stop: its place on the page, its title, and tell(context) -> Chapter."""

    number: int
    title: str
    tell: Callable[[Any], Chapter] = field(repr=False)


def left_out(row: Row, opening: str, needs: str) -> Chapter:
    """Return the chapter of a stop whose model is unavailable; row.found says why."""
    return Chapter(
        [
            Text(opening),
            Text(f"This stop needs {needs}, which is unavailable: {row.found}", "Left out."),
        ],
        [row],
    )
