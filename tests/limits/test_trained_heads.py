"""Trained heads: what docs/models.md says about where their tokens end is what
docs/model_limits.json holds.
"""

from __future__ import annotations

from collections import Counter

from attnlab.models.studies.head_ends import end_of, is_answered

GOAL = {"minilm": 72, "stories15m": 36, "plbert": 12, "albert-chem": 8}
HEADS = GOAL | {"smollm2-135m": 270, "rxnmapper": 8, "rxnfp": 48}


def test_the_page_has_the_tables_of_the_stored_rows(from_docs):
    maker = from_docs("make_model_limits")
    page = maker.PAGE.read_text(encoding="utf-8")
    section = page.split(maker.BEGIN)[1].split(maker.END)[0]
    assert section == maker.write_section(maker.read_rows()), (
        "Bring it up to date: python docs/make_model_limits.py --only-page"
    )


def test_each_head_has_a_row_and_most_have_an_answer(from_docs):
    maker = from_docs("make_model_limits")
    rows = maker.read_rows()
    assert Counter(map(maker.model_of, maker.counted(rows["six"]))) == HEADS
    for run, least in (("six", 105), ("sixteen", 80), ("random", 105)):
        of_goal = {head: row for head, row in rows[run].items() if maker.model_of(head) in GOAL}
        assert Counter(map(maker.model_of, of_goal)) == GOAL
        assert sum(map(is_answered, of_goal.values())) >= least, run
    assert sum(map(is_answered, maker.counted(rows["six"]).values())) >= 400
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


def test_only_whole_layers_are_counted_and_said(from_docs):
    maker = from_docs("make_model_limits")
    six = maker.read_rows()["six"]
    part = {head: row for head, row in six.items() if head.startswith("minilm")}
    part.pop("minilm 2 5")
    whole = maker.whole_layers({"six": six, "sixteen": part})["sixteen"]
    assert len(whole) == 60 and not any(head.startswith("minilm 2 ") for head in whole)
    assert maker.say_layers(whole, six) == (
        " Of minilm the heads of these layers were measured: 0, 1, 3, 4, 5."
    )
    assert maker.say_layers(six, six) == ""


def test_a_model_that_is_nearly_another_one_is_in_no_total(from_docs):
    maker = from_docs("make_model_limits")
    six = maker.counted(maker.read_rows()["six"])
    copies = {f"plbert-int8 0 {head}": six[f"plbert 0 {head}"] for head in range(12)}
    lines = maker.count_ends(six | copies)
    assert f"| all | {sum(HEADS.values())} |" in lines[-2] and lines[-1].startswith(
        "| plbert-int8 (not in all) | 12 |"
    )
    assert maker.summary(six | copies) == maker.summary(six)
    rows = {"six": six | copies, "random": six | copies}
    assert len(maker.pairs_of(rows)[0]) == len(six) and "plbert-int8" not in maker.models_in(rows)
