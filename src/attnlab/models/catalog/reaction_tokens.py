"""The tokenizer of rxnmapper and rxnfp, made from their list of tokens."""

from __future__ import annotations

import json
from typing import Any

from attnlab.models.checkpoints.record import BadModel

PATTERN = (
    r"\[[^\]]+\]|Br?|Cl?|N|O|S|P|F|I|b|c|n|o|s|p|\(|\)|\.|=|#|-|\+|\\|/|:|~|@|\?|>>?|\*|\$"
    r"|%[0-9]{2}|[0-9]"
)
"""The pieces of a reaction in SMILES, as the packages find them. Other letters are left out."""

START, END, UNKNOWN = "[CLS]", "[SEP]", "[UNK]"


def tokenizer_of_list(source: bytes) -> bytes:
    """Return a tokenizer.json for a list with one token per line: [CLS], the pieces, [SEP]."""
    vocabulary = {token: number for number, token in enumerate(source.decode().splitlines())}
    missing = [token for token in (START, END, UNKNOWN) if token not in vocabulary]
    if missing:
        raise BadModel(f"The list of tokens must have {missing[0]}, but has not.")
    start, end = ({"SpecialToken": {"id": word, "type_id": 0}} for word in (START, END))
    text, other = ({"Sequence": {"id": name, "type_id": 0}} for name in "AB")
    made: dict[str, Any] = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Split",
            "pattern": {"Regex": PATTERN},
            "behavior": "Removed",
            "invert": True,
        },
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [start, text, end],
            "pair": [start, text, end, other, end],
            "special_tokens": {
                word: {"id": word, "ids": [vocabulary[word]], "tokens": [word]}
                for word in (START, END)
            },
        },
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": UNKNOWN},
    }
    return json.dumps(made, indent=1, ensure_ascii=False).encode()
