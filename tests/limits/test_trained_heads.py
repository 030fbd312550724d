"""Trained heads: what docs/models.md says about where their tokens end is what
docs/model_limits.json holds.
"""

from __future__ import annotations

from collections import Counter

from attnlab.models.studies.head_ends import end_of, is_answered

HEADS = {"minilm": 72, "stories15m": 36, "plbert": 12, "albert-chem": 8}


def test_the_page_has_the_tables_of_the_stored_rows(from_docs):
    maker = from_docs("make_model_limits")
    page = maker.PAGE.read_text(encoding="utf-8")
    section = page.split(maker.BEGIN)[1].split(maker.END)[0]
    assert section == maker.write_section(maker.read_rows()), (
        "Bring it up to date: python docs/make_model_limits.py --only-page"
    )


def test_each_head_has_a_row_in_each_run_and_most_have_an_answer(from_docs):
    maker = from_docs("make_model_limits")
    rows = maker.read_rows()
    for run, least in (("six", 105), ("sixteen", 80), ("random", 105)):
        assert Counter(map(maker.model_of, rows[run])) == HEADS
        assert sum(map(is_answered, rows[run].values())) >= least, run
    for row in (row for of_run in rows.values() for row in of_run.values()):
        assert bool(row.reason) == (not is_answered(row))
        assert row.horizon is None or row.grade == "group"
        assert not is_answered(row) or len(row.groups) == row.count
        if "rotating" in end_of(row):
            assert row.lambda1[1] > 0.0 and not row.has_leaders


def test_the_claims_are_judged_by_the_rows(from_docs):
    maker = from_docs("make_model_limits")
    rows = {run: dict(of_run) for run, of_run in maker.read_rows().items()}
    before = [one.holds for one in maker.claims(rows)]
    assert before[:2] == [True, True] and not all(before)
    lost = next(row for row in rows["six"].values() if row.reason)
    rows["sixteen"] = dict.fromkeys(rows["sixteen"], lost)
    rows["random"] = dict.fromkeys(rows["random"], lost)
    after = [one.holds for one in maker.claims(rows)]
    assert not after[0] and not after[3] and not after[5]
