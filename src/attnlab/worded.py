"""Enumerations whose members are words and whose values are sentences."""

from __future__ import annotations

import enum
from typing import Any

from attnlab.registry import unknown_name


class Worded(enum.StrEnum):
    """A member equals its word, Grade.EXACT == "exact", which files and tables hold. Its value is a
    sentence.
    """

    def __new__(cls, word: str, sentence: str) -> Worded:
        """Make the member of a word, with its sentence as value."""
        member = str.__new__(cls, word)
        member._value_ = sentence
        return member

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    @classmethod
    def of(cls, word: Any) -> Any:
        """Return the member of this word, or raise an UnknownName that suggests the nearest
        word.
        """
        for member in cls:
            if member == word:
                return member
        raise unknown_name(cls.__name__.lower(), word, [str(member) for member in cls])
