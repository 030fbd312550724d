"""compare finds the heads that were changed, by the amount by which they were changed."""

from __future__ import annotations

import dataclasses
import tracemalloc

import numpy as np
import pytest
from scipy import stats
from scipy.linalg import subspace_angles

import attnlab as al
from attnlab.analysis.attention import row_entropy
from attnlab.analysis.significance import holm
from attnlab.models.checkpoints.record import Parts
from tiny_models import MAKERS, bert

TEXTS = [np.array([3, 17, 5, 5, 8]), np.array([2, 9, 10, 4]), np.array([7, 7, 1, 12, 3, 16])]


def load(family: str = "bert", seed: int | None = None):
    state, raw = MAKERS[family]()
    if seed is not None:
        generator = np.random.default_rng(seed)
        state = {
            name: tensor + 0.1 * generator.normal(size=np.shape(tensor)).astype(tensor.dtype)
            for name, tensor in state.items()
        }
    return al.models.load(state, config=raw)


def with_layer(model, number, **fields):
    layers = list(model.parts.layers)
    layers[number] = layers[number].change(**fields)
    parts: Parts = dataclasses.replace(model.parts, layers=tuple(layers))
    return dataclasses.replace(model, name="changed", parts=parts)


@pytest.fixture(scope="module")
def both():
    a, b = load(), dataclasses.replace(load(seed=1), name="later")
    return a, b, al.models.compare(a, b, texts=TEXTS)


def test_matrices_are_compared_as_whole_matrices(both):
    a, b, table = both
    assert len(table) == a.config.layers * a.config.heads
    for row in table.itertuples():
        one, other = (model.weights(row.layer, row.head) for model in (a, b))
        for got, first, second in (
            (row.value_change, one.full_V[0], other.full_V[0]),
            (row.score_change, one.M[0], other.M[0]),
        ):
            expected = np.linalg.norm(second - first) / np.linalg.norm(first)
            assert got == pytest.approx(expected, rel=1e-9)
        for got, first, second in (
            (row.write_overlap, one.V[0][0], other.V[0][0]),
            (row.read_overlap, one.V[1][0].T, other.V[1][0].T),
            (row.query_overlap, one.Q[0].T, other.Q[0].T),
            (row.key_overlap, one.K[0].T, other.K[0].T),
        ):
            angles = subspace_angles(first, second)
            assert got == pytest.approx(np.mean(np.cos(angles) ** 2), rel=1e-9)
        values = np.linalg.eigvals(other.full_V[0])
        assert abs(row.lambda1_b) == pytest.approx(np.abs(values).max(), rel=1e-8)


def test_attention_is_compared_text_by_text(both):
    a, b, table = both
    looks = [(a.attention(text), b.attention(text)) for text in TEXTS]
    raw = []
    for row in table.itertuples():
        pairs = [(P[row.layer, row.head], Q[row.layer, row.head]) for P, Q in looks]
        values = {
            "attention_change": [
                sum(abs(Q[i, j] - P[i, j]) for i in range(len(P)) for j in range(len(P)))
                / 2
                / len(P)
                for P, Q in pairs
            ],
            "sink_change": [Q[:, 0].mean() - P[:, 0].mean() for P, Q in pairs],
            "entropy_change": [row_entropy(Q).mean() - row_entropy(P).mean() for P, Q in pairs],
        }
        for name, given in values.items():
            low, high = stats.t.interval(0.95, 2, np.mean(given), stats.sem(given))
            if name == "attention_change":
                low, high = np.clip([low, high], 0, 1)
            assert getattr(row, name) == pytest.approx(np.mean(given), abs=1e-12)
            assert getattr(row, f"{name}_low") == pytest.approx(low, abs=1e-10)
            assert getattr(row, f"{name}_high") == pytest.approx(high, abs=1e-10)
        raw += [
            stats.ttest_1samp(values[name], 0).pvalue for name in ("sink_change", "entropy_change")
        ]
    expected = holm(raw).reshape(-1, 2).min(axis=1)
    np.testing.assert_allclose(table["p"], expected, rtol=1e-8)
    np.testing.assert_array_equal(table["changed"], expected < 0.05)


def test_memory_does_not_grow_with_the_number_of_texts():
    """A batch has up to 1024 tokens, 17 texts of 60. Twelve batches take no more memory than three:
    attention that is kept makes it 3.7 times as much. Threads change a peak by a tenth or two.
    """
    rng = np.random.default_rng(0)
    Q, K, V = (rng.normal(size=(8, 2, 4)) for _ in range(3))
    a = al.models.heads(Q, K, V, rng.normal(size=(8, 4, 2)))
    b = a.without(heads=[(0, 1)])
    texts = list(rng.normal(size=(204, 60, 4)))
    al.models.compare(a, b, texts=texts[:2])  # imports take memory, too
    peaks = []
    for count in (51, 204):
        tracemalloc.start()
        al.models.compare(a, b, texts=texts[:count])
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]


