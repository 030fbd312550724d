"""The tokenizer of rxnmapper and rxnfp, made from their list of tokens."""

from __future__ import annotations

from attnlab.models.catalog.word_level import split, word_level
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
    return word_level(vocabulary, split(PATTERN, "Removed", True), START, END, UNKNOWN)
