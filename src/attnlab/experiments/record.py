"""The records of an experiment: Experiment, Claim, and what compute and figures pass to each other."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from attnlab.displayed import Displayed, short_repr
from attnlab.types import Spec, Trajectory

SIZES = ("full", "small")
"""What the paper (or we) show, and the same in a few seconds, for tests and for a first look."""

Data = Mapping[str, Any]
"""{name: xarray.Dataset}: all that claims and figures are made of. (Any: xarray is loaded when it is first needed.)"""


@dataclass(frozen=True)
class Claim(Displayed):
    """A sentence with a number in it: it holds when low <= measured <= high.

    published: what the paper says or shows, in its own numbers; "" where it says nothing.
    because: where the interval comes from: a theorem, a closed form, somebody else's measurement; never our own output.
    differs: where the published numerics differ from ours, and why; "" where they do not.
    """

    text: str
    measured: float
    published: str = ""
    low: float = -math.inf
    high: float = math.inf
    because: str = ""
    differs: str = ""
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

    def as_dict(self) -> dict[str, Any]:
        """Everything, for JSON: numbers that JSON has not are None."""
        numbers = {name: float(getattr(self, name)) for name in ("measured", "low", "high")}
        entries = {**asdict(self), **numbers, "allowed": self.allowed, "holds": self.holds}
        return {name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in entries.items()}


@dataclass(frozen=True)
class Experiment(Displayed):
    """One picture and its claims.

    title: what it shows, a short line. cite: where it is from. about: a paragraph for a reader who sees only the picture; plain
    text, blank lines between paragraphs. compute: Parts (parts.py), or a function of size and progress; it may take keyword
    options beyond these, such as model=.
    specs(size): the runs as Specs, to be kept beside the results. needs: the extra that must be installed.
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
    __repr__ = short_repr
