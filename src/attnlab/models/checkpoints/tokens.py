"""A sentence as a model reads it: ids, words, and which of them the model added itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from attnlab.displayed import Displayed, short_repr
from attnlab.models.checkpoints.model import Model, checked_ids

UNKNOWN = ("[UNK]", "<unk>")


@dataclass(frozen=True, eq=False)
class Tokens(Displayed):
    """ids (n,), the words they stand for, and whether the model added them; text is "" where ids were given."""

    ids: np.ndarray
    words: tuple[str, ...]
    is_special: np.ndarray
    text: str = ""
    __repr__ = short_repr

    @property
    def unknown(self) -> int:
        """How many tokens the tokenizer had no word for."""
        return sum(word in UNKNOWN for word in self.words)


def read_tokens(model: Model, text: str | None = None, ids: Any = None, special: bool = True) -> Tokens:
    """The Tokens of a text, or of ids as they are; at least two, and not more than the model has places for."""
    if (text is None) == (ids is None):
        raise ValueError("Give a text or ids, one of the two.")
    if ids is not None:
        numbers = checked_ids(ids, model.config)
        if numbers.ndim != 1:
            raise ValueError(f"A sentence is one list of ids (n,), got shape {numbers.shape}.")
        words = tuple(f"#{number}" for number in numbers)
        return _enough(Tokens(numbers, words, np.zeros(len(numbers), dtype=bool)), model)
    assert text is not None
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("The text must be UTF-8, and has bytes that are not: convert it first.") from None
    if not text.strip():
        raise ValueError('The sentence is empty: give a text, such as "The cat sat on the mat".')
    inner = model.tokens(text, special=False)[0]
    if len(inner) == 0:
        raise ValueError(f"The tokenizer of {model.name} finds nothing that it knows in this text: give another one.")
    numbers, words_found = model.tokens(text, special)
    added = len(numbers) - len(inner)
    places = [place for place in range(added + 1) if (numbers[place : place + len(inner)] == inner).all()]
    usual = (added + 1) // 2                               # [CLS] text [SEP], <s> text: also of a text that says "[CLS]" itself
    first = usual if usual in places else places[0] if places else 0
    is_special = np.ones(len(numbers), dtype=bool)
    is_special[first : first + len(inner)] = False
    checked_ids(numbers, model.config)
    return _enough(Tokens(numbers, tuple(words_found), is_special, text), model)


def _enough(tokens: Tokens, model: Model) -> Tokens:
    if len(tokens.ids) < 2:
        raise ValueError(
            f"A sentence needs two tokens or more, so that there is somebody to attend to; {model.name} makes "
            f"{len(tokens.ids)} of this one ({', '.join(tokens.words)})."
        )
    return tokens
