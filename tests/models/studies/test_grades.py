"""The grades of the idealised model, on planted data; no model is read."""

from __future__ import annotations

import math

import numpy as np
import pandas
import pytest

from attnlab.analysis.significance import holm, sign_test
from attnlab.models.studies import grades

ZERO, ONE = np.zeros(10), np.ones(10)


def wins(count: int, ties: int = 0) -> np.ndarray:
    """Ten numbers to be compared with ZERO: so many above, so many the same, the rest below."""
    return np.array([1.0] * count + [0.0] * ties + [-1.0] * (10 - count - ties))


def as_given(**numbers):
    """A measure that has a number for each variant, or one per stack, all sentences alike."""
    return lambda variant: np.tile(np.atleast_1d(np.asarray(numbers[variant], float)), (10, 1))


@pytest.mark.parametrize(
    ("count", "ties", "is_better"), [(9, 0, True), (9, 1, True), (8, 2, False), (10, 0, True)]
)
def test_a_tie_is_not_better_whatever_p_says(count, ties, is_better):
    assert grades.is_better(sign_test(wins(count, ties), ZERO)) is is_better


def test_enough_is_the_least_number_that_coin_flips_do_not_reach():
    """Against the binomial sum, written out: 9 of ten, all of six; with fewer no test can tell."""
    for count in range(1, 25):
        tails = {
            wins: 2 * sum(math.comb(count, k) for k in range(wins, count + 1)) / 2**count
            for wins in range(count // 2 + 1, count + 1)
        }
        allowed = [wins for wins, p in tails.items() if p <= grades.LEVEL]
        assert grades.enough(count) == (min(allowed) if allowed else count)
    assert [grades.enough(count) for count in (5, 6, 10, 20)] == [5, 6, 9, 15]
    assert not grades.is_better(sign_test([], []))


@pytest.mark.parametrize(
    ("random", "untrained", "trivial", "word", "same"),
    [
        (10, 9, 9, "right", ()),
        (9, 10, 8, "in part", ()),
        (8, 10, 10, "no evidence", ("random",)),
        (10, 0, 10, "no evidence", ("untrained",)),
        (8, 8, 9, "no evidence", ("random", "untrained")),
        (10, 0, 0, "not right", ("untrained",)),
        (0, 10, 8, "not right", ("random",)),
        (0, 0, 0, "not right", ("random", "untrained")),
    ],
)
def test_the_grade_of_a_comparison_with_both_nulls(random, untrained, trivial, word, same):
    tests = {
        "random": [sign_test(wins(random), ZERO)],
        "untrained": [sign_test(wins(untrained), ZERO)],
    }
    assert grades.grade(tests, sign_test(wins(trivial), ZERO)) == (word, same)


@pytest.mark.parametrize(
    ("nulls", "trivial", "is_full", "is_far", "word"),
    [
        (0, 0, True, False, "no evidence"),
        (10, 0, True, False, "in part"),
        (10, 10, True, False, "right"),
        (10, 10, False, True, "in part"),
        (10, 0, False, True, "in part"),
        (0, 10, False, True, "no evidence"),
        (0, 0, False, True, "not right"),
    ],
)
def test_full_agreement_is_not_wrong_and_far_off_is_not_right(
    nulls, trivial, is_full, is_far, word
):
    tests = {null: [sign_test(wins(nulls, 10 - nulls), ZERO)] for null in grades.NULLS}
    assert (
        grades.grade(tests, sign_test(wins(trivial, 10 - trivial), ZERO), is_full, is_far)[0]
        == word
    )


def test_full_agreement_and_far_off_are_seen_in_the_numbers():
    full = grades.compare(planted(), as_given(twin=1, random=1, untrained=1), True, ONE)
    assert (full.word, full.same) == ("no evidence", grades.NULLS) and str(
        full
    ) == "no evidence: both nulls do as well"
    measure = {turn: as_given(twin=turn, random=1, untrained=1) for turn in (0.2, 0.9)}
    found = [
        grades.compare(planted(), measure[turn], False, ONE, near=near).word
        for turn in (0.2, 0.9)
        for near in (None, 0.3 * ONE, wins(8) - 0.5)
    ]
    assert found == ["right", "right", "in part", "right", "in part", "in part"]


@pytest.mark.parametrize(
    ("better", "word", "same"),
    [(6, "right", ()), (5, "no evidence", ("random",)), (0, "no evidence", ("random",))],
)
def test_a_null_has_to_be_beaten_in_its_stacks_as_well(better, word, same):
    """One stack far off makes every mean over stacks worse. That is not every stack."""
    stacks = [1.0] * better + [0.1] * (6 - better)
    stacks[0] = 100.0
    found = grades.compare(
        planted(), as_given(twin=0.2, random=stacks, untrained=[1.0] * 6), False, ONE
    )
    assert found.beside["random"].test.wins == 10 and found.beside["random"].stacks.wins == max(
        better, 1
    )
    assert (found.word, found.same) == (word, same)


@pytest.mark.parametrize(
    ("is_true", "nulls", "word", "same"),
    [
        (True, (False, False), "right", ()),
        (True, (True, False), "no evidence", ("random",)),
        (True, (False, True), "no evidence", ("untrained",)),
        (True, (True, True), "no evidence", ("random", "untrained")),
        (False, (True, True), "not right", ()),
        (False, (False, False), "not right", ()),
    ],
)
def test_the_grade_of_a_statement(is_true, nulls, word, same):
    assert grades.grade_statement(is_true, dict(zip(grades.NULLS, nulls, strict=True))) == (
        word,
        same,
    )


@pytest.mark.parametrize("is_more", [True, False])
def test_better_is_more_or_less_as_it_is_said(is_more):
    way = 1.0 if is_more else -1.0
    found = grades.compare(
        planted(), as_given(twin=2 * way, random=way, untrained=3 * way), is_more, ZERO
    )
    assert (found.word, found.same) == ("no evidence", ("untrained",))
    assert [found.beside[name][1].wins for name in ("random", "untrained", "trivial")] == [
        10,
        0,
        10,
    ]
    assert "untrained weights do as well" in str(found)


# ------------------------------------------------------------------------------------------
# questions, on planted stacks


def planted(**cosines) -> grades.Stacks:
    """Ten sentences of eight tokens with given mean cosines at the end, numbers or (sentences,
    seeds), all else alike.
    """
    rows, points = [], []
    known = {"embedding": 0.1, "real": 0.4, "twin": 0.9, "random": 0.95, "untrained": 0.2} | cosines
    for variant, given in known.items():
        array = np.broadcast_to(
            np.asarray(given, dtype=float), (10, np.shape(given)[1] if np.ndim(given) == 2 else 1)
        )
        for sentence, seeds in enumerate(array):
            for seed, value in enumerate(seeds):
                place = {"sentence_number": sentence, "variant": variant, "seed": seed}
                rows.append(
                    {
                        **place,
                        "cosine": value,
                        "n": 8,
                        "clusters": 8,
                        "turn": 0.5,
                        "order": 0.5,
                        "leader": 0.5,
                        "word_leader": 0.5,
                        "moved": 0.5,
                    }
                )
                points += [
                    {**place, "step": step, "cosine": part * value}
                    for step, part in enumerate((0.1, 0.4, 0.7, 1.0))
                ]
    chance = pandas.DataFrame({"sentence_number": range(10), "leader": 0.5, "word_leader": 0.5})
    return grades.Stacks(pandas.DataFrame(rows), pandas.DataFrame(points), chance)


@pytest.mark.parametrize(
    ("cosines", "word", "same"),
    [
        ({}, "no evidence", ("random",)),  # the null gathers more
        ({"random": 0.2}, "right", ()),  # both gather, but less
        ({"random": 0.05, "untrained": 0.6}, "no evidence", ("untrained",)),
        ({"random": 0.4, "untrained": 0.4}, "no evidence", ("random", "untrained")),
        ({"real": 0.1}, "not right", ()),  # all ties: not up
        ({"real": 0.05}, "not right", ()),
        ({"twin": 0.05}, "not right", ()),  # the theory says down
        ({"real": 0.05, "twin": 0.01, "untrained": 0.08, "random": 0.2}, "right", ()),  # both down
        ({"real": 0.05, "twin": 0.01}, "right", ()),
        ({"real": 0.05, "twin": 0.01, "untrained": 0.0}, "no evidence", ("untrained",)),
        ({"random": np.tile([0.1, 0.1, 0.5], (10, 1))}, "no evidence", ("random",)),  # one stack
    ],
)
def test_gathering_is_no_evidence_only_if_a_null_does_it_as_much(cosines, word, same):
    found = grades.gather(planted(**cosines))
    assert (found.word, found.same) == (word, same)


def test_the_error_of_a_null_is_the_mean_of_its_stacks_not_that_of_their_mean():
    both_sides = np.tile([0.1, 0.7], (10, 1))  # mean 0.4, as the real stack, errors 0.3
    one = planted(random=both_sides, twin=0.5)
    assert one.values("random", "cosine") == pytest.approx(0.4 * ONE)
    assert one.off("random") == pytest.approx(np.full((10, 2), 0.3))
    found = grades.compare(one, one.off)
    assert (found.word, found.beside["random"][1].wins, found.beside["untrained"][1].wins) == (
        "right",
        10,
        10,
    )


def test_the_error_on_the_way_is_a_mean_over_seeds_and_layers_without_the_embedding():
    one = planted(
        random=np.tile([0.6, 0.3, 0.8], (10, 1))
    )  # the real one: 0.4 times 0.1, 0.4, 0.7, 1
    assert one.off_on_the_way("random") == pytest.approx(np.tile([0.14, 0.07, 0.28], (10, 1)))
    assert one.off_on_the_way("embedding") == pytest.approx(
        0.4 * (0.3 + 0.6 + 0.9) / 3 * ONE[:, None]
    )


def test_averages_over_seeds_are_by_sentence_in_order():
    one = planted(random=np.arange(50.0).reshape(10, 5))
    one = grades.Stacks(one.rows.sample(frac=1, random_state=0), one.curves, one.chance)
    assert one.values("random", "cosine") == pytest.approx(np.arange(10) * 5 + 2.0)
    assert one.middle("random", "cosine") == pytest.approx(24.5)


@pytest.mark.parametrize(
    ("counts", "word", "same"),
    [
        # groups of eight tokens: real, twin, random, untrained, embedding
        ((2, 2, 5, 8, 8), "right", ()),  # as the theory says, and nothing else
        ((2, 3, 5, 8, 8), "right", ()),  # nearer than everything else
        ((2, 2, 2, 8, 8), "no evidence", ("random",)),
        ((8, 1, 1, 8, 8), "not right", ("random", "untrained")),
        ((8, 1, 2, 2, 8), "not right", ("random", "untrained")),
        ((3, 2, 6, 6, 3), "in part", ()),  # the embedding knows it better
    ],
)
def test_as_few_groups(counts, word, same):
    one = planted()
    for variant, count in zip(("real", "twin", *grades.NULLS, "embedding"), counts, strict=True):
        one.rows.loc[one.rows["variant"] == variant, ["clusters", "clusters_80"]] = count
    found = grades.groups_at(one)
    assert (found.word, found.same) == (word, same)
    assert grades.groups_at(one, "clusters_80").word == word
    one.rows["clusters_80"] = 8
    assert grades.groups_at(one, "clusters_80").word == "no evidence"  # all agree
    assert one.off_groups("twin")[:, 0] == pytest.approx(abs(counts[1] - counts[0]) / 8 * ONE)


def with_turns(turns: dict[str, float], real_cosine: float = 0.4) -> grades.Stacks:
    one = planted(real=real_cosine)
    for variant, turn in turns.items():
        one.rows.loc[one.rows["variant"] == variant, "turn"] = turn
    return one


@pytest.mark.parametrize(
    ("twin", "null", "real_cosine", "word"),
    [
        (0.0, 0.9, 0.4, "right"),  # the stack is the theory
        (0.5, 0.9, 0.4, "right"),  # two tokens of the real stack are 0.6 apart
        (0.7, 0.9, 0.4, "in part"),  # another token of the sentence is nearer
        (0.5, 0.9, 0.6, "in part"),
        (0.5, 0.5, 0.4, "no evidence"),  # the null is as near
        (0.9, 0.5, 0.4, "not right"),
    ],
)
def test_near_is_nearer_than_another_token_of_the_sentence(twin, null, real_cosine, word):
    turns = {"twin": twin, "random": null, "untrained": 0.95, "embedding": 0.85}
    assert grades.place(with_turns(turns, real_cosine)).word == word


def test_the_p_of_all_tests_of_a_model_are_corrected_together():
    answers = grades.answers_of(planted())
    tests = [
        one.test for answer in answers for one in answer.beside.values() if one.test is not None
    ]
    assert len(tests) == 24
    assert [p for answer in answers for p in answer.p.values()] == pytest.approx(
        list(holm([test.p for test in tests]))
    )
    tied = next(
        answer
        for (question, _), answer in zip(grades.QUESTIONS, answers, strict=True)
        if "(turn)" in question
    )
    test, p = tied.beside["random"][1], tied.p["random"]
    assert tied.word == "not right" and (test.wins, test.ties, p) == (0, 10, 1.0)
