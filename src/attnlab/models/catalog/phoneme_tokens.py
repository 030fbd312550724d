"""plbert's tokenizer, made from the table of phonemes of a package that uses the same weights."""

from __future__ import annotations

from attnlab.models.catalog.word_level import split, word_level
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
    without_others = {"type": "Replace", "pattern": {"Regex": f"[^{known}]"}, "content": ""}
    letters = split("(?m:.)", "Isolated")
    return word_level(vocabulary, letters, END, END, END, without_others)
