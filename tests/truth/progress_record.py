"""What is reported to a Progress and all its parts, before it is made to ascend."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from attnlab.progress import Progress


@dataclass
class Record:
    """What a function heard; `wrong` are reports, of any part, that go back or leave [0, 1], or
    whose words are no words.
    """

    fractions: list[float] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    wrong: list[tuple[float, float, str]] = field(default_factory=list)

    def __call__(self, fraction: float, doing: str) -> None:
        self.fractions.append(fraction)
        self.words.append(doing)


@contextmanager
def recorded() -> Iterator[Record]:
    """A Record to give to functions as progress; every Progress is watched meanwhile."""
    record, tell = Record(), Progress._tell

    def watched(self: Progress, fraction: float, doing: str) -> None:
        if not self._fraction - 1e-9 <= fraction <= 1.0 + 1e-9 or not isinstance(doing, str):
            record.wrong.append((self._fraction, fraction, doing))
        tell(self, fraction, doing)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Progress, "_tell", watched)
        yield record
