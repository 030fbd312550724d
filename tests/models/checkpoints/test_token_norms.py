"""The norms of the tokens that heads read: from gains and biases, or measured; and what
effective_beta makes of them.
"""

from __future__ import annotations

import numpy as np
import pytest

import attnlab as al
import tiny_models
from attnlab.models.catalog import catalog
from attnlab.models.checkpoints.forward import apply_norm
from attnlab.models.checkpoints.token_norms import ASSUMED, expected_squares, measure_radius

IDS = [3, 1, 4, 1, 5]
OTHER = [9, 2, 6]


def loaded(family):
    state, raw = tiny_models.MAKERS[family]()
    return al.models.load(state, config=raw)


def drawn(norm, count=200_000):
    """Tokens with independent normal coordinates after this norm."""
    return apply_norm(norm, np.random.default_rng(0).normal(size=(count, len(norm.gain))))


@pytest.mark.parametrize("family", tiny_models.MAKERS)
def test_gains_and_biases_give_the_norm_of_evenly_spread_tokens(family):
    m = loaded(family)
    found = expected_squares(m.parts, fold_norm=False)
    assert found.shape == (m.config.layers,)
    if (
        m.config.is_pre_norm
    ):  # the first layer of ModernBERT has no norm of its own: it reads the embedding's
        after = [
            drawn(layer.attention_block.norm_before or m.parts.embedding.norm)
            for layer in m.parts.layers
        ]
    else:
        embedding = m.parts.embedding
        if embedding is None:  # nothing says what enters: measure it
            assert np.isnan(found[0])
            return
        first = drawn(embedding.norm)
        if embedding.projection is not None:
            first = (
                first @ np.asarray(embedding.projection, dtype=float).T + embedding.projection_bias
            )
        after = [first, *(drawn(layer.feedforward_block.norm_sum) for layer in m.parts.layers[:-1])]
    sampled = [np.square(x).sum(axis=1) for x in after]
    for square, by_draws in zip(found, sampled, strict=True):
        assert (
            abs(square - by_draws.mean())
            < 5 * by_draws.std() / np.sqrt(len(by_draws)) + 1e-4 * square
        )
    assert np.abs(found / m.config.d - 1).max() > 0.05  # d is another number


@pytest.mark.parametrize("family", ["gpt2", "llama", "gpt_neox"])
def test_matrices_with_the_gain_inside_read_tokens_of_norm_sqrt_d(family):
    m = loaded(family)
    assert (expected_squares(m.parts) == m.config.d).all()
    found = al.models.spectra(m, null=2, texts=[IDS])
    assert found["token_norm"].to_numpy() == pytest.approx(
        np.sqrt(m.config.d), rel=1e-2
    )  # eps takes a little
    assert (found["norms"] == "measured").all()


@pytest.mark.parametrize("family", tiny_models.MAKERS)
def test_measured_norms_are_those_of_all_tokens_of_all_texts(family):
    m = loaded(family)
    texts = [tiny_models.given(m, ids) for ids in (IDS, OTHER)]
    found = al.models.spectra(m, null=2, fold_norm=False, texts=texts)
    tokens = np.concatenate([m.hidden_states(text) for text in texts], axis=1)[
        :-1
    ]  # (layers, 8, d)
    if m.config.is_pre_norm:
        norms = [layer.attention_block.norm_before for layer in m.parts.layers]
        tokens = np.stack(
            [
                x if norm is None else apply_norm(norm, x)
                for norm, x in zip(norms, tokens, strict=True)
            ]
        )
    squares = (tokens**2).sum(axis=-1).mean(axis=-1)
    for row in found.itertuples():
        square = squares.mean() if m.config.is_tied else squares[row.layer]
        assert row.token_norm**2 == pytest.approx(square, rel=1e-12)
        M = m.weights(row.layer, row.head, fold_norm=False)
        M = M.Q[0].T @ M.K[0]
        beta = square * np.linalg.norm((M + M.T) / 2) / np.sqrt(m.config.d)
        assert row.effective_beta == pytest.approx(beta, rel=1e-10)


