"""A tokenizer.json that cuts a text into pieces, and gives each piece its id in a table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def split(pattern: str, behavior: str, is_inverted: bool = False) -> dict[str, Any]:
    """Return the step that cuts a text where the pattern fits, in the words of the format."""
    return {
        "type": "Split",
        "pattern": {"Regex": pattern},
        "behavior": behavior,
        "invert": is_inverted,
    }


def word_level(
    vocabulary: Mapping[str, int],
    cut: Mapping[str, Any],
    start: str,
    end: str,
    unknown: str,
    normalizer: Mapping[str, Any] | None = None,
) -> bytes:
    """Return the file: `start`, one id per piece, `end`. Pieces without an id are `unknown`."""
    first, last = ({"SpecialToken": {"id": word, "type_id": 0}} for word in (start, end))
    text, other = ({"Sequence": {"id": name, "type_id": 0}} for name in "AB")
    made: dict[str, Any] = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": normalizer,
        "pre_tokenizer": cut,
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [first, text, last],
            "pair": [first, text, last, other, last],
            "special_tokens": {
                word: {"id": word, "ids": [vocabulary[word]], "tokens": [word]}
                for word in dict.fromkeys((start, end))
            },
        },
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": unknown},
    }
    return json.dumps(made, indent=1, ensure_ascii=False).encode()
