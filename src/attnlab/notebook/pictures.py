"""Figures inside the HTML of a notebook, if they are quick to draw. A picture never makes a display
fail.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Callable
from typing import Any

from attnlab.notebook.html import escape, note

DPI = 80
MOST_TOKENS, MOST_NUMBERS = 1_000, 1_000_000
"""A run with more tokens, or with more saved numbers, is not drawn automatically."""

MOST_BYTES = 2_000_000
"""The most bytes of a picture."""


def is_quick(n: int, numbers: int) -> bool:
    """Whether n tokens with so many saved numbers are quick to draw."""
    return n <= MOST_TOKENS and numbers <= MOST_NUMBERS


def picture(draw: Callable[[], Any], words: str) -> str:
    """Return the figure of `draw` as a PNG inside the HTML, or a sentence if it cannot be drawn."""
    try:
        buffer = io.BytesIO()
        draw().savefig(buffer, format="png", dpi=DPI)
    except Exception as problem:
        return note(f"No picture: {problem}")
    if buffer.tell() > MOST_BYTES:
        return note("No picture: it is too large for a notebook.")
    data = base64.b64encode(buffer.getvalue()).decode("ascii")
    return f'<img alt="{escape(words)}" src="data:image/png;base64,{data}">'
