"""A model without a part is the checkpoint in which this part writes nothing."""

from __future__ import annotations

import numpy as np
import pytest

import attnlab as al
from attnlab.models.checkpoints.ablation import mean_outputs
from tiny_models import MAKERS, albert, bert, gpt2, llama

IDS = np.array([3, 17, 5, 5, 8, 11, 8])


def load(family: str):
    state, raw = MAKERS[family]()
    return al.models.load(state, config=raw)


def input_of(model, n: int = 7):
    if model.parts.embedding is None:
        return np.random.default_rng(0).normal(size=(n, model.config.d))
    return IDS[:n]


def test_a_head_of_bert_is_its_columns_of_the_output():
    """The columns of W_O that read head 1 of layer 0 are zero in the checkpoint itself."""
    state, raw = bert()
    size = 12 // raw["num_attention_heads"]
    ours = al.models.load(state, config=raw).without(heads=[(0, 1)])
    name = "bert.encoder.layer.0.attention.output.dense.weight"
    spoiled = dict(state)
    spoiled[name] = np.array(state[name])
    spoiled[name][:, size : 2 * size] = 0
    theirs = al.models.load(spoiled, config=raw)
    np.testing.assert_allclose(ours.hidden_states(IDS), theirs.hidden_states(IDS), atol=1e-13)
    whole = al.models.load(state, config=raw)
    assert np.abs(ours.hidden_states(IDS) - whole.hidden_states(IDS)).max() > 1e-3
    assert ours.name.endswith("without L0H1") and ours.address is None


def test_a_head_that_shares_keys_and_values_goes_alone():
    state, raw = llama()
    heads = raw["num_attention_heads"]
    size = 12 // heads
    ours = al.models.load(state, config=raw).without(heads=[(1, 0), (1, heads - 1)])
    (name,) = [one for one in state if "layers.1" in one and one.endswith("o_proj.weight")]
    spoiled = {**state, name: np.array(state[name])}
    spoiled[name][:, :size] = 0
    spoiled[name][:, -size:] = 0
    theirs = al.models.load(spoiled, config=raw)
    np.testing.assert_allclose(ours.hidden_states(IDS), theirs.hidden_states(IDS), atol=1e-13)


def test_a_feed_forward_part_and_an_attention_write_nothing():
    state, raw = gpt2()
    model = al.models.load(state, config=raw)
    for options, part in (
        ({"feedforward": [1]}, "mlp.c_proj"),
        ({"attention": [1]}, "attn.c_proj"),
    ):
        names = [one for one in state if f"h.1.{part}" in one]
        assert len(names) == 2
        spoiled = {**state, **{name: np.zeros_like(state[name]) for name in names}}
        theirs = al.models.load(spoiled, config=raw)
        ours = model.without(**options)
        np.testing.assert_allclose(ours.hidden_states(IDS), theirs.hidden_states(IDS), atol=1e-13)


@pytest.mark.parametrize("family", MAKERS)
def test_all_heads_are_the_attention_without_its_bias(family):
    model = load(family)
    given = input_of(model)
    layer = model.config.layers - 1
    heads = model.without(heads=[(layer, head) for head in range(model.config.heads)])
    bias = heads.parts.layers[layer].attention.output_bias
    data = heads.run(given, keep=["heads"])
    assert not data["heads"].values[0, layer].any()
    gone = model.without(attention=[layer])
    assert gone.parts.layers[layer].attention.output_bias is None
    same = np.allclose(gone.hidden_states(given), heads.hidden_states(given), atol=1e-12)
    assert same == (bias is None or not np.any(bias))
    # layers before it are untouched
    np.testing.assert_array_equal(
        gone.hidden_states(given)[: layer + 1], model.hidden_states(given)[: layer + 1]
    )


@pytest.mark.parametrize("family", MAKERS)
def test_the_mean_over_one_token_changes_nothing(family):
    """A text of one token: each part adds its own mean."""
    model = load(family)
    text = input_of(model, 1)
    text = text if text.ndim > 1 else np.array(text)
    options = {"heads": [(0, 0), (1, 1)], "mean": [text]}
    if model.config.hidden:
        options["feedforward"] = [0]
    same = model.without(**options)
    np.testing.assert_allclose(same.hidden_states(text), model.hidden_states(text), atol=1e-10)
    longer = input_of(model)
    assert np.abs(same.hidden_states(longer) - model.hidden_states(longer)).max() > 1e-6


def test_the_mean_is_over_all_tokens_of_all_texts():
    model = load("bert")
    texts = [IDS[:3], IDS]
    data = model.run(texts, keep=["heads", "feedforward"])
    of_heads, of_fed = mean_outputs(model, texts)
    np.testing.assert_allclose(
        of_heads,
        np.nanmean(np.moveaxis(data["heads"].values, 3, 1).reshape(-1, *of_heads.shape), axis=0),
    )
    assert of_fed.shape == (model.config.layers, 12)
    for name, axis in (
        ("heads", data["heads"].values[:, 1, 2]),
        ("fed", data["feedforward"].values[:, 1]),
    ):
        mean = np.nanmean(axis.reshape(-1, 12), axis=0)
        assert np.isnan(axis).any()
        if name == "heads":
            found = model.without(heads=[(1, 2)], mean=texts).parts.layers[1].attention
            expected = model.parts.layers[1].attention.output_bias + mean
            np.testing.assert_allclose(found.output_bias, expected, atol=1e-12)
        else:
            found = model.without(feedforward=[1], mean=texts).parts.layers[1].feedforward
            np.testing.assert_allclose(found.outer_bias, mean, atol=1e-12)


def test_norms_become_identities():
    model = load("gpt2")
    bare = model.without(norms=[0]).parts.layers[0]
    assert bare.attention_block.norm_before is None
    assert model.without(norms=[0]).parts.layers[1] is model.parts.layers[1]
    x = model.hidden_states(IDS)
    from attnlab.models.checkpoints.forward import attention_output, feedforward

    layer, seen = model.parts.layers[0], np.tri(7, dtype=bool)
    middle = x[0] + attention_output(layer.attention, x[0], seen)[0]
    expected = middle + feedforward(layer.feedforward, middle)
    np.testing.assert_allclose(model.without(norms=[0]).hidden_states(IDS)[1], expected, atol=1e-12)


def test_a_tied_model_stays_tied_if_all_layers_lose_the_same():
    state, raw = albert()
    model = al.models.load(state, config=raw)
    every = model.without(heads=[(layer, 0) for layer in range(model.config.layers)])
    assert every.config.is_tied and len({id(layer) for layer in every.parts.layers}) == 1
    assert not model.without(heads=[(1, 0)]).config.is_tied
    assert not model.without(heads=[(1, 0)]).weights(1, 0).V[0].any()
    assert model.without(heads=[(1, 0)]).weights(0, 0).V[0].any()


def test_what_cannot_be_left_out_is_refused():
    model = load("bert")
    with pytest.raises(ValueError, match="Name what to leave out"):
        model.without()
    with pytest.raises(ValueError, match=r"pairs \(layer, head\)"):
        model.without(heads=[3])
    with pytest.raises(ValueError, match="norms must be a list of layers"):
        model.without(norms=True)
    with pytest.raises(ValueError, match="There is no layer 9"):
        model.without(feedforward=[9])
    with pytest.raises(ValueError, match="There is no head 9"):
        model.without(heads=[(0, 9)])
