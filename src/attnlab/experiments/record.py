"""The records of an experiment: Experiment, Claim, and what compute and figures pass to each
other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from attnlab.displayed import Displayed, short_repr
from attnlab.types import Spec, Trajectory

SIZES = ("full", "small")
"""What the paper (or we) show, and the same in a few seconds, for tests and for a first look."""

Data = Mapping[str, Any]
"""{name: xarray.Dataset}: all that claims and figures are made of. (Any: xarray is loaded when it
is first needed.)
"""

Table = tuple[str, Sequence[Any], Sequence[Sequence[Any]]]
"""A legend that says what a row is, the names of the columns, and the rows."""


@dataclass(frozen=True, kw_only=True)
class Claim(Displayed):
    """A sentence with a number in it: it holds when low <= measured <= high.

    text: the claim in words. measured: the number that is compared. low, high: where it may be.
    published: what the paper says or shows, in its own numbers; "" where it says nothing.
    because: where the interval comes from: a theorem, a closed form, an independent measurement;
    never our own output. differs: where the published numerics differ from ours, and why; "" where
    they do not.

    What a reader wants to know, where `measured` is only the farthest end of an interval, or a
    distance: quantity: its name ("exponent / H"). value: its value; without one, `measured`.
    interval: half its width, or (low, high). sample: what the interval is ("95 %, 40 starts").
    unit: of value and interval. resolution: the smallest difference that counts. expected: what it
    should be ("-1"); without one, the allowed interval.
    """

    text: str
    measured: float
    published: str = ""
    low: float = -math.inf
    high: float = math.inf
    because: str = ""
    differs: str = ""
    quantity: str = ""
    value: float | None = None
    interval: float | tuple[float, float] | None = None
    sample: str = ""
    unit: str = ""
    resolution: float | None = None
    expected: str = ""
    __repr__ = short_repr

    @property
    def holds(self) -> bool:
        """Whether the measured number is where it may be; NaN is nowhere."""
        return bool(self.low <= self.measured <= self.high)

    @property
    def allowed(self) -> str:
        """The interval in words."""
        if self.low == self.high:
            return f"{self.low:.6g}"
        if math.isinf(self.high):
            return f"at least {self.low:.4g}"
        if math.isinf(self.low):
            return f"at most {self.high:.4g}"
        return f"{self.low:.4g} to {self.high:.4g}"

    @property
    def ends(self) -> tuple[float, float] | None:
        """(low, high) of the interval around the value, None where there is none."""
        if self.interval is None:
            return None
        if isinstance(self.interval, tuple):
            return float(self.interval[0]), float(self.interval[1])
        middle = self.measured if self.value is None else self.value
        return float(middle) - float(self.interval), float(middle) + float(self.interval)

    @property
    def says(self) -> str:
        """The quantity with its interval: "exponent / H = -1.004 ± 0.009 (95 %, 40 starts)";
        without a quantity the number.
        """
        value = self.measured if self.value is None else self.value
        unit = f" {self.unit}" if self.unit else ""
        words = f"{self.quantity} = {value:.4g}" if self.quantity else f"{value:.4g}"
        if isinstance(self.interval, tuple):
            words += f"{unit}, {self.interval[0]:.4g} to {self.interval[1]:.4g}"
        elif self.interval is not None:
            words += f" ± {self.interval:.2g}"
        words += unit
        return words + (f" ({self.sample})" if self.sample else "")

    def __str__(self) -> str:
        """The claim as a reader wants it."""
        reason = f", because {self.because}" if self.because else ""
        before = "" if self.quantity else f"{self.text} "
        return f"{before}{self.says}, expected {self.expected or self.allowed}{reason}"

    def as_dict(self) -> dict[str, Any]:
        """Everything, for JSON: numbers that JSON has not are None."""
        ends = self.ends or (math.nan, math.nan)
        entries = {
            "text": self.text,
            "measured": float(self.measured),
            "published": self.published,
            "low": float(self.low),
            "high": float(self.high),
            "because": self.because,
            "differs": self.differs,
            "allowed": self.allowed,
            "holds": self.holds,
            "quantity": self.quantity,
            "value": float(self.measured if self.value is None else self.value),
            "value_low": ends[0],
            "value_high": ends[1],
            "sample": self.sample,
            "unit": self.unit,
            "resolution": math.nan if self.resolution is None else self.resolution,
            "expected": self.expected or self.allowed,
            "says": self.says,
        }
        return {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in entries.items()
        }


@dataclass(frozen=True)
class Experiment(Displayed):
    """One picture and its claims.

    title: what it shows, a short line. cite: its source. about: plain text for a reader of the
    picture, with blank lines between paragraphs. compute: Parts (parts.py), or a function of size
    and progress; it may take keyword options beyond these, such as model=. specs(size): the runs as
    Specs, to be kept beside the results. needs: the extra that must be installed. hurry: for a
    reader in a hurry, {"showed": what the paper or the slide showed, "found": what we find,
    "number": words of the claim with the one number, "caveat": ..}. tables(data): tables for its
    page, by heading. folder: where its files are, None where it was typed in.
    """

    name: str
    title: str
    cite: str
    about: str
    compute: Callable[..., dict[str, Any]]
    claims: Callable[[Data], list[Claim]]
    figures: Callable[[Data], dict[str, Any]]
    spoils: Mapping[str, Callable[[Data], Data]]
    movie: Callable[[Data], Trajectory] | None = None
    movie_options: Mapping[str, Any] = field(default_factory=dict)
    specs: Callable[[str], Mapping[str, Spec]] | None = None
    needs: str = ""
    hurry: Mapping[str, str] = field(default_factory=dict)
    tables: Callable[[Data], Mapping[str, Table]] | None = None
    folder: Path | None = None
    __repr__ = short_repr
