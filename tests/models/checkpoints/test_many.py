"""Many texts in one call are the same texts one by one: padding changes nothing, in every
family.
"""

from __future__ import annotations

import numpy as np
import pytest

import attnlab as al
from attnlab.models.checkpoints import many
from attnlab.models.checkpoints.model import is_many
from tiny_models import MAKERS

LENGTHS = (3, 9, 7, 8, 1, 2)


def load(family: str):
    state, raw = MAKERS[family]()
    return al.models.load(state, config=raw)


def texts_of(model, rng: int = 0):
    """Ids of unequal lengths: padding and the dropped id may stand among them."""
    generator = np.random.default_rng(rng)
    if model.parts.embedding is None:
        return [generator.normal(size=(length, model.config.d)) for length in LENGTHS]
    return [generator.integers(0, model.config.vocabulary, size=length) for length in LENGTHS]


@pytest.mark.parametrize("family", MAKERS)
@pytest.mark.parametrize("stretch", [1.25, 100.0])
def test_a_text_in_company_is_the_text_alone(family, stretch, monkeypatch):
    monkeypatch.setattr(many, "STRETCH", stretch)  # 100: all texts are one padded batch
    model = load(family)
    texts = texts_of(model)
    data = model.run(texts)
    assert data["length"].values.tolist() == list(LENGTHS)
    for number, text in enumerate(texts):
        n, one = len(text), data.isel(text=number)
        states, attention = model.hidden_states(text), model.attention(text)
        np.testing.assert_allclose(one["x"].values[:, :n], states, rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(
            one["attention"].values[..., :n, :n], attention, rtol=1e-11, atol=1e-12
        )
        for name in ("x", "attention", "heads"):
            values = one[name].transpose("token", ...).values
            assert np.isfinite(one[name].isel(token=slice(n)).values[..., :n]).all()
            assert np.isnan(values[n:]).all()
        if model.parts.embedding is not None:
            np.testing.assert_array_equal(one["id"].values, [*text, *[-1] * (9 - n)])
        assert one["word"].values.tolist()[n:] == [""] * (9 - n)


@pytest.mark.parametrize("family", ["bert", "opt", "llama"])
def test_each_method_takes_a_list(family):
    model = load(family)
    texts, data = texts_of(model), model.run(texts_of(model))
    assert model.hidden_states(texts)["x"].equals(data["x"])
    assert model.attention(texts)["attention"].equals(data["attention"])
    assert list(model.run(texts, keep=("heads",)).data_vars) == ["heads"]
    one = model.run(texts[1], keep=("x",), dtype=np.float32)
    assert one.sizes["text"] == 1 and one["x"].dtype == np.float32


def test_heads_add_up_to_the_stream():
    """BERT: the norm of the stream and what attention adds, then the feed-forward part, is the next
    stream.
    """
    from attnlab.models.checkpoints.forward import apply_norm, feedforward

    model = load("bert")
    data = model.run([np.array([3, 1, 4, 1])], keep=["x", "heads", "feedforward"])
    for number, layer in enumerate(model.parts.layers):
        x = data["x"].values[0, number]
        added = data["heads"].values[0, number].sum(axis=0) + layer.attention.output_bias
        middle = apply_norm(layer.attention_block.norm_sum, x + added)
        fed = feedforward(layer.feedforward, middle)
        np.testing.assert_allclose(data["feedforward"].values[0, number], fed, atol=1e-10)
        after = apply_norm(layer.feedforward_block.norm_sum, middle + fed)
        np.testing.assert_allclose(data["x"].values[0, number + 1], after, atol=1e-10)


def test_arrays_and_lists_of_numbers_stay_what_they_were():
    model = load("bert")
    for given, shape in (
        ([3, 1, 4], (3, 3, 12)),
        ([[3, 1, 4], [1, 5, 9]], (2, 3, 3, 12)),
        (np.array([[3, 1, 4], [1, 5, 9]]), (2, 3, 3, 12)),
    ):
        found = model.hidden_states(given)
        assert isinstance(found, np.ndarray) and found.shape == shape
    assert is_many(["a", "b"]) and is_many([np.arange(3)]) and is_many((np.arange(3), np.arange(3)))
    for given in ("a", [1, 2], [[1, 2], [3, 4]], np.eye(2), [], (np.arange(3), ["a", "b"])):
        assert not is_many(given)


def test_words_and_added_tokens_of_a_list():
    def cut(text, special):
        words = text.split()
        words = ["[CLS]", *words, "[SEP]"] if special else words
        return [len(word) for word in words], words

    state, raw = MAKERS["bert"]()
    model = al.models.load(state, config=raw, tokenizer=cut)
    texts = ["a sad cat", "dogs"]
    data = model.tokens(texts)
    assert data["word"].values.tolist() == [
        ["[CLS]", "a", "sad", "cat", "[SEP]"],
        ["[CLS]", "dogs", "[SEP]", "", ""],
    ]
    assert data["is_special"].values.tolist() == [[1, 0, 0, 0, 1], [1, 0, 1, 0, 0]]
    assert data["content"].values.tolist() == texts
    ids, words = model.tokens("dogs")
    assert ids.tolist() == [5, 4, 5] and words == ["[CLS]", "dogs", "[SEP]"]
    np.testing.assert_allclose(
        model.hidden_states(texts)["x"].values[1, :, :3], model.hidden_states(ids), atol=1e-12
    )
    assert model.tokens(texts, special=False)["length"].values.tolist() == [3, 1]


def test_what_cannot_run_is_refused():
    model = load("bert")
    with pytest.raises(
        ValueError, match=r"keep must hold some of x, attention, heads, feedforward, got walk"
    ):
        model.run([np.arange(3)], keep=("walk",))
    with pytest.raises(ValueError, match="leave mask out"):
        model.hidden_states([np.arange(3)], mask=np.ones(3))
    with pytest.raises(ValueError, match="at least one text"):
        many.read_texts(model, [])
    with pytest.raises(ValueError, match="one array"):
        model.run([np.ones((2, 3), dtype=int)])
    with pytest.raises(ValueError, match="a list of arrays, one for each text"):
        model.hidden_states([[1, 2], [3]])
    assert model.run([[1, 2], [3]], keep=["x"])["length"].values.tolist() == [2, 1]
    assert model.run([1, 2, 3], keep=["x"])["length"].values.tolist() == [3]
    with pytest.raises(ValueError, match="float32 or float64"):
        model.run([np.arange(3)], dtype=np.float16)


def test_batches_hold_texts_of_similar_length():
    model = load("bert")
    tokens = many.read_texts(model, texts_of(model))
    found = [batch.lengths for batch in many.batches(model, tokens)]
    assert sorted(n for lengths in found for n in lengths) == sorted(LENGTHS)
    assert all(max(lengths) <= 1.25 * min(lengths) + 1 for lengths in found)
    assert len(found) < len(LENGTHS)


def test_the_text_that_cannot_be_read_is_named():
    state, raw = MAKERS["bert"]()
    model = al.models.load(state, config=raw)
    with pytest.raises(ValueError, match="Text 1 of 2, from 0: Token ids must be"):
        model.run([np.array([1, 2]), np.array([1, 999])])