def test_without_texts_a_column_says_that_gains_were_used():
    m = loaded("bert")
    gains, measured = al.models.spectra(m, null=30), al.models.spectra(m, null=30, texts=[IDS])
    assert (gains["norms"] == "from the gains").all() and (measured["norms"] == "measured").all()
    assert gains["token_norm"].to_numpy() ** 2 == pytest.approx(
        np.repeat(expected_squares(m.parts), m.config.heads)
    )
    ratio = (gains["effective_beta"] / measured["effective_beta"]).to_numpy()
    assert ratio == pytest.approx((gains["token_norm"] / measured["token_norm"]).to_numpy() ** 2)
    # where a head stands among random ones does not depend on the tokens
    assert (gains["effective_beta_quantile"] == measured["effective_beta_quantile"]).all()
    with pytest.raises(ValueError, match="texts must be a list of texts"):
        al.models.spectra(m, texts="one text")


def test_the_tokens_of_minilm_are_shorter_than_sqrt_d():
    if not catalog.is_cached("minilm"):
        pytest.skip("minilm has not been fetched")
    m = al.models.load("minilm")
    text = "The cat sat on the mat because it was tired."
    found = al.models.spectra(m, null=2, texts=[text])
    ratio = (m.config.d / found["token_norm"] ** 2).to_numpy()
    assert (
        2.4 < ratio.min() < 3 and 4 < ratio.max() < 5
    )  # how far |x|^2 = d was off, by another program too
    norms = al.models.sentence(m, text, only=["twin"])["norm"].values  # (real, twin; steps)
    assert np.abs(norms[1] / norms[0] - 1).max() < 0.1


# --------------------------------------------------------------------------------------------------
# a radius without a text


@pytest.mark.parametrize("family", tiny_models.MAKERS)
def test_the_radius_of_a_layer_is_that_of_what_its_attention_reads(family):
    """Every token of every input, one after the other, through the public hidden states."""
    m = loaded(family)
    generator, count = np.random.default_rng(0), min(16, m.config.length)
    if m.parts.embedding is None:
        inputs, what = (
            generator.standard_normal((8, count, m.config.d)),
            "measured on random tokens",
        )
    else:
        inputs, what = (
            generator.integers(0, m.config.vocabulary, (8, count)),
            "measured on random ids",
        )
    for number, layer in enumerate(m.parts.layers):
        radius, source = measure_radius(m, number)
        norm, squares = layer.attention_block.norm_before, []
        if m.parts.embedding is None and number == 0 and norm is None:
            assert (radius, source) == (np.sqrt(m.config.d), ASSUMED)
            continue
        for one in inputs:
            for x in m.hidden_states(one)[number]:
                if norm is not None:  # its gain is in the matrices
                    x = x - x.mean() if norm.kind == "layer" else x
                    x = x / np.sqrt(np.mean(x**2) + norm.eps)
                squares.append(x @ x)
        assert source == what and radius == pytest.approx(np.sqrt(np.mean(squares)), rel=1e-5)
        assert float(f"{radius:.6g}") == radius  # the same digits on every machine


def test_the_radius_follows_the_gains_of_the_model():
    """Twice the gain of the last norm of layer 0 is twice the norm in layer 1, which is no sqrt(d)."""
    state, raw = tiny_models.bert()
    name = next(key for key in state if "layer.0.output.LayerNorm.weight" in key)
    before = measure_radius(al.models.load(state, config=raw), 1)[0]
    bias = name.replace("weight", "bias")
    doubled = {**state, name: 2 * state[name], bias: 2 * state[bias]}
    after = measure_radius(al.models.load(doubled, config=raw), 1)[0]
    assert after == pytest.approx(2 * before, rel=1e-5)
    assert abs(before / np.sqrt(raw["hidden_size"]) - 1) > 0.02


def test_matrices_alone_say_nothing_about_norms_but_a_norm_before_attention_does():
    Q, K, V = np.random.default_rng(0).normal(size=(3, 2, 4, 6))
    plain = al.models.heads(Q, K, V, np.swapaxes(V, 1, 2))
    assert measure_radius(plain, 0) == (np.sqrt(6), ASSUMED)
    normed = al.models.heads(Q, K, V, np.swapaxes(V, 1, 2), norm="rms")
    radius, source = measure_radius(normed, 0)
    assert radius == pytest.approx(np.sqrt(6), rel=1e-3) and source != ASSUMED
