"""A made tokenizer.json does in the library what a table and a rule say."""

from __future__ import annotations

import pytest

from attnlab.models.catalog.word_level import split, word_level

TABLE = {"<": 0, ">": 1, "?": 2, "a": 3, "bb": 4}


@pytest.mark.parametrize("end", [">", "<"])
@pytest.mark.parametrize("text", ["", "a", "abba", "bba?", "cab"])
def test_each_piece_is_its_id_between_the_ends(text, end):
    tokenizers = pytest.importorskip("tokenizers")
    made = word_level(TABLE, split("a|bb|.", "Isolated"), "<", end, "?")
    found = tokenizers.Tokenizer.from_str(made.decode()).encode(text)
    ids, rest = [TABLE["<"]], text
    while rest:
        piece = "bb" if rest.startswith("bb") else rest[0]
        ids.append(TABLE.get(piece, TABLE["?"]))
        rest = rest[len(piece) :]
    assert found.ids == [*ids, TABLE[end]]


def test_other_letters_are_left_out_where_the_pattern_is_inverted():
    tokenizers = pytest.importorskip("tokenizers")
    made = word_level(TABLE, split("a|bb", "Removed", True), "<", ">", "?")
    assert tokenizers.Tokenizer.from_str(made.decode()).encode("xaybbz").ids == [0, 3, 4, 1]
