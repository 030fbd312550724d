"""The records of the theory: a checkable statement, its Prediction before a run and its Verdict
after it.
"""

from __future__ import annotations

import enum
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from attnlab.displayed import LONGEST, Displayed, short_repr, shorten


class Outcome(enum.Enum):
    """The outcome of a check. Every value is a sentence.

    Examples
    --------
    >>> import attnlab as al
    >>> al.Outcome.UNDECIDED.value
    'These data cannot decide it.'
    """

    SUPPORTED = "The data do what the statement says, as far as they can show it."
    CONTRADICTED = "The data break the claim, by more than their error."
    OUT_OF_SCOPE = "A hypothesis of the statement does not hold here, so it says nothing."
    UNDECIDED = "These data cannot decide it."

    def __repr__(self) -> str:
        return f"Outcome.{self.name}"


@dataclass(frozen=True)
class Hypothesis(Displayed):
    """One condition: its words, the number behind it, the required value, and whether it holds.

    holds None: not evaluated (it is about first tokens that were not given), or too close to
    decide; `note` says which.
    """

    says: str
    value: float
    needs: str
    holds: bool | None
    note: str = ""

    @property
    def asked(self) -> str:
        """The condition, with the measured and the required number."""
        return (
            self.says
            if self.value != self.value
            else f"{self.says} ({self.value:.4g}, must be {self.needs})"
        )

    def __str__(self) -> str:
        mark = {True: "yes", False: "NO", None: "?"}[self.holds]
        return f"{mark:>3}  {self.asked}{'. ' + self.note if self.note else ''}"

    def __repr__(self) -> str:
        return f"Hypothesis({shorten(str(self), LONGEST - 20)})"


@dataclass(frozen=True)
class Prediction(Displayed):
    """What a statement says about weights (and first tokens) before a run.

    Attributes
    ----------
    theorem, kind : str
        The name of the statement, and "theorem", "conjecture" or "estimate".
    applies : bool or None
        Whether all hypotheses hold. None: a hypothesis is open.
    hypotheses : tuple of Hypothesis
        Each hypothesis, with its number.
    limit : str
        What the statement says, in words.
    data : mapping
        What it says, in numbers.
    """

    theorem: str
    kind: str
    applies: bool | None
    hypotheses: tuple[Hypothesis, ...]
    limit: str
    data: Mapping[str, Any] = field(default_factory=dict)

    @property
    def unmet(self) -> tuple[Hypothesis, ...]:
        """The hypotheses that do not hold."""
        return tuple(one for one in self.hypotheses if one.holds is False)

    def __str__(self) -> str:
        word = {True: "applies", False: "does not apply", None: "may apply"}[self.applies]
        why = ""
        if self.unmet:
            why = f", it needs: {self.unmet[0].asked}"
        elif self.applies is None:
            first = next(one for one in self.hypotheses if one.holds is None)
            why = f" ({first.says}: {first.note})"
        return (
            f"{self.theorem} ({self.kind}): {word}{why}."
            f" {self.limit if self.applies is not False else ''}".rstrip()
        )

    def __repr__(self) -> str:
        return f"Prediction({shorten(str(self), LONGEST - 20)})"


KINDS = ("theorem", "conjecture", "estimate")
"""The order of the kinds in lists."""


class Predictions(list[Prediction], Displayed):
    """A list of predictions, with the open questions. It prints applicable statements first."""

    def __init__(self, predictions: Iterable[Prediction], openings: Iterable[str] = ()) -> None:
        super().__init__(predictions)
        self.openings = tuple(openings)

    @property
    def summary(self) -> str:
        """One sentence about which theorems apply; empty for a single statement."""
        if len(self) < 2:
            return ""
        theorems = [one for one in self if one.kind == "theorem"]
        sure, open_ = (
            [one.theorem for one in theorems if one.applies is applies] for applies in (True, None)
        )
        verb = "apply" if len(sure) > 1 else "applies"
        words = [
            f"{', '.join(names)} {word}"
            for names, word in ((sure, verb), (open_, "may apply"))
            if names
        ]
        return (
            f"Theorems: {'; '.join(words)}." if words else "No theorem applies." if theorems else ""
        )

    def ordered(self) -> list[Prediction]:
        """Return applicable statements first; theorems before conjectures before estimates."""
        return sorted(
            self, key=lambda one: ((True, None, False).index(one.applies), KINDS.index(one.kind))
        )

    def __str__(self) -> str:
        lines = [
            self.summary,
            *map(str, self.ordered()),
            *(f"Open here: {one}" for one in self.openings),
        ]
        return "\n".join(line for line in lines if line)

    def __repr__(self) -> str:
        return (
            f"Predictions({shorten(f'{len(self)} statements. {self.summary}', LONGEST - 40)}"
            " print() shows them.)"
        )


@dataclass(frozen=True)
class Measured(Displayed):
    """The number that decides a check. It must be <= bound; `error` is its uncertainty.

    A violation below `resolution` is not visible, so with a larger error nothing is decided. needs:
    which run would decide. is_reached: for a claim about a limit, whether the run itself is within
    the resolution of the limit. largest: the largest possible value for data of this shape and
    range. If it passes too, nothing was tested.
    """

    value: float
    bound: float
    error: float
    resolution: float
    evidence: str
    needs: str = ""
    is_reached: bool = True
    details: Mapping[str, Any] = field(default_factory=dict)
    largest: float = math.inf
    __repr__ = short_repr


