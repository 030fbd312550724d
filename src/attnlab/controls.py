"""Characters that act instead of being seen: they are written as escapes wherever text of strangers is shown."""

from __future__ import annotations

import unicodedata

ACTING = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Unicode categories: controls, formats (among them those that turn the direction), lone surrogates, ends of lines."""

JOINERS = "\u200c\u200d"
"""Format characters that belong to the spelling of words in some scripts."""


def escape_controls(text: str, keep: str = "\n\t") -> str:
    r"""The text with every character that acts written as an escape: the escape character becomes \x1b.

    A terminal would obey such a character, a page would turn the direction of the words after it, and a file could not hold a
    lone surrogate. `keep` and JOINERS stay.
    """
    return "".join(
        letter if letter in keep or letter in JOINERS or unicodedata.category(letter) not in ACTING
        else letter.encode("unicode_escape").decode("ascii")
        for letter in text
    )
