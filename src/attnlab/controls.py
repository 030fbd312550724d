"""Control characters: they are written as escapes wherever untrusted text is shown."""

from __future__ import annotations

import unicodedata

ACTING = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Unicode categories: controls, formats (among them those that turn the direction), lone
surrogates, ends of lines.
"""

JOINERS = "\u200c\u200d"
"""Format characters that are part of words in some scripts."""


def escape_controls(text: str, keep: str = "\n\t") -> str:
    r"""Return the text with every control character written as an escape, such as \x1b.

    A terminal would obey such a character, a page might change the direction of the following
    words, and a file cannot hold a lone surrogate. `keep` and JOINERS stay.
    """
    return "".join(
        (
            letter
            if letter in keep or letter in JOINERS or unicodedata.category(letter) not in ACTING
            else letter.encode("unicode_escape").decode("ascii")
        )
        for letter in text
    )
