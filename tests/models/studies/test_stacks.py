"""The tables that grades judge: every number beside the one that other functions give."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import attnlab as al
import tiny_models
from attnlab.models.studies.agreement import SCALES
from attnlab.models.studies.grades import NULLS, QUESTIONS, WORDS, answers_of
from attnlab.models.studies.sentences import measure_tokens
from attnlab.models.studies.stacks import STACKS, read_stacks
from attnlab.models.studies.variants import initial_size, learned_nothing, random_parts

READINGS = [{"ids": [3, 1, 4, 1, 5]}, {"ids": [9, 2, 6, 5]}, {"ids": [3, 5, 8, 9, 7, 9]}]


@pytest.fixture(scope="module")
def model():
    state, raw = tiny_models.bert()
    return al.models.load(state, config=raw)


@pytest.fixture(scope="module")
def one(model):
    return read_stacks(model, READINGS, rng=3)


def test_there_is_a_row_for_each_sentence_and_stack(one):
    rows = one.rows.groupby("variant").size().to_dict()
    assert rows == {"embedding": 3, "real": 3, "twin": 3, **dict.fromkeys(NULLS, 3 * STACKS)}
    assert set(one.rows[one.rows["variant"] == "random"]["seed"]) == set(range(STACKS))
    answers = answers_of(one)
    assert len(answers) == len(QUESTIONS) and {answer.word for answer in answers} <= set(WORDS)


def test_the_numbers_of_each_stack_are_those_of_its_own_run(model, one):
    for number, reading in enumerate(READINGS):
        x = model.hidden_states(reading["ids"])[-1]
        u = x / np.linalg.norm(x, axis=1, keepdims=True)
        pairs = (u @ u.T)[np.triu_indices(len(u), 1)]
        assert one.values("real", "cosine")[number] == pytest.approx(pairs.mean())
        assert one.values("real", "turn")[number] == pytest.approx(0, abs=1e-12)
        for scale in SCALES:
            count = measure_tokens(x[None], scale)["clusters"][0]
            assert one.values("real", f"clusters_{100 * scale:.0f}")[number] == count
        for seed in (0, STACKS - 1):  # by hand, with the size of each own matrix
            parts = random_parts(model.parts, 3 + seed)
            y = replace(model, parts=parts).hidden_states(reading["ids"])[-1]
            v = y / np.linalg.norm(y, axis=1, keepdims=True)
            turn = 1 - (u * v).sum(axis=1).mean()
            assert one.seeded("random", "turn")[number, seed] == pytest.approx(turn)


def test_stacks_that_learned_nothing_have_the_sizes_of_their_null(model):
    own, drawn = (
        stack.parts.layers[0].attention.query
        for stack in (model, learned_nothing(model, "random", 0))
    )
    assert np.sqrt(np.mean(drawn**2)) == pytest.approx(np.sqrt(np.mean(own**2)), rel=0.2)
    small = learned_nothing(model, "untrained", 0).parts.layers[0].attention.query
    assert np.sqrt(np.mean(small**2)) == pytest.approx(initial_size(model), rel=0.2)


def test_sentences_that_are_known_are_not_read_again(model, one):
    known = [al.models.sentence(model, **reading, only=["twin"]) for reading in READINGS]
    again = read_stacks(model, READINGS, known=known, rng=3)
    for name in ("rows", "curves", "chance"):
        assert getattr(again, name).equals(getattr(one, name)), name


def test_one_sentence_leaves_a_blind_guess_of_the_leader(model, one):
    single = read_stacks(model, READINGS[:1])
    assert single.chance["leader"].tolist() == [1 / 5] == single.chance["word_leader"].tolist()
    assert one.chance["leader"].between(0, 1).all() and len(one.chance) == 3


def test_the_first_stack_of_each_null_is_the_variant_of_that_name(model, one):
    """`sentence` runs its nulls another way, with the same seed."""
    for number, reading in enumerate(READINGS):
        data = al.models.sentence(model, **reading, only=NULLS, rng=3)
        for null in NULLS:
            for name in ("cosine", "clusters", "turn"):
                value = float(data[name].sel(variant=null).values[-1])
                assert one.seeded(null, name)[number, 0] == pytest.approx(value, rel=1e-12)
