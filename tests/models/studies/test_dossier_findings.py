"""What a dossier says about theory and model: planted stacks lead to each verdict."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import attnlab as al
import tiny_models
from attnlab.models.studies.dossier import Dossier, dossier
from attnlab.models.studies.dossier_findings import (
    COSINE_WORDS,
    TURN_WORDS,
    cosine_word,
    findings,
    same_leader,
    turn_word,
)
from attnlab.models.studies.grades import NULLS, Stacks
from attnlab.models.studies.stacks import STACKS

GATHER = "Do the tokens turn towards each other?"
GROUPS = "Do the tokens end in as few groups (cosine 0.9)?"
PLACE = "Is each token where the theory says?"
LEADERS = "Do the same words lead (receive most attention)?"


@pytest.fixture(scope="module", params=["bert", pytest.param("albert", marks=pytest.mark.slow)])
def found(request) -> Dossier:
    state, raw = getattr(tiny_models, request.param)()
    return dossier(al.models.load(state, config=raw), work=2_000.0)


def outcomes(found: Dossier, **changed) -> dict[str, str]:
    """The outcomes with other numbers: {variant: {column: number}}. A number may be one per stack."""
    rows = found.stacks.rows.copy()
    for variant, columns in changed.items():
        for name, value in columns.items():
            is_it = rows["variant"] == variant
            values = np.resize(np.atleast_1d(np.asarray(value, float)), is_it.sum())
            if np.size(value) == STACKS:  # by seed, not by row
                values = np.asarray(value, float)[rows.loc[is_it, "seed"].to_numpy()]
            rows.loc[is_it, name] = values
    stacks = Stacks(rows, found.stacks.curves, found.stacks.chance)
    return {one.question: one.outcome for one in findings(replace(found, stacks=stacks))}


FAR_AWAY = {"cosine": 0.05, "clusters": 7, "turn": 0.9, "word_leader": 0.0, "n": 8}
THEORY = {"cosine": 0.5, "clusters": 3, "turn": 0.0, "word_leader": 1.0, "n": 8}
START = {"cosine": 0.0, "clusters": 8, "turn": 0.8, "n": 8}
NOTHING = {"random": FAR_AWAY, "untrained": FAR_AWAY, "embedding": START}


def test_a_stack_that_is_the_theory_is_right(found):
    said = outcomes(found, real=THEORY, twin=THEORY, **NOTHING)
    assert [said[name] for name in (GATHER, GROUPS, PLACE, LEADERS)] == ["right"] * 4


@pytest.mark.parametrize("null", NULLS)
def test_a_null_that_does_the_same_takes_the_evidence_away(found, null):
    said = outcomes(found, **{"real": THEORY, "twin": THEORY, **NOTHING, null: THEORY})
    assert [said[name] for name in (GATHER, GROUPS, PLACE, LEADERS)] == ["no evidence"] * 4


def test_one_null_stack_of_six_is_enough_for_that(found):
    """The others are far away, and so is the mean over the six."""
    one_of_six = {
        name: [THEORY[name]] + [FAR_AWAY[name]] * (STACKS - 1)
        for name in ("cosine", "clusters", "turn", "word_leader")
    }
    said = outcomes(
        found, **{"real": THEORY, "twin": THEORY, **NOTHING, "random": {**FAR_AWAY, **one_of_six}}
    )
    assert [said[name] for name in (GATHER, GROUPS, PLACE, LEADERS)] == ["no evidence"] * 4


def test_a_stack_that_is_far_from_the_theory_is_wrong(found):
    """The nulls, or the embedding, are nearer to it than the idealised model is."""
    real = {"cosine": -0.1, "clusters": 8, "n": 8}
    far = {**THEORY, "turn": 1.2, "clusters": 1, "word_leader": 0.0}
    nulls = {**START, "word_leader": 0.5}
    said = outcomes(found, real=real, twin=far, random=nulls, untrained=nulls, embedding=START)
    assert [said[name] for name in (GATHER, GROUPS, PLACE, LEADERS)] == ["wrong"] * 4


def test_better_than_the_nulls_but_not_than_doing_nothing_is_right_in_part(found):
    real, twin = {"cosine": 0.5, "clusters": 8, "n": 8}, {**THEORY, "clusters": 6, "turn": 0.4}
    nulls = {**FAR_AWAY, "clusters": 1}
    embedding = {**START, "turn": 0.3}
    said = outcomes(found, real=real, twin=twin, random=nulls, untrained=nulls, embedding=embedding)
    assert (said[GROUPS], said[PLACE]) == ("in part", "in part")
    # nearer than everything, but another token of the sentence is nearer still: 1 - 0.7 < 0.4
    real["cosine"] = 0.7
    said = outcomes(found, real=real, twin=twin, random=nulls, untrained=nulls, embedding=START)
    assert said[PLACE] == "in part"
    real["cosine"] = 0.5
    said = outcomes(found, real=real, twin=twin, random=nulls, untrained=nulls, embedding=START)
    assert said[PLACE] == "right"


def test_a_sentence_that_disagrees_changes_the_answer(found):
    """With two sentences both must agree."""
    said = outcomes(found, real=THEORY, twin={**THEORY, "turn": [0.0, 0.95]}, **NOTHING)
    assert len(found.sentences) == 2 and said[PLACE] == "not right" or said[PLACE] == "wrong"


def test_a_tied_layer_is_judged_beside_several_that_learned_nothing(found):
    is_tied = found.model.config.is_tied
    assert len(found.tied) == int(is_tied) and len(found.tied_null) == STACKS * int(is_tied)
    for one in found.tied:
        few, many = one.copy(deep=True), one.copy(deep=True)
        few["clusters"].values[:] = [9] + [1] * (len(few["clusters"]) - 1)
        many["clusters"].values[:] = 9
        for model, random, outcome in (
            (few, [many] * STACKS, "right"),
            (few, [many] * (STACKS - 1) + [few], "no evidence"),
            (few, [few] * STACKS, "no evidence"),
            (many, [few] * STACKS, "wrong"),
        ):
            told = findings(replace(found, tied=(model,), tied_null=tuple(random)))[-1]
            assert told.outcome == outcome
        first = [null["cosine"].values[1] for null in found.tied_null]
        assert len(set(first)) == STACKS  # six different layers


def test_a_layer_that_gathers_late_is_compared_at_the_depth_of_the_null(found):
    for one in found.tied:
        late, short = one.copy(deep=True), one.isel(step=slice(0, 6)).copy(deep=True)
        late["clusters"].values[:] = [9] * 6 + [1] * (len(late["clusters"]) - 6)
        short["clusters"].values[:] = 4
        short.attrs |= {"steps": 5, "outcome": "moving"}
        told = findings(replace(found, tied=(late,), tied_null=(short,)))[-1]
        assert told.outcome == "no evidence"  # after five layers it has not gathered
        short.attrs["outcome"] = "settled"  # the null will never gather further
        told = findings(replace(found, tied=(late,), tied_null=(short,)))[-1]
        assert told.outcome == "right"


def test_same_leader_by_hand(found):
    for data in found.sentences:
        layers, n = found.model.config.layers, data.sizes["token"]
        for variant in ("real", "twin", "random"):
            hits = []
            for layer in range(1, layers):
                one, other = (
                    data["received"].sel(variant=name).values[layer] for name in ("real", variant)
                )
                own = [j for j in range(n) if not data["is_special"].values[j]]
                hits.append(max(own, key=lambda j: one[j]) == max(own, key=lambda j: other[j]))
            assert same_leader(data, variant) == pytest.approx(np.mean(hits))
        assert same_leader(data, "real") == 1.0


def test_tokens_of_the_model_itself_do_not_lead(found):
    data = found.sentences[0].copy(deep=True)
    data["is_special"].values[0] = 1
    data["received"].values[..., 0] = 2.0  # it would lead everywhere, and every variant would agree
    row = data["variant"].values.tolist().index("twin")
    data["received"].values[row, :, 1], data["received"].values[0, :, 2] = 1.5, 1.5
    assert same_leader(data, "twin") == 0.0


@pytest.mark.parametrize(
    ("word", "words", "last"),
    [(turn_word, TURN_WORDS, "opposite"), (cosine_word, COSINE_WORDS, "almost one direction")],
)
def test_numbers_have_words(word, words, last):
    for (low, named), (high, after) in zip(words, words[1:], strict=False):
        assert word(low - 1e-9) == named and word(low) == after and word(high - 1e-9) == after
    assert word(words[-1][0]) == last and word(float("nan")) == "not a number"
