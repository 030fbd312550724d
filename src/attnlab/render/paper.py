"""What a figure is drawn for: how wide it is, and whether it carries its titles."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any

NARROW = 6.6
"""Inches below which letters and marks are smaller: one column of a page, or its text."""

LEAST, MOST = 2.5, 40.0
"""Inches that a figure may be wide: a narrower one has no room for letters that can be read."""

PANEL = 1.35
"""Inches that a panel must be wide to be more than a stamp."""


@dataclass(frozen=True)
class Paper:
    """width: inches, None for the usual width of the figure. has_title: whether headline and note
    are drawn.
    """

    width: float | None = None
    has_title: bool = True

    def __post_init__(self) -> None:
        if self.width is not None:
            object.__setattr__(self, "width", _checked_width(self.width))
        if not isinstance(self.has_title, bool):
            raise TypeError(f"title must be True or False, got {self.has_title!r}.")

    @property
    def is_narrow(self) -> bool:
        """Whether the figure stands in a paper."""
        return self.width is not None and self.width < NARROW

    def columns(self, count: int, most: int, panel: float = PANEL) -> int:
        """How many of `count` panels stand side by side: at most `most`, each `panel` inches wide
        or more, in even rows.
        """
        columns = min(count, most)
        if self.width is not None:
            columns = max(1, min(columns, int(self.width / panel)))
            columns = -(-count // -(-count // columns))
        return columns


SCREEN = Paper()
"""The usual width, with titles."""


def _checked_width(width: Any) -> float:
    if (
        not isinstance(width, numbers.Real)
        or isinstance(width, bool)
        or not LEAST <= float(width) <= MOST
    ):
        raise ValueError(
            f"width must be the width of the figure in inches, from {LEAST:g} to {MOST:g}, got"
            f" {width!r}. A column of a paper is about 3.4 inches wide."
        )
    return float(width)
