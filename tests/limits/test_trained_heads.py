"""Trained heads: what docs/models.md says about where their tokens end is what
docs/model_limits.json holds.
"""

from __future__ import annotations

import json
from collections import Counter


def test_the_page_has_the_table_of_the_stored_rows(from_docs):
    maker = from_docs("make_model_limits")
    rows = json.loads(maker.ROWS.read_text(encoding="utf-8"))
    page = maker.PAGE.read_text(encoding="utf-8")
    section = page.split(maker.BEGIN)[1].split(maker.END)[0]
    assert section == maker.write_section(rows), (
        "Bring it up to date: python docs/make_model_limits.py --only-page"
    )


def test_each_head_has_a_row_and_most_have_an_answer(from_docs):
    maker = from_docs("make_model_limits")
    rows = json.loads(maker.ROWS.read_text(encoding="utf-8"))
    assert Counter(row["model"] for row in rows.values()) == {
        "minilm": 72,
        "stories15m": 36,
        "plbert": 12,
        "albert-chem": 8,
    }
    assert sum(row["grade"] in ("exact", "group") for row in rows.values()) >= 105
    assert all(row["reason"] for row in rows.values() if row["grade"] == "undecided")
    assert all(row["horizon"] is None for row in rows.values() if row["grade"] == "exact")
