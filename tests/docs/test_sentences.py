"""The statistics of docs/sentences.md, on planted data: no model is read."""

from __future__ import annotations

import importlib
import re
import sys
from types import SimpleNamespace

import numpy as np
import pandas
import pytest

from places import DOCS


def imported(name: str):
    """A script of docs/ as a module, without leaving docs/ on the path."""
    sys.path.insert(0, str(DOCS))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(DOCS))


grades, words, figures, make = map(imported, ("sentences_grades", "sentences_words", "sentences_figures", "make_sentences"))
ZERO, ONE = np.zeros(10), np.ones(10)


def wins(count: int, ties: int = 0) -> np.ndarray:
    """Ten numbers to be compared with ZERO: so many above, so many the same, the rest below."""
    return np.array([1.0] * count + [0.0] * ties + [-1.0] * (10 - count - ties))


# ------------------------------------------------------------------------------------------------------------- the sign test


@pytest.mark.parametrize(("count", "ties", "p"), [
    (10, 0, 2 / 1024), (0, 0, 2 / 1024), (9, 0, 22 / 1024), (8, 0, 112 / 1024), (5, 0, 1.0),
    (8, 2, 2 / 256), (1, 9, 1.0), (6, 4, 2 / 64), (0, 10, 1.0),
])
def test_the_sign_test_drops_ties_and_its_p_is_that_by_hand(count, ties, p):
    found = grades.sign(wins(count, ties), ZERO)
    assert (found.wins, found.losses, found.ties) == (count, 10 - count - ties, ties)
    assert found.p == pytest.approx(p)


def test_rounding_is_a_tie():
    mean = np.array([0.1, 0.2, 0.7, *[0.8] * 7])
    found = grades.sign(np.stack([mean] * 5).sum(axis=0) / 5, mean)
    assert found.ties == 10 and found.p == 1.0 and not found.is_better


def test_what_is_no_number_is_no_win_and_no_loss():
    found = grades.sign(np.array([np.nan, 1.0, 1.0]), np.zeros(3))
    assert (found.wins, found.losses, found.ties) == (2, 0, 1)


@pytest.mark.parametrize(("count", "ties", "is_better"), [(9, 0, True), (9, 1, True), (8, 2, False), (10, 0, True)])
def test_a_tie_is_not_better_whatever_p_says(count, ties, is_better):
    assert grades.sign(wins(count, ties), ZERO).is_better is is_better


# --------------------------------------------------------------------------------------------------------------------- Holm


@pytest.mark.parametrize(("given", "expected"), [
    ([0.01, 0.04, 0.03], [0.03, 0.06, 0.06]),                  # 3 * 0.01; 2 * 0.03; max(0.06, 0.04)
    ([0.04, 0.01], [0.04, 0.02]),
    ([0.5, 0.6], [1.0, 1.0]),
    ([0.002] * 4, [0.008] * 4),
    ([0.3], [0.3]),
    ([], []),
])
def test_holm_by_hand(given, expected):
    assert grades.holm(given) == pytest.approx(expected)


def test_holm_never_lowers_p_nor_changes_the_order():
    ps = np.random.default_rng(0).random(21) ** 3
    found = grades.holm(ps)
    assert (found >= ps).all() and (found <= np.minimum(21 * ps, 1) + 1e-15).all()
    assert (np.diff(found[np.argsort(ps)]) >= 0).all()


# ----------------------------------------------------------------------------------------------------------------- grades


@pytest.mark.parametrize(("random", "untrained", "trivial", "word", "same"), [
    (10, 9, 9, "right", ()),
    (9, 10, 8, "in part", ()),
    (8, 10, 10, "no evidence", ("random",)),
    (10, 0, 10, "no evidence", ("untrained",)),
    (8, 8, 9, "no evidence", ("random", "untrained")),
    (10, 0, 0, "not right", ("untrained",)),
    (0, 10, 8, "not right", ("random",)),
    (0, 0, 0, "not right", ("random", "untrained")),
])
def test_the_grade_of_a_comparison_with_both_nulls(random, untrained, trivial, word, same):
    tests = {"random": grades.sign(wins(random), ZERO), "untrained": grades.sign(wins(untrained), ZERO)}
    assert grades.graded(tests, grades.sign(wins(trivial), ZERO)) == (word, same)


@pytest.mark.parametrize(("nulls", "trivial", "is_full", "is_far", "word"), [
    (0, 0, True, False, "no evidence"), (10, 0, True, False, "in part"), (10, 10, True, False, "right"),
    (10, 10, False, True, "in part"), (10, 0, False, True, "in part"), (0, 10, False, True, "no evidence"),
    (0, 0, False, True, "not right"),
])
def test_full_agreement_is_not_wrong_and_far_off_is_not_right(nulls, trivial, is_full, is_far, word):
    tests = {null: grades.sign(wins(nulls, 10 - nulls), ZERO) for null in grades.NULLS}
    assert grades.graded(tests, grades.sign(wins(trivial, 10 - trivial), ZERO), is_full, is_far)[0] == word


