"""Tick labels that are plain numbers. What matplotlib would print beside an axis, +1.8e4 or 1e4,
stands in the axis label.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.ticker import Formatter

NARROWEST = 1e-3
"""A range narrower than this fraction of its numbers is counted from a round number in it: ticks of
six digits are unreadable.
"""


@dataclass(frozen=True)
class Unit:
    """Ticks are (value - offset) / 10^exponent."""

    offset: float
    exponent: int

    def add_to(self, label: str, is_short: bool = False) -> str:
        """The axis label with the unit: 'z₁' -> 'z₁ − 18000 (×10⁻⁴)'; in short, where it can be:
        '10⁴ z₁'.
        """
        if is_short and self.exponent and not self.offset:
            return f"10{superscript(-self.exponent)} {label}"
        if self.offset:
            label += f" {'−' if self.offset > 0 else '+'} {abs(self.offset):.12g}"
        if not self.exponent:
            return label
        factor = f"×10{superscript(self.exponent)}"
        return f"{label[:-1]}, {factor})" if label.endswith(")") else f"{label} ({factor})"


def unit_of(low: float, high: float, digits: int = 5) -> Unit:
    """The Unit in which numbers from low to high have few digits before the point: 1 wherever that
    is so already.
    """
    span = high - low
    offset = 0.0
    if 0 < span < NARROWEST * max(abs(low), abs(high)):
        step = 10.0 ** np.ceil(np.log10(span))
        offset = float(step * np.rint(0.5 * (low + high) / step))
    largest = max(abs(low - offset), abs(high - offset))
    exponent = int(np.clip(np.floor(np.log10(largest)), -300, 300)) if largest > 0 else 0
    return Unit(offset, 0 if -3 <= exponent < digits else exponent)


class PlainFormatter(Formatter):
    """Ticks in a Unit, all with the decimals that the step between them needs."""

    def __init__(self, unit: Unit):
        self.unit = unit
        self.decimals = 1

    def __call__(self, value: float, pos: int | None = None) -> str:
        """The label of one tick."""
        text = f"{(value - self.unit.offset) / 10.0**self.unit.exponent:.{self.decimals}f}"
        return self.fix_minus(text if float(text) else text.lstrip("-"))  # no minus before a zero

    def format_ticks(self, values: Any) -> list[str]:
        """The labels of all ticks."""
        places = (
            np.sort(np.asarray(values, dtype=float) - self.unit.offset) / 10.0**self.unit.exponent
        )
        step = np.diff(places).min() if len(places) > 1 else 0.0
        self.decimals = int(np.clip(-np.floor(np.log10(step) + 1e-6), 0, 8)) if step > 0 else 1
        # two ticks may be further apart than their last digit: -0.5 and 0.5
        while (
            step > 0
            and self.decimals < 8
            and (np.abs(places - places.round(self.decimals)) > 1e-6 * step).any()
        ):
            self.decimals += 1
        return [self(value) for value in values]


def plain_ticks(
    axis: Any, label: str, low: float, high: float, digits: int = 5, is_short: bool = False
) -> str:
    """Give an axis that shows low to high plain ticks; returns its label, with the unit of the
    ticks where they have one.
    """
    unit = unit_of(float(low), float(high), digits)
    axis.set_major_formatter(PlainFormatter(unit))
    return unit.add_to(label, is_short)


def superscript(number: int) -> str:
    """-12 -> '⁻¹²'."""
    return str(number).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
