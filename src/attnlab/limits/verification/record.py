"""What a verification says: a record, the checks that it is made of, and how a check fails."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np


class Failed(Exception):
    """Raised by a check that fails. The message is a sentence."""


@dataclass(frozen=True)
class Check:
    """One thing that was checked: its name, whether it holds, and a sentence with the numbers."""

    name: str
    holds: bool
    says: str


@dataclass(frozen=True)
class Verification:
    """What became of a certificate that was checked again.

    Attributes
    ----------
    holds : bool or None
        True: it follows from the stored state. False: it does not. None: nothing is claimed, or
        nothing is stored.
    reason : str
        A sentence that says why.
    way : str
        How the certificate was made: proof, frozen, symmetric, sphere, half space, places, trivial,
        groups, heads, closed, or one of these in fewer dimensions: reduced, span. Empty where
        there is none.
    checks : tuple of Check
        What was checked, in order. If a check failed, it is the last one.
    not_checked : tuple of str
        What this kind of verification cannot see, in sentences.
    numbers : mapping
        The numbers of the check, such as the margin G and the smallest gap.
    """

    holds: bool | None
    reason: str
    way: str = ""
    checks: tuple[Check, ...] = ()
    not_checked: tuple[str, ...] = ()
    numbers: Mapping[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        word = {True: "HOLDS", False: "DOES NOT HOLD", None: "NOT VERIFIED"}[self.holds]
        marks = {True: "yes", False: " NO"}
        lines = [
            f"{word}. {self.reason}",
            *(f"  {marks[one.holds]}  {one.name}: {one.says}" for one in self.checks),
        ]
        return "\n".join([*lines, *(f"   -   not checked: {one}" for one in self.not_checked)])

    def __repr__(self) -> str:
        return f"Verification(holds={self.holds}: {self.reason})"


def require(is_right: Any, sentence: str) -> None:
    """Raise Failed with this sentence unless it is right; NaN and arrays with anything wrong in
    them are not.
    """
    if not bool(np.all(is_right)):
        raise Failed(sentence)
