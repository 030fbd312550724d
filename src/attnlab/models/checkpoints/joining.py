"""Join letters to pieces, as SentencePiece does: the neighbours with the best score first."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from typing import TypeVar

from attnlab.models.checkpoints.record import BadModel

Part = TypeVar("Part", str, bytes)


def join_neighbours(parts: Sequence[Part], scores: Mapping[Part, float]) -> list[Part]:
    """Return the parts after joining neighbours until no two of them make a known piece.

    The two whose piece has the best score come first, and of equal scores the two on the left. A
    heap avoids n^2 steps for long texts.

    scores: {piece: its score}
    """
    parts, empty = list(parts), parts[0][:0] if parts else None
    after, before = list(range(1, len(parts) + 1)), list(range(-1, len(parts) - 1))
    waiting: list[tuple[float, int, Part, Part]] = []

    def offer(place: int) -> None:
        second = after[place] if place >= 0 else len(parts)
        if second < len(parts):
            score = scores.get(parts[place] + parts[second])
            if score is not None:
                heapq.heappush(waiting, (-score, place, parts[place], parts[second]))

    for place in range(len(parts)):
        offer(place)
    while waiting:
        _, place, left, right = heapq.heappop(waiting)
        second = after[place]
        if parts[place] != left or second >= len(parts) or parts[second] != right:
            continue  # one of the two has been joined meanwhile
        parts[place], parts[second] = left + right, left[:0]
        after[place] = after[second]
        if after[place] < len(parts):
            before[after[place]] = place
        offer(place)
        offer(before[place])
    return [part for part in parts if part != empty]


def must_be_whole_characters(text: str) -> None:
    """Refuse a text with half of a character, which UTF-8 cannot hold."""
    lone = next((letter for letter in text if "\ud800" <= letter <= "\udfff"), None)
    if lone is not None:
        raise BadModel(
            "A text must be made of whole characters, but this one holds half of one,"
            f" U+{ord(lone):04X}, which UTF-8 cannot hold. It may have been read with a wrong"
            " encoding: remove it."
        )
