"""albert-chem's tokenizer, made from the table of tokens in the source of its package. The source
is not run.
"""

from __future__ import annotations

import ast

from attnlab.models.catalog.word_level import split, word_level
from attnlab.models.checkpoints.record import BadModel

TABLE = "smiles_token_to_id_dict"
START, END, UNKNOWN = "^", "$", "[UNK]"

PATTERN = r"\[[^\]]*\]|%\d{2}|->|<-(?!>)|Li|Na|Mg|Si|Ca|Cu|Ag|Pb|Br|Cl|>>|."
"""The package applies one expression after the other; in one pass `->` must come before `<-` inside
`<->`.
"""

SPACES = {"type": "WhitespaceSplit"}


def tokenizer_of_source(source: bytes) -> bytes:
    """Return a tokenizer.json with the ids of the package's own tokenizer: ^, the pieces of the
    reaction, $.
    """
    vocabulary = _table(source)
    words = {"type": "Sequence", "pretokenizers": [split(PATTERN, "Isolated"), SPACES]}
    return word_level(vocabulary, words, START, END, UNKNOWN)


def _table(source: bytes) -> dict[str, int]:
    """Return the literal that the source assigns to TABLE."""
    for statement in ast.parse(source).body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name == TABLE:
                table: dict[str, int] = ast.literal_eval(value)
                return table
    raise BadModel(f"The source of the tokenizer must have a table {TABLE}, but has none.")
