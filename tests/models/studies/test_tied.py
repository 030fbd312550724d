"""One layer again and again: what it must find where the answer is known by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import attnlab as al
import tiny_models
from attnlab.models.checkpoints.forward import layer_step
from attnlab.models.studies.tied import _stays_above, find_grouping_step, fit_rate, token_names
from attnlab.models.studies.variants import in_precision

IDS = [3, 1, 4, 1, 5, 9, 2]


def made(family: str) -> al.models.Model:
    state, raw = getattr(tiny_models, family)()
    return al.models.load(state, config=raw)


def planted(
    family: str, output: np.ndarray | None = None, value: np.ndarray | None = None, outer_bias=None
) -> al.models.Model:
    """A layer whose scores are 0 (attention is uniform), whose feed-forward part is a constant, and
    whose norms have gain 1.
    """
    model = made(family)
    layer = in_precision(model.parts.layers[0], float)
    d = model.config.d
    fields = vars(layer.attention) | vars(layer.feedforward)
    changes = {
        name: np.zeros_like(fields[name])
        for name in ("query", "key", "output", "outer", "outer_bias")
    }
    changes |= {name: None for name in ("query_bias", "key_bias", "value_bias", "output_bias")}
    if output is not None:
        changes |= {"output": output, "value": value}
    changes["outer_bias"] = np.zeros(d) if outer_bias is None else outer_bias
    layer = layer.change(**changes).change_norms(
        lambda norm: replace(norm, gain=np.ones(d), bias=None if norm.bias is None else np.zeros(d))
    )
    return replace(model, parts=replace(model.parts, layers=(layer,) * model.config.layers))


def heads_of(matrix: np.ndarray, heads: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """(output, value) with sum_h output_h value_h = matrix: value cuts the identity into heads."""
    d = len(matrix)
    value = np.eye(d).reshape(heads, d // heads, d)
    return np.moveaxis(matrix.reshape(d, heads, d // heads), 1, 0), value


def test_norms_alone_cluster_nothing():
    data = al.models.iterate(planted("albert"), ids=IDS)
    assert data.attrs["outcome"] == "settled" and data.attrs["steps"] < 12
    different = len(
        np.unique(data["x"].values[0].round(9), axis=0)
    )  # equal tokens at other places differ
    assert len(set(data["clusters"].values[1:])) == 1 and data.attrs["points"] == different
    assert "No clusters form" in data.attrs["answer"] and "fixed points" in data.attrs["answer"]
    np.testing.assert_allclose(data["received"].values[:-1], 1 / len(IDS))
    assert "in the end all tokens receive the same" in data.attrs["answer"]


def test_a_contraction_by_hand_has_its_rate():
    """Uniform attention with W_O W_V = c: x_i -> norm(x_i + c mean), so differences shrink by 1 /
    (1 + c) in each layer.
    """
    c = 0.5
    model = planted("albert", *heads_of(c * np.eye(12)))
    data = al.models.iterate(model, ids=IDS)
    assert (
        data.attrs["outcome"] == "settled"
        and data.attrs["points"] == 1
        and data["clusters"].values[-1] == 1
    )
    assert data.attrs["rate_low"] - 1e-6 <= 1 / (1 + c) <= data.attrs["rate_high"] + 1e-6
    assert data.attrs["rate"] == pytest.approx(1 / (1 + c), rel=1e-3)
    assert (
        "point the same way" in data.attrs["answer"] and "one fixed point" in data.attrs["answer"]
    )
    least, step = data["cosine_least"].values, int(data["passed_by_all"].values[1])
    assert (least[step:] > 0.99).all() and least[step - 1] <= 0.99
    assert data["passed"].values[0] <= data["passed_by_all"].values[0] <= step


def test_what_it_does_is_the_layer_of_the_model():
    for family in ("albert", "gpt2"):
        model = made(family)
        layer = model.config.layers - 1
        data = al.models.iterate(model, ids=IDS, layer=layer, times=5)
        x = model.hidden_states(IDS)[0]
        seen = (
            np.tri(len(IDS), dtype=bool)
            if model.config.is_causal
            else np.ones((len(IDS),) * 2, bool)
        )
        np.testing.assert_allclose(data["x"].values[0], x, rtol=1e-12)
        before = x
        for _ in range(5):
            before, (x, _) = x, layer_step(model.parts.layers[layer], x, seen)
        np.testing.assert_allclose(data["x"].values[-1], x, rtol=1e-9)
        assert data["change"].values[-1] == pytest.approx(
            np.linalg.norm(x - before) / np.linalg.norm(x), rel=1e-6
        )
        turns = [
            x[i] / np.linalg.norm(x[i]) - before[i] / np.linalg.norm(before[i])
            for i in range(len(IDS))
        ]
        assert data["turning"].values[-1] == pytest.approx(
            np.sqrt(np.mean([turn @ turn for turn in turns])), rel=1e-6
        )


def test_a_tied_model_is_its_own_iteration():
    model = made("albert")
    data = al.models.iterate(model, ids=IDS, times=model.config.layers)
    np.testing.assert_allclose(data["x"].values[-1], model.hidden_states(IDS)[-1], rtol=1e-10)
    np.testing.assert_allclose(
        data["received"].values[:-1], model.attention(IDS).mean(axis=(1, 2)), rtol=1e-10
    )


@pytest.mark.parametrize("period", [2, 3, 5])
def test_cycles_are_found_with_their_period(period):
    """W_O W_V = R - 1 with a permutation R, and equal tokens, so that the mean is each of them: x
    goes to x + (R - 1) x = R x.
    """
    R = np.eye(12)
    R[:period, :period] = np.roll(np.eye(period), 1, axis=0)
    model = planted("albert", *heads_of(R - np.eye(12)))
    same = [4, 4]
    embedding = model.parts.embedding
    assert embedding.positions is not None
    still = replace(
        model,
        parts=replace(
            model.parts, embedding=replace(embedding, positions=np.zeros_like(embedding.positions))
        ),
    )
    data = al.models.iterate(still, ids=same)  # equal tokens: the mean is each of them
    assert (data.attrs["outcome"], data.attrs["period"]) == ("cycle", period)
    assert f"return every {period} layers" in data.attrs["answer"] and data.attrs["points"] == 1


def test_a_swinging_approach_is_no_cycle():
    """A factor -0.9 comes to rest from side to side: two layers later it is nearly where it was,
    long before.
    """
    R = np.eye(12)
    R[:2, :2] = [[0.05, 0.95], [0.95, 0.05]]  # the difference of two coordinates by -0.9
    model = planted("albert", *heads_of(R - np.eye(12)))
    embedding = model.parts.embedding
    still = replace(
        model,
        parts=replace(
            model.parts, embedding=replace(embedding, positions=np.zeros_like(embedding.positions))
        ),
    )
    data = al.models.iterate(still, ids=[4, 4], times=600)
    assert data.attrs["outcome"] == "settled"
    assert data.attrs["approach"] == pytest.approx(0.9, abs=0.01)


def test_a_drift_is_one():
    """Pre-norm, and the feed-forward part adds the same vector for ever: norms grow in proportion
    to the layers.
    """
    model = planted("gpt2", outer_bias=np.linspace(1.0, 2.0, 12))
    data = al.models.iterate(model, ids=IDS, times=120)
    assert (
        data.attrs["outcome"] == "drifting"
        and "norms grow 2 times from layer 60 to 120" in data.attrs["answer"]
    )
    assert data["clusters"].values[-1] == 1  # all end up along that vector


def test_overflow_is_said():
    data = al.models.iterate(planted("gpt2", outer_bias=np.full(12, 1e308)), ids=IDS)
    assert data.attrs["outcome"] == "overflow"
    assert data.attrs["answer"].startswith("The numbers already overflow in the first layer")
    data = al.models.iterate(planted("gpt2", outer_bias=np.full(12, 2e152)), ids=IDS)
    assert data.attrs["outcome"] == "overflow"
    assert f"After {data.attrs['steps']} layers the numbers overflow" in data.attrs["answer"]


def test_the_fit_covers_the_truth_and_says_its_window():
    steps = np.arange(80)
    clean = fit_rate("rate", 3.0 * 0.8**steps)
    assert (
        clean["rate"] == pytest.approx(0.8) and clean["rate_from"] > 10 and clean["rate_to"] < 120
    )
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(200):
        noise = np.zeros(80)
        for k in range(1, 80):
            noise[k] = 0.6 * noise[k - 1] + rng.normal(scale=0.1)
        found = fit_rate("rate", 0.8**steps * np.exp(noise))
        hits += found["rate_low"] <= 0.8 <= found["rate_high"]
    assert 0.85 <= hits / 200 <= 1.0  # 95 %, short windows, correlated noise
    assert math.isnan(fit_rate("rate", np.ones(80))["rate"]) and math.isnan(
        fit_rate("rate", np.full(9, np.nan))["rate"]
    )


def test_of_equals_the_first_leads():
    """Two equal tokens receive the same but for rounding; nobody's lead may flicker."""
    model = made("albert")
    embedding = model.parts.embedding
    still = replace(
        model,
        parts=replace(
            model.parts, embedding=replace(embedding, positions=np.zeros_like(embedding.positions))
        ),
    )
    data = al.models.iterate(still, ids=[7, 4, 7, 4], times=60)
    assert set(data["leader"].values[:-1]) <= {0.0, 1.0}


