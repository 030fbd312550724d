"""Tokenizers that users bring: a file, a tokenizer of another library, or a function."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from attnlab.models.checkpoints.model import Model, Tokenizer
from attnlab.models.checkpoints.texts import open_tokenizer

FILE = "tokenizer.json"


def with_tokenizer(model: Model, tokenizer: Any) -> Model:
    """Return the model with a tokenizer.

    tokenizer: a path, a tokenizer of transformers or tokenizers, or a function (text, special) ->
    (ids, words).
    """
    given: Tokenizer
    if isinstance(tokenizer, str | os.PathLike):
        given = open_tokenizer(_file_at(Path(tokenizer)), model.config.vocabulary)
    else:
        given = _checked(_function_of(tokenizer), model.config.vocabulary)
    return replace(model, given_tokenizer=given)


def _file_at(path: Path) -> Path:
    found = path / FILE if path.is_dir() else path
    if not found.is_file():
        raise FileNotFoundError(
            f"tokenizer must be a {FILE} or a folder that has one; there is none at {path}."
        )
    return found


def _function_of(tokenizer: Any) -> Callable[[str, bool], Any]:
    """What cuts a text, whichever library the tokenizer is from."""
    if hasattr(tokenizer, "convert_ids_to_tokens"):  # transformers

        def cut(text: str, special: bool) -> Any:
            ids = tokenizer(text, add_special_tokens=special)["input_ids"]
            return ids, tokenizer.convert_ids_to_tokens(ids)

        return cut
    if hasattr(tokenizer, "encode") and hasattr(tokenizer, "id_to_token"):  # tokenizers

        def encode(text: str, special: bool) -> Any:
            encoding = tokenizer.encode(text, add_special_tokens=special)
            return encoding.ids, encoding.tokens

        return encode
    if callable(tokenizer):
        if not _takes_two(tokenizer):
            raise TypeError(
                "The function tokenizer= must take (text, special), where special says whether to"
                " add the model's own tokens, and return (ids, words). This one takes other"
                " arguments."
            )
        return tokenizer
    raise TypeError(
        "tokenizer must be a path, a tokenizer of transformers or tokenizers, or a function from"
        f" (text, special) to (ids, words), got {type(tokenizer).__name__}."
    )


def _takes_two(function: Callable[..., Any]) -> bool:
    """Whether a function can be called with two arguments, as far as its signature says."""
    try:
        inspect.signature(function).bind("", True)
    except TypeError:
        return False
    except ValueError:  # a function of a compiled library may have no signature
        return True
    return True


def _checked(
    function: Callable[[str, bool], Any], vocabulary: int
) -> Callable[..., tuple[list[int], list[str]]]:
    """The function, whose answers must be ids that the model knows, and one word for each."""

    def cut(text: str, special: bool = True) -> tuple[list[int], list[str]]:
        found = function(text, special)
        if not isinstance(found, tuple | list) or len(found) != 2:
            raise TypeError(
                "The function tokenizer= must return (ids, words), got"
                f" {type(found).__name__}. Return a pair, with one word for each id."
            )
        ids, words = found
        ids, words = [int(one) for one in ids], [str(word) for word in words]
        if len(ids) != len(words):
            raise ValueError(
                f"The tokenizer must give one word per id, but gave {len(ids)} ids and {len(words)}"
                " words."
            )
        outside = next((one for one in ids if not 0 <= one < vocabulary), None)
        if outside is not None:
            raise ValueError(
                f"The tokenizer gave the id {outside}, and the model knows 0 to {vocabulary - 1}."
                " It belongs to another model."
            )
        return ids, words

    return cut