def test_full_agreement_and_far_off_are_seen_in_the_numbers():
    full = grades.compared(ONE, {"random": ONE, "untrained": ONE}, ONE, True, grades.mean_put)
    assert (full.word, full.same) == ("no evidence", grades.NULLS) and grades.said(full) == "no evidence: both nulls do as well"
    nulls = {"random": ONE, "untrained": ONE}
    found = [grades.compared(turn * ONE, nulls, ONE, False, grades.median_put, far=0.3) for turn in (0.2, 0.9)]
    assert [answer.word for answer in found] == ["right", "in part"]


@pytest.mark.parametrize(("is_true", "nulls", "word", "same"), [
    (True, (False, False), "right", ()), (True, (True, False), "no evidence", ("random",)),
    (True, (False, True), "no evidence", ("untrained",)), (True, (True, True), "no evidence", ("random", "untrained")),
    (False, (True, True), "not right", ()), (False, (False, False), "not right", ()),
])
def test_the_grade_of_a_statement(is_true, nulls, word, same):
    assert grades.graded_statement(is_true, dict(zip(grades.NULLS, nulls, strict=True))) == (word, same)


@pytest.mark.parametrize("is_more", [True, False])
def test_better_is_more_or_less_as_it_is_said(is_more):
    way = 1.0 if is_more else -1.0
    found = grades.compared(way * 2 * ONE, {"random": way * ONE, "untrained": way * 3 * ONE}, ZERO, is_more, grades.median_put)
    assert (found.word, found.same) == ("no evidence", ("untrained",))
    assert [found.beside[name][1].wins for name in ("random", "untrained", "trivial")] == [10, 0, 10]
    assert "untrained weights do as well" in grades.said(found)


# ------------------------------------------------------------------------------------------ questions, on planted stacks


def planted(**cosines) -> SimpleNamespace:
    """Ten sentences of eight tokens with given mean cosines at the end, numbers or (sentences, seeds), all else alike."""
    rows = []
    known = {"embedding": 0.1, "real": 0.4, "twin": 0.9, "random": 0.95, "untrained": 0.2} | cosines
    for variant, given in known.items():
        array = np.broadcast_to(np.asarray(given, dtype=float), (10, np.shape(given)[1] if np.ndim(given) == 2 else 1))
        for sentence, seeds in enumerate(array):
            rows += [{"sentence": sentence, "variant": variant, "seed": seed, "cosine": value, "n": 8, "clusters": 8, "turn": 0.5,
                      "order": 0.5, "leader": 0.5, "word_leader": 0.5} for seed, value in enumerate(seeds)]
    curves = {name: np.broadcast_to(np.linspace(0.1, 1, 4) * value, (10, 1, 4)) for name, value in known.items()
              if np.ndim(value) == 0}
    return SimpleNamespace(name="planted", rows=pandas.DataFrame(rows), curves={"cosine": curves},
                           chance={"leader": 0.5 * ONE, "word_leader": 0.5 * ONE})


@pytest.mark.parametrize(("cosines", "word", "same"), [
    ({}, "no evidence", ("random",)),                                           # the null gathers more
    ({"random": 0.2}, "right", ()),                                             # both gather, but less
    ({"random": 0.05, "untrained": 0.6}, "no evidence", ("untrained",)),
    ({"random": 0.4, "untrained": 0.4}, "no evidence", ("random", "untrained")),
    ({"real": 0.1}, "not right", ()),                                           # all ties: not up
    ({"real": 0.05}, "not right", ()),
])
def test_gathering_is_no_evidence_only_if_a_null_does_it_as_much(cosines, word, same):
    found = grades.gather(planted(**cosines))
    assert (found.word, found.same) == (word, same)


def test_the_error_of_a_null_is_the_mean_of_its_stacks_not_that_of_their_mean():
    both_sides = np.tile([0.1, 0.7], (10, 1))                                   # mean 0.4, as the real stack, errors 0.3
    one = planted(random=both_sides, twin=0.5)
    assert grades.values(one, "random", "cosine") == pytest.approx(0.4 * ONE)
    assert grades.off(one, "random") == pytest.approx(0.3 * ONE)
    found = grades.as_much_in_the_end(one)
    assert (found.word, found.beside["random"][1].wins, found.beside["untrained"][1].wins) == ("right", 10, 10)


def test_the_error_on_the_way_is_a_mean_over_seeds_and_layers_without_the_embedding():
    one = planted()
    real = one.curves["cosine"]["real"]                                         # 0.4 times 0.1, 0.4, 0.7, 1
    one.curves["cosine"]["random"] = np.concatenate([real + 0.2, real - 0.1, real + 0.3], axis=1)
    assert grades.off_on_the_way(one, "random") == pytest.approx(0.2 * ONE)
    assert grades.off_on_the_way(one, "embedding") == pytest.approx(0.4 * (0.3 + 0.6 + 0.9) / 3 * ONE)