def test_a_planted_change_is_found_where_it_is():
    a = load()
    part = a.parts.layers[1].attention
    query, key = np.array(part.query), np.array(part.key)
    query[2] = 0  # with its keys gone too, this head attends uniformly
    key[2] = 0
    b = with_layer(a, 1, query=query, key=key)
    rng = np.random.default_rng(0)
    texts = [rng.integers(2, 19, size=n) for n in (5, 6, 7, 8, 9, 10, 5, 7)]
    table = al.models.compare(a, b, texts=texts)
    is_planted = (table["layer"] == 1) & (table["head"] == 2)
    assert (table.loc[is_planted, "score_change"] == 1.0).all()
    assert (table.loc[~is_planted, "score_change"] == 0.0).all()
    assert (table["value_change"] == 0.0).all()
    same = table[table["layer"] == 0]  # nothing before it changed
    assert (same["attention_change"] == 0.0).all() and not same["changed"].any()
    assert (same["p"] == 1.0).all()
    assert table.loc[is_planted, "attention_change"].item() == table["attention_change"].max() > 0
    said = " ".join(al.models.findings(table))
    assert "Attention moved most in L1H2" in said
    assert "V or M changed in 1 of 6 heads: L1H2." in said and "M changed most in L1H2" in said
    assert "0 of 6 heads have another kind" in said


def test_a_model_is_the_same_as_itself_and_steps_are_several_models():
    a = load()
    steps = [dataclasses.replace(load(seed=seed), name=f"step {seed}") for seed in (1, 2)]
    table = al.models.compare(a, a, *steps)
    own = table[table["model"] == a.name]
    assert (own["value_change"] == 0.0).all() and (own["score_change"] == 0.0).all()
    np.testing.assert_allclose(own["write_overlap"], 1.0)
    assert (own["lambda1_a"] == own["lambda1_b"]).all()
    assert list(dict.fromkeys(table["model"])) == [a.name, "step 1", "step 2"]
    assert "changed" not in table and len(al.models.findings(table)) == 13
    assert "V and M are the same in all heads." in al.models.findings(table)
    assert "lambda1_a_real" in table.to_csv() and table.describe().notna().any().any()


@pytest.mark.parametrize("family", MAKERS)
def test_every_family_can_be_compared(family):
    a = load(family)
    texts = TEXTS
    if a.parts.embedding is None:
        texts = [np.random.default_rng(n).normal(size=(n, a.config.d)) for n in (3, 4)]
    table = al.models.compare(a, a.without(heads=[(0, 0)]), texts=texts)
    assert (table["layer"] == 0).any() and len(table) == a.config.layers * a.config.heads
    gone = table[(table["layer"] == 0) & (table["head"] == 0)]
    assert gone["value_change"].item() == pytest.approx(1.0)
    assert "writes nothing" in " ".join(al.models.findings(table))
    assert np.isnan(gone["write_overlap"].item()) and gone["verdict_b"].item() == "zero"


def test_rounding_is_no_change():
    a = load()
    part = a.parts.layers[0].attention
    query, key = part.query.astype(float), part.key.astype(float)
    biases = {"query_bias": 3.0 * part.query_bias.astype(float)}
    biases["key_bias"] = part.key_bias.astype(float) / 3
    b = with_layer(a, 0, query=3 * query, key=key / 3, **biases)  # the same scores, but rounded
    table = al.models.compare(a, b, texts=TEXTS)
    assert 0 < table["attention_change"].max() < 1e-12
    assert not table["changed"].any() and (table["p"] == 1).all()
    assert "V and M are the same in all heads." in al.models.findings(table)
    assert "The attention is the same in all heads." in al.models.findings(table)[-1]


def test_what_changed_outside_of_the_matrices_is_said():
    a = load()
    bias = np.array(a.parts.layers[0].attention.query_bias)
    bias[1] += 2
    said = al.models.findings(al.models.compare(a, with_layer(a, 0, query_bias=bias), texts=TEXTS))
    assert any("So biases, norms, feed-forward parts or the embedding changed" in s for s in said)


def test_a_text_counts_once():
    with pytest.raises(ValueError, match="text 2 repeats text 0"):
        al.models.compare(load(), load(seed=1), texts=[TEXTS[0], TEXTS[1], TEXTS[0]])


def test_models_of_different_shape_are_refused_by_name():
    a = load()
    state, raw = bert(layers=3)
    with pytest.raises(ValueError, match="layers = 2 and 3"):
        al.models.compare(a, al.models.load(state, config=raw))
    state, raw = bert(heads=2)
    with pytest.raises(ValueError, match="heads = 3 and 2, .*head_size = 4 and 6"):
        al.models.compare(a, al.models.load(state, config=raw))
    one, other = (
        al.models.load(
            *[bert()[0]],
            config=bert()[1],
            tokenizer=lambda text, special, k=k: ([k, 2], ["a", "b"]),
        )
        for k in (3, 4)
    )
    with pytest.raises(ValueError, match="cut text 0 differently"):
        al.models.compare(one, other, texts=["some words"])
