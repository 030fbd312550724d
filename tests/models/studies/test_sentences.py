"""Sentences through the real stack and its variants: each piece taken out is the piece it says,
numbers are what they claim.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

import attnlab as al
import tiny_models
from attnlab.models.checkpoints.forward import apply_norm, attention_output, feedforward
from attnlab.models.checkpoints.tokens import read_tokens
from attnlab.models.studies.dossier import dossier
from attnlab.models.studies.dossier_findings import findings as dossier_findings
from attnlab.models.studies.sentences import (
    measure_attention,
    measure_tokens,
    name_leaders,
    one_sentence,
)
from attnlab.models.studies.variants import TIMES_DEPTH, initial_size, random_parts, variants
from attnlab.registry import UnknownName
from attnlab.render.dossier import dossier_page
from tiny_models import TOKENIZER

FAMILIES = ("bert", "albert", "gpt2", "llama", "gpt_neox", "distilbert")
IDS = [3, 1, 4, 1, 5, 9, 2]


def made(family: str) -> al.models.Model:
    state, raw = getattr(tiny_models, family)()
    return al.models.load(state, config=raw)


@pytest.fixture(scope="module", params=FAMILIES)
def both(request):
    model = made(request.param)
    return model, al.models.sentence(model, ids=IDS)


def test_the_real_variant_is_the_model(both):
    model, data = both
    layers = model.config.layers
    np.testing.assert_array_equal(
        data["x"].sel(variant="real").values[: layers + 1], model.hidden_states(IDS)
    )
    received = model.attention(IDS).mean(axis=(1, 2))
    np.testing.assert_allclose(data["received"].sel(variant="real").values[:layers], received)
    np.testing.assert_array_equal(
        data["leader"].sel(variant="real").values[:layers], received.argmax(axis=1)
    )
    np.testing.assert_array_equal(data["distance"].sel(variant="real").values[: layers + 1], 0.0)
    assert np.isnan(data["x"].sel(variant="real").values[layers + 1 :]).all()


def norms_of(layer):
    """The norms of attention and of the feed-forward part, before (pre-norm) or after
    (post-norm).
    """
    blocks = layer.attention_block, layer.feedforward_block
    return [block.norm_before or block.norm_sum for block in blocks]


def by_hand(model, name):
    """One layer after the other, the pieces written out."""
    config = model.config
    x = model.hidden_states(IDS)[0]
    n = len(IDS)
    seen = (
        np.ones((n, n), bool)
        if name == "no_mask" or not config.is_causal
        else np.tri(n, dtype=bool)
    )
    norm = (lambda by, x: x) if name in ("no_norm", "attention_only") else apply_norm
    found = [x]
    for layer in model.parts.layers:

        def mlp(x, layer=layer):
            return (
                0.0 if name in ("no_mlp", "attention_only") else feedforward(layer.feedforward, x)
            )

        attention_norm, feedforward_norm = norms_of(layer)
        if config.is_pre_norm:
            added = attention_output(layer.attention, norm(attention_norm, x), seen)[0]
            if config.is_parallel:
                x = x + added + mlp(norm(feedforward_norm, x))
            else:
                x = x + added
                x = x + mlp(norm(feedforward_norm, x))
        else:
            x = norm(attention_norm, x + attention_output(layer.attention, x, seen)[0])
            x = norm(feedforward_norm, x + mlp(x))
        found.append(x)
    if model.parts.final_norm is not None:
        found[-1] = norm(model.parts.final_norm, found[-1])
    return np.stack(found)


@pytest.mark.parametrize("name", ["real", "no_mlp", "no_norm", "attention_only", "no_mask"])
def test_pieces_taken_out_are_those_it_says(both, name):
    model, data = both
    np.testing.assert_allclose(
        data["x"].sel(variant=name).values[: model.config.layers + 1],
        by_hand(model, name),
        rtol=1e-12,
    )


def test_variants_differ_from_the_real_one_where_they_must(both):
    model, data = both
    last = data["distance"].values[:, model.config.layers]
    apart = dict(zip(data["variant"].values.tolist(), last.tolist(), strict=True))
    assert apart["real"] == 0 and all(
        apart[name] > 1e-3 for name in ("no_mlp", "no_norm", "attention_only", "twin", "random")
    )
    assert (apart["no_mask"] > 1e-6) == model.config.is_causal
    if model.config.is_tied:
        assert apart["tied"] == 0  # the model's own layer, as deep as the model


def seen_in(model):
    n = len(IDS)
    return np.tri(n, dtype=bool) if model.config.is_causal else np.ones((n, n), bool)


def one_layer(model, layer, x):
    """The stream after one layer, and its attention (h, n, n), the pieces written out."""
    config, seen = model.config, seen_in(model)
    attention_norm, feedforward_norm = norms_of(layer)
    if not config.is_pre_norm:
        added, P = attention_output(layer.attention, x, seen)
        x = apply_norm(attention_norm, x + added)
        return apply_norm(feedforward_norm, x + feedforward(layer.feedforward, x)), P
    added, P = attention_output(layer.attention, apply_norm(attention_norm, x), seen)
    if config.is_parallel:
        return x + added + feedforward(layer.feedforward, apply_norm(feedforward_norm, x)), P
    return x + added + feedforward(layer.feedforward, apply_norm(feedforward_norm, x + added)), P


def test_the_tied_layer_is_repeated_to_four_times_the_depth(both):
    model, data = both
    found = data.sel(variant="tied")
    x = found["x"].values
    assert len(x) == TIMES_DEPTH * model.config.layers + 1
    now = x[0]
    for step in range(TIMES_DEPTH * model.config.layers):
        now, P = one_layer(model, model.parts.layers[0], now)
        np.testing.assert_allclose(x[step + 1], now, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(found["received"].values[step], P.mean(axis=(0, 1)), atol=1e-10)
    again = al.models.sentence(model, ids=IDS, only=["tied"], tied_layer=model.config.layers - 1)
    if not model.config.is_tied:
        assert not np.allclose(again["x"].sel(variant="tied").values[1], x[1])


@pytest.mark.parametrize("name", ["random", "untrained"])
def test_the_nulls_are_stacks_of_the_same_architecture(both, name):
    model, data = both
    parts = random_parts(model.parts, 0, None if name == "random" else 0.02)
    now = model.hidden_states(IDS)[0]
    for number, layer in enumerate(parts.layers):
        now, _ = one_layer(model, layer, now)
        last = number == len(parts.layers) - 1
        shown = apply_norm(parts.final_norm, now) if last and parts.final_norm is not None else now
        np.testing.assert_allclose(
            data["x"].sel(variant=name).values[number + 1], shown, rtol=1e-10, atol=1e-12
        )


def idealised_by_hand(model):
    """The idealised model at the times 0, 1, ..., by small steps of order 4, and the attention
    (layers, h, n, n) before each.
    """
    config, states = model.config, model.hidden_states(IDS)
    causal, x = seen_in(model), states[0]
    radii = np.sqrt(
        (states**2).sum(axis=-1).mean(axis=-1)
    )  # of the model's own tokens, after each layer
    if not config.is_pre_norm:
        x = x / np.linalg.norm(x, axis=-1, keepdims=True) * radii[0]
    kind = norms_of(model.parts.layers[0])[0].kind

    def attention(weights, u):
        scores = np.where(
            causal,
            np.einsum("hkd,id,hke,je->hij", weights.Q, u, weights.K, u, optimize=True),
            -np.inf,
        )
        P = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return P / P.sum(axis=-1, keepdims=True)

    def read(number, x):
        if not config.is_pre_norm:
            return x
        x = x - x.mean(axis=-1, keepdims=True) if kind == "layer" else x
        return x / np.sqrt(
            (x**2).mean(axis=-1, keepdims=True) + norms_of(model.parts.layers[number])[0].eps
        )

    found, before = [x], []
    for number in range(config.layers):
        weights = model.weights(number)
        V = weights.full_V

        def velocity(x, weights=weights, V=V, number=number, radius=radii[number]):
            u = read(number, x)
            v = np.einsum("hij,hde,je->id", attention(weights, u), V, u, optimize=True)
            return (
                v if config.is_pre_norm else v - (v * x).sum(axis=-1, keepdims=True) / radius**2 * x
            )

        before.append(attention(weights, read(number, x)))
        dt = 1 / 400
        for _ in range(400):
            a = velocity(x)
            b = velocity(x + dt / 2 * a)
            c = velocity(x + dt / 2 * b)
            x = x + dt / 6 * (a + 2 * b + 2 * c + velocity(x + dt * c))
        x = x if config.is_pre_norm else x * radii[number + 1] / radii[number]
        found.append(x)
    return np.stack(found), np.stack(before)


def test_the_idealised_model_is_the_flow_of_the_theory(both):
    model, data = both
    x, P = idealised_by_hand(model)
    found = data.sel(variant="twin")
    layers = model.config.layers
    np.testing.assert_allclose(
        found["x"].values[: layers + 1], x, rtol=0, atol=2e-4 * np.abs(x).max()
    )
    np.testing.assert_allclose(found["received"].values[:layers], P.mean(axis=(1, 2)), atol=1e-3)


def test_the_nulls_have_their_sizes_and_nothing_else_of_the_model(both):
    model, _ = both
    for given in (None, 0.02):
        parts = random_parts(model.parts, 0, given)
        for before, after in zip(model.parts.layers, parts.layers, strict=True):
            assert after.attention.query_bias is None and after.attention.output_bias is None
            assert after.feedforward.outer_bias is None
            for norm in norms_of(after):
                assert (np.asarray(norm.gain) == 1).all() and (
                    norm.bias is None or (np.asarray(norm.bias) == 0).all()
                )
            for name in ("query", "key", "value", "output", "inner", "gate", "outer"):
                part = "feedforward" if name in ("inner", "gate", "outer") else "attention"
                old, new = (getattr(getattr(one, part), name) for one in (before, after))
                if old is None:
                    continue
                size = np.sqrt(np.mean(np.square(old))) if given is None else given
                assert new.shape == old.shape
                assert abs(np.sqrt(np.mean(np.square(new))) / size - 1) < 6 / np.sqrt(old.size), (
                    name
                )
                assert abs(np.corrcoef(old.ravel(), new.ravel())[0, 1]) < 6 / np.sqrt(old.size), (
                    name
                )
        assert len({id(layer) for layer in parts.layers}) == len(
            {id(layer) for layer in model.parts.layers}
        )
    first = random_parts(model.parts, 0).layers[0].attention.query
    np.testing.assert_array_equal(random_parts(model.parts, 0).layers[0].attention.query, first)
    assert not np.array_equal(random_parts(model.parts, 1).layers[0].attention.query, first)


def test_untrained_sizes_are_those_of_the_config():
    state, raw = tiny_models.bert()
    assert initial_size(al.models.load(state, config={**raw, "initializer_range": 0.5})) == 0.5
    assert initial_size(al.models.load(state, config=raw)) == 0.02
    assert initial_size(al.models.load(state, config={**raw, "initializer_range": "a lot"})) == 0.02


def test_what_is_compared_with_the_real_stack_by_double_loops(both):
    model, data = both
    true = data["x"].sel(variant="real").values
    for variant in ("no_mlp", "twin", "random"):
        x = data["x"].sel(variant=variant).values
        for step in range(1, model.config.layers + 1):
            apart = np.sqrt(
                sum(
                    (x[step, i] - true[step, i]) @ (x[step, i] - true[step, i])
                    for i in range(len(IDS))
                )
            )
            size = np.sqrt(sum(true[step, i] @ true[step, i] for i in range(len(IDS))))
            one = data.sel(variant=variant).isel(step=step)
            assert float(one["distance"]) == pytest.approx(apart / size)
            cosines = [
                x[step, i]
                @ true[step, i]
                / np.linalg.norm(x[step, i])
                / np.linalg.norm(true[step, i])
                for i in range(len(IDS))
            ]
            assert float(one["turn"]) == pytest.approx(1 - np.mean(cosines), abs=1e-12)


def test_every_variable_says_what_it_is(both):
    _, data = both
    for name in (*data.data_vars, "step"):
        assert len(data[name].attrs["long_name"]) > 5 and data[name].attrs["units"] == "1"
    assert al.plot(data).axes


def test_measures_by_double_loops():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 5, 3))
    found = measure_tokens(x, 0.5)
    for step in range(2):
        cosines = [
            x[step, i] @ x[step, j] / np.linalg.norm(x[step, i]) / np.linalg.norm(x[step, j])
            for i in range(5)
            for j in range(i + 1, 5)
        ]
        assert found["cosine"][step] == pytest.approx(np.mean(cosines))
        assert found["cosine_low"][step] == pytest.approx(np.quantile(cosines, 0.05))
        assert found["norm"][step] == pytest.approx(np.mean([np.linalg.norm(v) for v in x[step]]))
    P = rng.dirichlet(np.ones(4), size=(1, 2, 4))
    numbers = measure_attention(P, np.ones((4, 4), bool))
    entropy = np.mean([-sum(p * np.log(p) for p in row) for head in P[0] for row in head]) / np.log(
        4
    )
    assert numbers["entropy"][0] == pytest.approx(entropy)
    received = [np.mean([P[0, h, i, j] for h in range(2) for i in range(4)]) for j in range(4)]
    np.testing.assert_allclose(numbers["received"][0], received)
    unit = x / np.linalg.norm(x, axis=-1, keepdims=True)
    for step in range(2):  # effective rank: exp of the entropy of the singular values' shares
        shares = np.linalg.svd(unit[step])[1]
        shares = shares / shares.sum()
        assert found["rank"][step] == pytest.approx(np.exp(-np.sum(shares * np.log(shares))))
    low = P.copy()
    low[0, 0] = np.outer(np.ones(4), low[0, 0, 0])  # rank 1 beside rank 4
    assert measure_attention(low, np.ones((4, 4), bool))["attention_rank"][0] == 2.5


def test_entropy_of_a_causal_model_is_over_what_can_be_seen():
    seen = np.tri(5, dtype=bool)
    uniform = (seen / seen.sum(axis=1, keepdims=True))[None, None]
    assert measure_attention(uniform, seen)["entropy"][0] == pytest.approx(1.0)


def test_planted_groups_are_found_at_the_stated_cosine():
    directions = np.eye(6)[:3]
    x = (
        np.repeat(directions, [4, 3, 2], axis=0) * np.linspace(1, 5, 9)[:, None]
    )  # three groups, whatever the norms
    found = measure_tokens(x[None], 0.9)
    assert found["clusters"][0] == 3 and found["label"][0].tolist() == [0] * 4 + [1] * 3 + [2] * 2
    angle = np.deg2rad(30)
    pair = np.array([[[1.0, 0.0], [np.cos(angle), np.sin(angle)]]])  # cosine 0.866
    assert (
        measure_tokens(pair, 0.87)["clusters"][0] == 2
        and measure_tokens(pair, 0.86)["clusters"][0] == 1
    )


def test_overflow_is_nan_and_not_a_number():
    from dataclasses import replace

    model = made("bert")
    layer = model.parts.layers[0]
    part = layer.feedforward
    loud = layer.change(
        inner=np.asarray(part.inner, float) * 1e200, outer=np.asarray(part.outer, float) * 1e200
    )
    broken = replace(model, parts=replace(model.parts, layers=(loud, *model.parts.layers[1:])))
    data = al.models.sentence(broken, ids=IDS, only=["no_norm"])
    last = data.sel(variant="no_norm").isel(step=model.config.layers)
    assert (
        np.isnan(last["x"]).all()
        and np.isnan(last["cosine"])
        and np.isnan(last["clusters"])
        and np.isnan(last["distance"])
    )


def test_labels_and_leaders_are_named(both):
    _, data = both
    assert data["word"].values.tolist() == [f"#{number}" for number in IDS]
    named = name_leaders(data, "real", 2)
    best = int(data["leader"].sel(variant="real").values[0])
    assert named[0][0].startswith(f"#{IDS[best]} ") and len(named[0]) == 2
    about = json.loads(data.attrs["about_variants"])
    assert list(about) == variants.in_order() and all(about.values())


def test_bad_sentences_are_refused_with_a_sentence():
    model = made("bert")
    with pytest.raises(ValueError, match="one of the two"):
        al.models.sentence(model)
    with pytest.raises(ValueError, match="sentence is empty"):
        al.models.sentence(model, "   ")
    with pytest.raises(ValueError, match="must be UTF-8"):
        al.models.sentence(model, "a \udcff cat")
    with pytest.raises(ValueError, match="has no tokenizer.json.*Give token ids"):
        al.models.sentence(model, "a text")
    with pytest.raises(ValueError, match="at least two tokens"):
        al.models.sentence(model, ids=[1])
    with pytest.raises(
        ValueError, match=f"places for {model.config.length} tokens, got {model.config.length + 1}"
    ):
        al.models.sentence(model, ids=[1] * (model.config.length + 1))
    with pytest.raises(ValueError, match="Token ids must be 0 to"):
        al.models.sentence(model, ids=[1, 10**6])
    with pytest.raises(UnknownName, match="Unknown variant 'no_mpl'. Did you mean 'no_mlp'"):
        al.models.sentence(model, ids=IDS, only=["no_mpl"])
    with pytest.raises(ValueError, match="cosine must be between"):
        al.models.sentence(model, ids=IDS, cosine=1.0)
    with pytest.raises(ValueError, match="There is no layer 9"):
        al.models.sentence(model, ids=IDS, tied_layer=9)


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    """A tiny model in a folder with a tokenizer of six words."""
    folder = tiny_models.write_folder(tmp_path_factory.mktemp("model"), *tiny_models.bert())
    (folder / "tokenizer.json").write_text(json.dumps(TOKENIZER))
    return al.models.load(folder)


def test_special_tokens_can_be_left_out_and_are_recorded(reader):
    tokens = read_tokens(reader, "The cat sat")
    assert tokens.words == ("[CLS]", "the", "cat", "sat", "[SEP]")
    assert tokens.is_special.tolist() == [True, False, False, False, True]
    plain = read_tokens(reader, "The cat sat", special=False)
    assert plain.words == ("the", "cat", "sat") and not plain.is_special.any()
    data = al.models.sentence(reader, "The cat sat", special=False, only=["real"])
    assert (
        data.attrs["special"] == 0
        and data.sizes["token"] == 3
        and data.attrs["text"] == "The cat sat"
    )
    assert al.models.sentence(reader, "The cat sat", only=["real"])[
        "is_special"
    ].values.tolist() == [1, 0, 0, 0, 1]


def test_a_text_that_says_cls_itself_is_not_special(reader):
    tokens = read_tokens(reader, "[CLS] [CLS]")
    assert tokens.is_special.tolist() == [True, *[False] * (len(tokens.words) - 2), True]


def test_unknown_words_are_counted(reader):
    data = al.models.sentence(reader, "The 猫 sat ☃", only=["real"])
    assert data.attrs["unknown"] == 2 and data["word"].values.tolist()[2] == "[UNK]"
    with pytest.raises(ValueError, match="at least two tokens"):
        al.models.sentence(reader, "cat", special=False)
    named = name_leaders(al.models.sentence(reader, "The cat", only=["real"]), special=False)
    assert named[0][0].split()[0] in ("'the'", "'cat'")


def test_a_list_of_sentences_is_each_of_them():
    model = made("bert")
    texts = [np.array(IDS), np.array([5, 3, 8])]
    data = al.models.sentence(model, ids=texts, only=["real", "no_mlp"])
    assert data["x"].dims == ("text", "variant", "step", "token", "coordinate")
    for number, ids in enumerate(texts):
        alone = al.models.sentence(model, ids=ids, only=["real", "no_mlp"])
        one = data.isel(text=number, token=slice(len(ids)))
        for name in alone.data_vars:
            np.testing.assert_array_equal(one[name].values, alone[name].values)
    beyond = data.isel(text=1, token=slice(3, None))
    assert np.isnan(beyond["x"].values).all() and set(beyond["word"].values) == {""}
    assert data["length"].values.tolist() == [7, 3] and data.attrs["kind"] == "sentences"
    with pytest.raises(ValueError, match="one of the two"):
        al.models.sentence(model, ["a", "b"], ids=texts)


def test_an_idealised_model_that_stops_leaves_the_other_stacks(tmp_path):
    """Large matrices without a norm: tokens grow until double precision ends."""
    generator = np.random.default_rng(1)
    Q, K, V = (generator.normal(size=(2, 3, 6)) for _ in range(3))
    model = al.models.heads(Q, K, V, 40 * generator.normal(size=(2, 6, 3)))
    x = generator.normal(size=(5, 6))
    data = al.models.sentence(model, ids=x)
    assert data.attrs["stopped"].startswith("The idealised model stops in layer 0 at t = 0.")
    assert np.isfinite(data["x"].sel(variant="real").values[:2]).all()
    assert np.isnan(data["x"].sel(variant="twin").values[1:]).all()
    assert np.isnan(data["cosine"].sel(variant="twin").values[1:]).all()
    said = " ".join(al.models.findings(data))
    assert "stops in layer 0" in said and "The idealised model ends with" not in said
    for kind in ("layers", "words"):
        al.plot(data, kind=kind)
    assert "stopped" not in al.models.sentence(model, ids=0 * x + 1, only=["real"]).attrs
    assert "max_steps" not in data.attrs["stopped"]  # sentence has no such option
    still = np.zeros((3, 6))
    still[:, 0] = 1e-12
    several = al.models.sentence(model, ids=[x, still, x[:3]], only=["twin"])
    assert np.isnan(several["cosine"].sel(variant="twin").values[[0, 2], 1:]).all()
    said = several["stopped"].values.tolist()
    alone = [one.attrs.get("stopped", "") for one in (one_sentence(several, k) for k in range(3))]
    assert said[0] == data.attrs["stopped"] and said[1] == "" and alone == said
    al.save(several, tmp_path / "several.nc")
    assert al.load(tmp_path / "several.nc")["stopped"].values.tolist() == said
    assert "stopped" not in one_sentence(several, 0).coords
    assert "stopped" not in al.models.sentence(model, ids=[still, still], only=["twin"]).coords


@pytest.mark.slow
def test_the_dossier_of_such_a_model_grades_nothing():
    generator = np.random.default_rng(1)
    Q, K, V = (generator.normal(size=(2, 3, 6)) for _ in range(3))
    model = al.models.heads(Q, K, V, 40 * generator.normal(size=(2, 6, 3)))
    found = dossier(model, work=10.0)
    outcomes = {one.question: one.outcome for one in dossier_findings(found)}
    assert outcomes["Do the tokens end where the theory says?"] == "scope"
    assert not {"right", "wrong", "no evidence"} & set(outcomes.values())
    assert "It is not known in" in dossier_page(found)