def test_averages_over_seeds_are_by_sentence_in_order():
    one = planted(random=np.arange(50.0).reshape(10, 5))
    one.rows = one.rows.sample(frac=1, random_state=0)
    assert grades.values(one, "random", "cosine") == pytest.approx(np.arange(10) * 5 + 2.0)
    assert grades.middle(one, "random", "cosine") == pytest.approx(24.5)


def test_few_or_many_groups():
    one = planted()
    assert (grades.few(one).word, grades.few(one).same) == ("no evidence", ("random", "untrained"))
    one.rows.loc[one.rows["variant"] == "twin", "clusters"] = 1
    assert grades.few(one).word == "not right"
    one.rows.loc[one.rows["variant"] == "real", "clusters"] = 2
    assert grades.few(one).word == "right"


def test_the_p_of_all_tests_of_a_model_are_corrected_together():
    answers = grades.answered(planted())
    tests = [test for answer in answers for _, test in answer.beside.values() if test is not None]
    assert len(tests) == len(grades.corrected(answers)) == 21
    assert [p for answer in answers for p in answer.p.values()] == pytest.approx(list(grades.holm([test.p for test in tests])))
    tied = next(answer for (question, _), answer in zip(grades.QUESTIONS, answers, strict=True) if "(turn)" in question)
    assert tied.word == "not right" and "0 of 10, 10 ties, p = 1" in words.answer_table(answers)


@pytest.mark.parametrize(("turns", "said"), [
    ({"no_mlp": 0.3 * ONE, "no_norm": 0.5 * ONE, "attention_only": 0.6 * ONE}, "least in 10 of 10; the untouched embedding 0.70"),
    ({"no_mlp": 0.8 * ONE, "no_norm": 0.9 * ONE, "attention_only": 0.9 * ONE}, "no more than a stack that does nothing"),
    ({"no_mlp": 0.3 * ONE, "no_norm": 0.4 + 0.2 * wins(8), "attention_only": 0.6 * ONE}, "none in planted"),
    ({"no_mlp": 0.5 * ONE, "no_norm": 0.5 * ONE, "attention_only": 0.6 * ONE}, "none in planted"),
])
def test_a_superlative_holds_in_nine_of_ten_and_beside_the_embedding(turns, said):
    known = {"embedding": 0.7 * ONE, **turns}
    rows = [{"sentence": number, "variant": variant, "seed": 0, "turn": value}
            for variant, array in known.items() for number, value in enumerate(array)]
    one = SimpleNamespace(name="planted", rows=pandas.DataFrame(rows), config=SimpleNamespace(is_causal=False))
    assert said in words.least_words(one)


# ---------------------------------------------------------------------------------------------------- what is measured


def test_turn_by_hand():
    x = np.array([[1.0, 0.0], [0.0, 2.0]])
    assert make.turn(x, 5 * x) == pytest.approx(0.0)
    assert make.turn(x, np.array([[0.0, 1.0], [0.0, -1.0]])) == pytest.approx(1.5)


def test_the_turn_from_other_tokens_by_hand():
    x, true = np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([[3.0, 0.0], [-1.0, 0.0]])
    assert make.turn_others(x, true) == pytest.approx((2 + 1) / 2)               # of x_0 and true_1, of x_1 and true_0
    assert make.turn_others(np.ones((5, 3)), np.ones((5, 3))) == pytest.approx(make.turn(np.ones((5, 3)), np.ones((5, 3))))


def test_the_usual_place_is_that_of_the_other_sentences():
    leaders = [np.array([5, 0, 3])] * 3 + [np.array([5, 1, 5])]                 # first, then last of four; second, last of six
    assert make.usual_place(leaders, [4, 4, 4, 6]) == pytest.approx([1.0, 1.0, 1.0, 0.5])


@pytest.mark.parametrize(("one", "other", "index"), [
    ([0, 0, 1, 1], [1, 1, 0, 0], 1.0), ([0, 0, 1, 1], [0, 1, 0, 1], -0.5), ([0, 0, 0, 0], [0, 0, 0, 0], 1.0),
])
def test_the_adjusted_rand_index_by_hand(one, other, index):
    assert make.rand_index(np.array(one), np.array(other)) == pytest.approx(index)


def test_fresh_sentences_are_fresh_and_as_many():
    for first, fresh in make.TEXTS.values():
        assert len(set(first)) == len(set(fresh)) == 10 and not set(first) & set(fresh)
    assert all(8 <= len(text.split()) <= 20 for text in make.FRESH_ENGLISH)


def test_the_page_has_the_grades_of_both_sets_and_no_number_that_is_none():
    text = (DOCS / "sentences.md").read_text(encoding="utf-8")
    assert text.count("| fresh sentences ") == 3 and not re.search(r"\bnan\b", text)
    for line in text.splitlines():
        assert line.startswith(("|", "!")) or len(line) <= 130, line