@dataclass(frozen=True)
class Verdict(Displayed):
    """What a statement says about a run. It supports the statement only if measured <= bound.

    Attributes
    ----------
    theorem, kind : str
        The name of the statement, and "theorem", "conjecture" or "estimate".
    outcome : Outcome
        The outcome of the check.
    measured, bound : float
        The measured number, and its largest allowed value.
    resolution : float
        A violation below this size is not visible.
    error : float
        The uncertainty of `measured`, in its own unit.
    evidence : str
        How the number was measured, in words.
    unmet : str
        What fails, or what would decide.
    hypotheses : tuple of Hypothesis
        Each hypothesis, with its number.
    details : mapping
        More numbers.
    run_error : float
        The error of the run, relative to its largest token. It is the same in all verdicts about
        one run.
    """

    theorem: str
    kind: str
    outcome: Outcome
    measured: float
    bound: float
    resolution: float
    error: float
    evidence: str
    unmet: str = ""
    hypotheses: tuple[Hypothesis, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    run_error: float = math.nan

    def __str__(self) -> str:
        run = "" if math.isnan(self.run_error) else f", run error {self.run_error:.2g}"
        number = f" (measured {self.measured:.3g} ± {self.error:.2g}, bound {self.bound:.3g}{run})"
        number = "" if self.measured != self.measured else number
        why = f": {self.unmet}" if self.unmet else ""
        return f"{self.theorem} ({self.kind}): {self.outcome.name}{number}{why}"

    def __repr__(self) -> str:
        return f"Verdict({shorten(str(self), LONGEST - 20)})"

    def paragraph(self) -> str:
        """Return the verdict with its evidence and its hypotheses, as a text to print."""
        lines = [str(self), self.outcome.value, self.evidence, *map(str, self.hypotheses)]
        lines += [f"{name}: {value}" for name, value in self.details.items()]
        return "\n".join(line for line in lines if line)


def sort_verdicts(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Return decided verdicts first; theorems before conjectures before estimates."""
    order = [Outcome.CONTRADICTED, Outcome.SUPPORTED, Outcome.UNDECIDED, Outcome.OUT_OF_SCOPE]
    return sorted(verdicts, key=lambda one: (order.index(one.outcome), KINDS.index(one.kind)))


def count_outcomes(verdicts: Iterable[Verdict]) -> str:
    """Return the number of verdicts per outcome, in words."""
    found = Counter(one.outcome for one in verdicts)
    return ", ".join(f"{found[outcome]} {outcome.name}" for outcome in Outcome if found[outcome])


class Verdicts(list[Verdict], Displayed):
    """The verdicts about one run: a list that prints decided verdicts first."""

    @property
    def summary(self) -> str:
        """One sentence with the number of verdicts per outcome."""
        return f"{count_outcomes(self)}." if self else "No verdicts."

    def __str__(self) -> str:
        return "\n".join([*map(str, sort_verdicts(self)), self.summary])

    def __repr__(self) -> str:
        return f"Verdicts({len(self)} statements: {self.summary} print() shows them.)"


class BatchVerdicts(list[Verdicts], Displayed):
    """The verdicts about a batch: Verdicts of each member."""

    @property
    def summary(self) -> str:
        """One sentence with the number of verdicts per outcome, over all members."""
        return (
            f"{len(self)} members:"
            f" {count_outcomes(one for member in self for one in member) or 'no verdicts'}."
        )

    def __str__(self) -> str:
        return "\n".join(
            [
                self.summary,
                *(f"Member {number}: {member.summary}" for number, member in enumerate(self)),
            ]
        )

    def __repr__(self) -> str:
        return f"BatchVerdicts({self.summary} [k] has those of member k.)"


@dataclass(frozen=True, eq=False)
class Theorem(Displayed):
    """A checkable statement, registered by the one file that defines it.

    kind        "theorem", "conjecture" or "estimate"
    hypotheses  (dynamics, x0 or None) -> Hypothesis, ...
    predict     (dynamics, x0 or None) -> (words, data), called only if no hypothesis fails
    measure     (Evidence) -> Measured, called only if every hypothesis holds
    holds, breaks, short    () -> Trajectory: a run that satisfies it, one outside its hypotheses,
                            one that cannot decide
    spoil       Trajectory -> Trajectory: the first run with changed data that break the claim
    nonsense    (Trajectory, Generator) -> Trajectory: the first run with random numbers that
                `measure` must not support, even
                without the test that data belong to their equation. The shared tests use it for
                every statement.
    """

    name: str
    kind: str
    statement: str
    cite: str
    hypotheses: Callable[..., Iterable[Hypothesis]]
    predict: Callable[..., tuple[str, Mapping[str, Any]]]
    measure: Callable[..., Measured]
    holds: Callable[[], Any]
    breaks: Callable[[], Any]
    short: Callable[[], Any]
    spoil: Callable[[Any], Any]
    errata: str = ""
    nonsense: Callable[[Any, Any], Any] | None = None

    def __repr__(self) -> str:
        return f"Theorem({self.name}, {self.kind}: {shorten(self.statement, LONGEST - 80)})"
