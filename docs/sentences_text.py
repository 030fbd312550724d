"""Small parts of the Markdown text of docs/sentences.md: tables, paragraphs, numbers in words."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

WIDTH = 128


def spread(array: np.ndarray, digits: int = 2) -> str:
    """A median with its range, where there is one to these digits."""
    middle, low, high = (f"{value:.{digits}f}" for value in (np.median(array), array.min(), array.max()))
    return middle if low == high else f"{middle} ({low} to {high})"


def names(counted: Counter[str]) -> str:
    """Words with how often."""
    return ", ".join(f"`{word}` {count}" for word, count in counted.most_common())


def percent(share: float) -> str:
    """A share in words."""
    return f"{100 * share:.0f} %"


def table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    return "\n".join("| " + " | ".join(escaped(cell) for cell in line) + " |" for line in [head, ["---"] * len(head), *lines])


def escaped(text: str) -> str:
    """The text with _, < and * of the mathematics escaped outside code."""
    pieces = text.split("`")
    pieces[::2] = [piece.replace("_", r"\_").replace("<", r"\<").replace("*", r"\*") for piece in pieces[::2]]
    return "`".join(pieces)


def filled(text: str, first: str = "", other: str = "") -> str:
    """A paragraph in lines."""
    return textwrap.fill(escaped(" ".join(text.split())), WIDTH, initial_indent=first, subsequent_indent=other,
                         break_long_words=False, break_on_hyphens=False)


def listed(found: Sequence[Any]) -> str:
    """Names of models."""
    return ", ".join(one.name for one in found)
