"""Text on lines that fit: broken where its width, measured in the font of the figures, would pass
the room there is.
"""

from __future__ import annotations

import re
from functools import lru_cache

from matplotlib.cbook import is_math_text
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

WORD = r"(?:\\\$|\$(?:\\.|[^$\\])+\$|[^ \t$])+|\$"
"""A word; our own mathematics, $P_{ij} = 1$, is one word with what touches it. An escaped dollar
sign is a letter, and so is a space that does not break.
"""

EQUATION = re.compile(rf"(?:{WORD})(?: = (?:{WORD})| %\S*)?")
"""A word, two with a sign of equality between them, or one with per cent: n = 30 and 12 % stay on
one line.
"""

HINTED = 1.05
"""Letters that are drawn as pixels take up to this much more room than their outlines."""

LINE = 1.2
"""Height of a line, in units of the size of the letters."""


@lru_cache(maxsize=4096)
def text_width(words: str, size: float) -> float:
    """The width of words on one line in inches, at `size` points."""
    is_math = bool(is_math_text(words))
    font = FontProperties(family="DejaVu Sans", size=size)
    plain = words if is_math else words.replace(r"\$", "$")
    return HINTED * float(text_to_path.get_text_width_height_descent(plain, font, is_math)[0]) / 72


def wrap(words: str, room: float, size: float) -> str:
    """The words on lines at most `room` inches wide at `size` points. Lines that are there stay;
    longer words stand alone.
    """
    space = text_width("a a", size) - text_width("aa", size)
    lines = []
    for given in words.split("\n"):
        line, width = "", 0.0
        for piece in _short_enough(EQUATION.findall(given), room, size):
            wide = text_width(piece, size)
            if line and width + space + wide > room:
                lines.append(line)
                line, width = piece, wide
            else:
                line, width = (
                    f"{line} {piece}" if line else piece,
                    width + space + wide if line else wide,
                )
        lines.append(line)
    return "\n".join(lines).replace("\u00a0", " ")


def _short_enough(pieces: list[str], room: float, size: float) -> list[str]:
    """The pieces; one that is wider than the room is cut, but never inside mathematics or after a
    backslash.
    """
    found = []
    for piece in pieces:
        while not is_math_text(piece) and len(piece) > 1 and text_width(piece, size) > room:
            kept = next(
                k
                for k in range(len(piece) - 1, 0, -1)
                if k == 1 or text_width(piece[:k], size) <= room
            )
            if piece[kept - 1] == "\\":
                kept += 1 if kept == 1 else -1
            found.append(piece[:kept])
            piece = piece[kept:]
        found.append(piece)
    return [piece for piece in found if piece]


def text_height(words: str, size: float) -> float:
    """The height of words in inches, at `size` points."""
    return LINE * size * (words.count("\n") + 1) / 72
