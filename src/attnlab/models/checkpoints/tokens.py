"""The tokens of a sentence for a model: ids, words, and which of them the model added itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from attnlab.displayed import VERBS, Displayed, short_repr
from attnlab.models.checkpoints.model import Model, check_ids, check_stream, is_many, say_given

UNKNOWN = ("[UNK]", "<unk>")


@dataclass(frozen=True, eq=False)
class Tokens(Displayed):
    """ids (n,), their words, and whether the model added them. text is "" if ids were given.

    A model without an embedding reads x (n, d). Its ids are the places of the tokens.
    """

    ids: np.ndarray
    words: tuple[str, ...]
    is_special: np.ndarray
    text: str = ""
    x: np.ndarray | None = None
    __repr__ = short_repr
    instead = dict.fromkeys(
        VERBS,
        "al.models.sentence(model, text) returns what the model does to these tokens. Give that.",
    )

    @property
    def given(self) -> np.ndarray:
        """What the model reads: ids (n,), or x (n, d)."""
        return self.ids if self.x is None else self.x

    @property
    def unknown(self) -> int:
        """The number of tokens that are unknown to the tokenizer."""
        return sum(word in UNKNOWN for word in self.words)


def read_tokens(
    model: Model, text: str | None = None, ids: Any = None, special: bool = True
) -> Tokens:
    """Return the Tokens of a text, or of given ids: at least two, and not more than the model has
    places for. A model without an embedding reads x (n, d) in the place of ids.
    """
    if (text is None) == (ids is None):
        raise ValueError("Give a text or ids, one of the two.")
    for given in (text, ids):
        if given is not None and is_many(given):
            raise ValueError(
                f"Give one text, or the ids of one text, got a list of {len(given)}. Call the"
                " function once for each of them."
            )
    if ids is not None and model.parts.embedding is None:
        x = check_stream(ids, model.config)
        if x.ndim != 2:
            raise ValueError(f"A sentence is one array x (n, d), got shape {x.shape}.")
        ids = np.arange(len(x))
        names = tuple(f"#{place}" for place in ids.tolist())
        return _enough(Tokens(ids, names, np.zeros(len(x), dtype=bool), x=x), model)
    if ids is not None:
        numbers = check_ids(ids, model.config)
        if numbers.ndim != 1:
            raise ValueError(f"A sentence is one list of ids (n,), got shape {numbers.shape}.")
        words = tuple(f"#{number}" for number in numbers)
        return _enough(Tokens(numbers, words, np.zeros(len(numbers), dtype=bool)), model)
    if not isinstance(text, str):
        raise ValueError(
            f"text must be one text, got {say_given(text)}. Token ids are given as ids=."
        )
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError(
            "The text must be UTF-8, but some of its bytes are not. Convert it first."
        ) from None
    if not text.strip():
        raise ValueError('The sentence is empty: give a text, such as "The cat sat on the mat".')
    inner = model.tokens(text, special=False)[0]
    if len(inner) == 0:
        raise ValueError(
            f"The tokenizer of {model.name} finds nothing that it knows in this text: give another"
            " one."
        )
    numbers, words_found = model.tokens(text, special)
    is_special = mark_special(numbers, inner)
    check_ids(numbers, model.config)
    return _enough(Tokens(numbers, tuple(words_found), is_special, text), model)


def mark_special(ids: np.ndarray, inner: np.ndarray) -> np.ndarray:
    """Return which of the ids (n,) the model added to those of the text itself."""
    added = len(ids) - len(inner)
    places = [
        place for place in range(added + 1) if (ids[place : place + len(inner)] == inner).all()
    ]
    usual = (added + 1) // 2  # [CLS] text [SEP], <s> text: also of a text that says "[CLS]" itself
    first = usual if usual in places else places[0] if places else 0
    is_special = np.ones(len(ids), dtype=bool)
    is_special[first : first + len(inner)] = False
    return is_special


def _enough(tokens: Tokens, model: Model) -> Tokens:
    if len(tokens.ids) < 2:
        raise ValueError(
            "A sentence needs at least two tokens, so that tokens can attend to each other;"
            f" {model.name} makes {len(tokens.ids)} of this one ({', '.join(tokens.words)})."
        )
    return tokens