def test_small_parts():
    assert _stays_above(np.array([0.95, 0.2, 0.95, 0.99]), 0.9) == 2
    assert (
        math.isnan(_stays_above(np.array([0.95, 0.2]), 0.9))
        and _stays_above(np.array([0.95, 0.91]), 0.9) == 0
    )
    data = al.models.iterate(planted("albert", *heads_of(0.5 * np.eye(12))), ids=IDS)
    since = find_grouping_step(data)
    assert data["clusters"].values[since] == 1 and data["clusters"].values[since - 1] > 1
    assert token_names(data)[:2] == ["#3", "#1 (1)"]


def test_the_dataset_goes_to_disk_and_back(tmp_path):
    import xarray

    data = al.models.iterate(made("albert"), ids=IDS, times=6)
    data.to_netcdf(tmp_path / "iterated.nc")
    with xarray.open_dataset(tmp_path / "iterated.nc") as back:
        assert (
            back.attrs["answer"] == data.attrs["answer"]
            and back["word"].values.tolist() == data["word"].values.tolist()
        )


def test_bad_input_is_a_sentence():
    model = made("albert")
    with pytest.raises(ValueError, match="times must be a whole number"):
        al.models.iterate(model, ids=IDS, times=1)
    with pytest.raises(ValueError, match="cosine must be between"):
        al.models.iterate(model, ids=IDS, cosine=2.0)
    with pytest.raises(ValueError, match="There is no layer 7"):
        al.models.iterate(model, ids=IDS, layer=7)
    with pytest.raises(ValueError, match="at least two tokens"):
        al.models.iterate(model, ids=[1])


# --------------------------------------------------------------------------------------------------
# the idealised model of the layer


@pytest.mark.parametrize("family", ["albert", "gpt_neox"])
def test_the_idealised_layer_repeated_is_the_idealised_model_of_as_many_layers(family):
    """Of a model that has the layer nine times, without a final norm between; norms after attention
    and before.
    """
    model = made(family)
    layers = (model.parts.layers[0],) * 9
    config = replace(model.config, layers=9)
    deep = replace(model, parts=replace(model.parts, config=config, layers=layers, final_norm=None))
    repeated = al.models.iterate(model, ids=IDS, times=9, idealised=True)
    expected = al.models.sentence(deep, ids=IDS, only=["twin"]).sel(variant="twin")
    assert repeated.attrs["idealised"] == 1 and repeated.attrs["steps"] == 9
    for name in ("cosine", "rank", "norm"):
        np.testing.assert_allclose(repeated[name].values, expected[name].values, rtol=1e-9)
    np.testing.assert_allclose(
        repeated["received"].values[:9], expected["received"].values[:9], rtol=1e-9
    )
    own = al.models.iterate(model, ids=IDS, times=9)
    assert np.abs(own["cosine"].values[1:] - repeated["cosine"].values[1:]).max() > 1e-3
