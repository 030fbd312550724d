"""What a limit may cost: work, which decides, and seconds, which are a cap.

Work is counted, so the same question with the same work has the same answer on every machine,
however busy it is. A velocity of n tokens in d coordinates has n (n + d) (d + 8) terms. One unit of
work is TERMS of them; a velocity counts at least LEAST units. Terms in many coordinates cost more,
since registers do not hold a token there (WIDE). Everything else is counted at what it costs beside
that: terms of gaps after the hand-over, events, certificates, velocities with more digits.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np

from attnlab.engine.plan import MOST_COORDINATES
from attnlab.progress import Progress

TERMS = 600_000.0
"""Terms of a velocity in double precision that make a unit of work: about 35 microseconds of one
core.
"""

LEAST = 0.5
"""Units that a velocity counts at least. For ten tokens it takes a microsecond, but steps without
end must cost something.
"""

LEAST_LARGE = 8.0
"""The same where velocities are not compiled as a whole: calls and threads take 0.1 to 0.3
milliseconds by themselves.
"""

WIDE = 16.0, 64.0
"""A term costs 1 + d / 16 times as much in d coordinates, up to d = 64. A unit then takes 5 to 50
microseconds.
"""

EXTENDED = 6.0
"""How many times as long an evaluation takes once tokens are hi + lo: 15 times where attention is
divided, mostly less.
"""

EVENT = 4.0
"""Units for each change of leader, or look at the frozen flow without one: mostly NumPy calls for
small arrays.
"""

WORK = 1.5e6
"""Units for one limit, where nothing else is asked for: up to a minute of one core, about half of
that on two.
"""

DOING = "looking for the limit"
"""What the work is for, as a progress bar says it."""


@dataclass(eq=False)
class Allowance:
    """What may be used, and has been. Attempts made side by side have one each, so their order does
    not matter.
    """

    work: float  # units
    seconds: float  # as given, for messages
    end: float  # of time.monotonic()
    used: float = 0.0
    flag: np.ndarray = field(default_factory=lambda: np.zeros(1, np.int64))  # stops compiled code
    progress: Progress = field(default_factory=Progress)

    @property
    def left(self) -> float:
        """The units that are left."""
        return max(self.work - self.used, 0.0)

    @property
    def is_spent(self) -> bool:
        """Whether the work is used up."""
        return self.used >= self.work

    @property
    def is_late(self) -> bool:
        """Whether time is up, or a stop was asked for."""
        return bool(self.flag[0]) or time.monotonic() > self.end or self.progress.is_cancelled

    @property
    def is_over(self) -> bool:
        """Whether either has ended it."""
        return self.is_spent or self.is_late

    @property
    def ended_by(self) -> str:
        """Which of them ended it: the kind of the undecided answer."""
        return "work" if self.is_spent else "budget"

    def spend(self, units: float) -> None:
        """Count units as used."""
        self.used += units

    def share(self, part: float) -> Allowance:
        """Return a part of what is left, with the same clock. The caller must spend what the parts
        have used.
        """
        return Allowance(
            part * self.left, self.seconds, self.end, flag=self.flag, progress=self.progress
        )


def price_of_evaluation(n: int, d: int, is_extended: bool = False, share: float = 1.0) -> float:
    """Units for one velocity of n tokens in d coordinates that looks at this share of the pairs."""
    wide = 1.0 + min(d, WIDE[1]) / WIDE[0]
    least = LEAST if d <= MOST_COORDINATES else LEAST_LARGE
    extended = EXTENDED if is_extended else 1.0
    return max(least, n * (n * share + d) * (d + 8.0) * wide * extended / TERMS)


def price_of_careful_evaluation(rows: int, n: int, d: int, digits: int) -> float:
    """Units for one velocity with that many digits, of which `rows` rows are computed."""
    terms = rows * n * (d + 8.0)
    return (
        1.5 + terms * 200.0 / TERMS
        if digits <= 16
        else 1.0 + terms * (7500.0 + 12.0 * digits) / TERMS
    )


def price_of_term(is_complex: bool) -> float:
    """Units for one term of find_contact. Complex ones take the modulus of several numbers."""
    return (1200.0 if is_complex else 150.0) / TERMS


def price_of_doubt(pairs: int, d: int, is_complex: bool) -> float:
    """Units for Abel's test of that many pairs."""
    return pairs * (d + 2.0) ** 2 * (600.0 if is_complex else 60.0) / TERMS
