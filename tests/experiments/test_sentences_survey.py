"""The survey of sentences: what it reads, and how its tables say what the grades are made of."""

from __future__ import annotations

from attnlab.analysis.significance import Sign
from attnlab.experiments.surveys.sentences_survey.figures import made_of
from attnlab.experiments.surveys.sentences_survey.texts import FRESH_ENGLISH, TEXTS
from attnlab.models.studies.grades import NULLS, QUESTIONS, Answer, Beside


def test_the_table_has_wins_ties_and_the_corrected_p():
    tied = Sign(0, 0, 10, 1.0)
    beside = {null: Beside("0.50", tied, Sign(5, 1, 0, 0.2)) for null in NULLS}
    beside["trivial"] = Beside("0.50", tied)
    answer = Answer(
        "not right", ("random", "untrained"), "0.50", beside, dict.fromkeys(beside, 1.0)
    )
    _, columns, rows = made_of([answer] * len(QUESTIONS))
    assert len(rows) == len(QUESTIONS) and len(columns) == len(rows[0])
    assert rows[4][3] == "0.50: 0 of 10, 10 ties, p = 1; stacks 5 of 6"
    assert rows[4][5] == "0.50: 0 of 10, 10 ties, p = 1"


def test_fresh_sentences_are_fresh_and_as_many():
    for first, fresh in TEXTS.values():
        assert len(set(first)) == len(set(fresh)) == 10 and not set(first) & set(fresh)
    assert all(8 <= len(text.split()) <= 20 for text in FRESH_ENGLISH)
