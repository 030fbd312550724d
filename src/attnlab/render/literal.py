"""Untrusted words in figures: texts, tokens, names of models and files. They are drawn literally,
never as mathematics.
"""

from __future__ import annotations

from functools import cache

from matplotlib.font_manager import FontProperties, findfont, get_font

from attnlab.controls import escape_controls

NO_GLYPH = "□"
"""Drawn for a character that the font does not have, without matplotlib's warning."""

LONGEST_NAME = 60
"""Characters of the name of a model that are drawn."""


def escape_words(words: str, longest: int | None = None) -> str:
    r"""The words as matplotlib draws them literally, in one line; cut to `longest` characters where
    that is given.

    Dollar signs are escaped, so that our own mathematics may stand beside the words. Characters
    that act (\x1b, a mark for the direction) are written as escapes. Escape words once, where they
    are drawn.
    """
    line = escape_controls(" ".join(words.split()), keep="")
    if longest is not None and len(line) > longest:
        line = line[: longest - 1].rstrip() + "…"
    return "".join(letter if ord(letter) in _glyphs() else NO_GLYPH for letter in line).replace(
        "$", r"\$"
    )


@cache
def _glyphs() -> frozenset[int]:
    """The characters that the font of the figures has, in regular and in bold."""
    faces = [
        get_font(findfont(FontProperties(family="DejaVu Sans", weight=weight)))
        for weight in ("normal", "bold")
    ]
    return frozenset.intersection(*(frozenset(face.get_charmap()) for face in faces))
