"""albert-chem's tokenizer, made from the table of tokens in the source of its package. The source
is not run.
"""

from __future__ import annotations

import ast
import json
from typing import Any

from attnlab.models.checkpoints.record import BadModel

TABLE = "smiles_token_to_id_dict"
START, END, UNKNOWN = "^", "$", "[UNK]"

PATTERN = r"\[[^\]]*\]|%\d{2}|->|<-(?!>)|Li|Na|Mg|Si|Ca|Cu|Ag|Pb|Br|Cl|>>|."
"""The package applies one expression after the other; in one pass `->` must come before `<-` inside
`<->`.
"""


def tokenizer_of_source(source: bytes) -> bytes:
    """Return a tokenizer.json with the ids of the package's own tokenizer: ^, the pieces of the
    reaction, $.
    """
    vocabulary = _table(source)
    ends = {
        word: {"id": word, "ids": [vocabulary[word]], "tokens": [word]} for word in (START, END)
    }
    place = [
        {"SpecialToken": {"id": START, "type_id": 0}},
        {"Sequence": {"id": "A", "type_id": 0}},
        {"SpecialToken": {"id": END, "type_id": 0}},
    ]
    pair = [*place[:2], {"Sequence": {"id": "B", "type_id": 0}}, place[2]]
    made: dict[str, Any] = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [
                {
                    "type": "Split",
                    "pattern": {"Regex": PATTERN},
                    "behavior": "Isolated",
                    "invert": False,
                },
                {"type": "WhitespaceSplit"},
            ],
        },
        "post_processor": {
            "type": "TemplateProcessing",
            "single": place,
            "pair": pair,
            "special_tokens": ends,
        },
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": UNKNOWN},
    }
    return json.dumps(made, indent=1, ensure_ascii=False).encode()


def _table(source: bytes) -> dict[str, int]:
    """Return the literal that the source assigns to TABLE."""
    for statement in ast.parse(source).body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name == TABLE:
                table: dict[str, int] = ast.literal_eval(value)
                return table
    raise BadModel(f"The source of the tokenizer must have a table {TABLE}, but has none.")
