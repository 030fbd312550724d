"""plbert's tokenizer, made from the table of phonemes of a package that uses the same weights."""

from __future__ import annotations

import json
from typing import Any

from attnlab.models.checkpoints.files import parse_json
from attnlab.models.checkpoints.record import BadModel

END, END_ID = "$", 0
"""What the package puts before and after the phonemes. The table does not name it."""


def tokenizer_of_table(source: bytes) -> bytes:
    """Return a tokenizer.json with the ids of the package: an end, one id per letter, an end.

    Letters that are not in the table are left out, as in the package.
    """
    table = parse_json(source, "the table of phonemes").get("vocab")
    if not isinstance(table, dict) or not all(
        len(letter) == 1 and type(number) is int and number > 0 for letter, number in table.items()
    ):
        raise BadModel(
            "The table of phonemes must give a positive whole number for single letters, under the"
            " key vocab. The package has changed."
        )
    vocabulary = {END: END_ID, **table}
    known = "".join(f"\\x{{{ord(letter):04X}}}" for letter in table)
    end = {"SpecialToken": {"id": END, "type_id": 0}}
    text, other = ({"Sequence": {"id": name, "type_id": 0}} for name in "AB")
    made: dict[str, Any] = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": {
            "type": "Replace",
            "pattern": {"Regex": f"[^{known}]"},
            "content": "",
        },
        "pre_tokenizer": {
            "type": "Split",
            "pattern": {"Regex": "(?m:.)"},
            "behavior": "Isolated",
            "invert": False,
        },
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [end, text, end],
            "pair": [end, text, end, other, end],
            "special_tokens": {END: {"id": END, "ids": [END_ID], "tokens": [END]}},
        },
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": END},
    }
    return json.dumps(made, indent=1, ensure_ascii=False).encode()
