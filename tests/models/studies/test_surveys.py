"""A survey of many texts is what each text says alone, and its intervals are Student's over
texts.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import attnlab as al
from attnlab.models.studies.findings import findings
from attnlab.models.studies.surveys import NUMBERS, SHARES, intervals
from attnlab.render.survey_figure import draw_survey
from tiny_models import MAKERS

LENGTHS = (4, 9, 7)


def cut(text, special):
    words = text.split()
    words = ["[CLS]", *words, "[SEP]"] if special else words
    return [len(word) for word in words], words


def load(family: str, **options):
    state, raw = MAKERS[family]()
    return al.models.load(state, config=raw, **options)


def texts_of(model):
    generator = np.random.default_rng(3)
    if model.parts.embedding is None:
        return [generator.normal(size=(length, model.config.d)) for length in LENGTHS]
    return [generator.integers(2, model.config.vocabulary, size=length) for length in LENGTHS]


@pytest.mark.parametrize("family", MAKERS)
def test_numbers_are_those_of_each_text_alone(family):
    model = load(family)
    texts = texts_of(model)
    data = al.models.survey(model, texts)
    for number, text in enumerate(texts):
        n, P = len(text), model.attention(text)
        for layer, head in np.ndindex(P.shape[:2]):
            window = model.parts.layers[layer].attention.window or n
            got = [
                sum(float(P[layer, head, i, j]) for i in range(n)) / n for j in range(n)
            ]  # a double loop
            one = data.isel(text=number, layer=layer)
            np.testing.assert_allclose(one["received"].values[head, :n], got, atol=1e-12)
            assert one["sink"].values[head] == pytest.approx(got[0], abs=1e-12)
            assert one["leader"].values[head] == int(np.argmax(got))
            assert one["leader_share"].values[head] == pytest.approx(max(got), abs=1e-12)
            entropy, most, uniform = 0.0, 0.0, 0.0
            for i in range(n):
                last = i + 1 if model.config.is_causal else n
                there = [j for j in range(last) if abs(i - j) < window]
                row = P[layer, head, i]
                entropy -= sum(float(p) * math.log(p) for p in row if p > 0)
                most += math.log(len(there))
                uniform += (0 in there) / len(there) / n
            assert one["entropy"].values[head] == pytest.approx(entropy / most, abs=1e-9)
            assert one["uniform_sink"].item() == pytest.approx(uniform, abs=1e-12)
    assert np.isnan(data["received"].values[0, ..., 4:]).all()


def test_clusters_and_leaders_are_those_of_the_sentence():
    model = load("bert", tokenizer=cut)
    texts = ["a sad old cat", "dogs bark", "we are all here again"]
    data = al.models.survey(model, texts)
    for number, text in enumerate(texts):
        alone = al.models.sentence(model, text, only=["real"]).sel(variant="real")
        one = data.isel(text=number)
        depth = model.config.layers + 1
        for name in ("cosine", "clusters", "rank"):
            np.testing.assert_allclose(one[name].values, alone[name].values[:depth], atol=1e-9)
        received = one["received"].mean("head").values  # (layers, token)
        np.testing.assert_array_equal(
            np.nanargmax(received, axis=1), alone["leader"].values[: depth - 1]
        )
        n = int(one["length"])
        shares = one["received"].values[..., :n]
        np.testing.assert_allclose(
            one["special_share"].values, shares[..., 0] + shares[..., -1], atol=1e-12
        )
        np.testing.assert_array_equal(
            one["own_leader"].values, 1 + shares[..., 1:-1].argmax(axis=-1)
        )
        is_first_or_last = np.isin(shares.argmax(axis=-1), (0, n - 1))
        np.testing.assert_array_equal(one["leader_is_special"].values, is_first_or_last)
        own = model.hidden_states(model.tokens(text)[0])[:, 1:-1]
        for step, x in enumerate(own):
            unit = x / np.linalg.norm(x, axis=1, keepdims=True)
            assert one["own_clusters"].values[step] == components(unit @ unit.T >= 0.9)


def components(joined: np.ndarray) -> int:
    """The number of groups of a graph, by walking through it."""
    left, count = set(range(len(joined))), 0
    while left:
        edge, count = [left.pop()], count + 1
        while edge:
            at = edge.pop()
            near = {j for j in left if joined[at, j]}
            left -= near
            edge += near
    return count


def test_the_table_has_every_number_and_its_interval():
    from scipy import stats

    model = load("bert")
    data = al.models.survey(model, texts_of(model))
    table = intervals(data)
    assert list(table.columns) == ["number", "layer", "head", "mean", "low", "high", "texts"]
    assert set(table["number"]) == set(NUMBERS)
    for row in table.itertuples():
        values = data[row.number].values[:, row.layer]
        values = values if values.ndim == 1 else values[:, row.head]
        assert row.texts == 3 and row.mean == pytest.approx(values.mean())
        if values.std() == 0:
            assert row.low == row.high == row.mean
            continue
        low, high = stats.t.interval(0.95, 2, values.mean(), stats.sem(values))
        if row.number in SHARES:
            low, high = max(low, 0.0), min(high, 1.0)
        assert (row.low, row.high) == (pytest.approx(low), pytest.approx(high))
    per_layer = table[table["number"] == "cosine"]
    assert per_layer["head"].isna().all() and per_layer["layer"].max() == model.config.layers
    alone = intervals(al.models.survey(model, texts_of(model)[:1]))
    assert alone["low"].isna().all() and (alone["texts"] == 1).all()


def test_findings_say_what_the_numbers_are():
    model = load("bert", tokenizer=cut)
    data = al.models.survey(model, ["a sad old cat", "dogs bark at night"])
    said = " ".join(findings(data))
    assert f"receives {data['sink'].values.mean():.0%} of the attention (95 %: " in said
    assert f"receive {data['special_share'].values.mean():.0%}" in said
    assert "clusters at cosine 0.9" in said
    sentences = al.models.sentence(model, ["a sad cat", "dogs bark"], only=["real"])
    alone = [al.models.sentence(model, text, only=["real"]) for text in ("a sad cat", "dogs bark")]
    assert findings(sentences) == [
        f"Text {i}: {line}" for i, one in enumerate(alone) for line in findings(one)
    ]


def test_the_figure_shows_each_head_with_its_interval():
    model = load("bert")
    data = al.models.survey(model, texts_of(model))
    figure = draw_survey(data)
    shown = [text.get_text() for text in figure.axes[0].texts]
    assert len(shown) == 2 * model.config.layers * model.config.heads
    assert shown[0] == f"{100 * data['sink'].values[:, 0, 0].mean():.0f}"
    assert "3 texts" in figure.caption and "Uniform attention" in figure.caption


def test_what_cannot_be_surveyed_is_refused():
    model = load("bert")
    with pytest.raises(ValueError, match="at least two tokens"):
        al.models.survey(model, [np.array([3])])
    with pytest.raises(ValueError, match="Put it into a list"):
        al.models.survey(model, np.arange(3))
    with pytest.raises(ValueError, match="cosine must be between"):
        al.models.survey(model, [np.arange(3)], cosine=1.0)
    with pytest.raises(TypeError, match="what al.models.survey returns"):
        intervals(model.run([np.arange(3)]))


def test_repeated_texts_are_said():
    model = load("bert")
    one, *others = texts_of(model)
    said = findings(al.models.survey(model, [one, *others, one]))
    assert said[-1].startswith("1 of the 4 texts repeats another one.")
    assert not any("repeat" in line for line in findings(al.models.survey(model, [one, *others])))
