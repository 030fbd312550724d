"""Families of checkpoints: what they are read into, what their heads are, and the model itself run
in NumPy.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import math

import numpy as np
import pytest

import attnlab as al
import tiny_models
from attnlab.models.checkpoints.distances import alibi_slopes
from attnlab.models.checkpoints.forward import (
    apply_norm,
    attention_matrix,
    attention_output,
    embed,
    enter,
    feedforward,
    layer_step,
    seen_by,
)
from attnlab.models.checkpoints.record import Rotary
from attnlab.models.checkpoints.rotary import read_rotary, rotate
from places import DOCS, ROOT
from tiny_models import MAKERS, given

IDS = np.array([3, 17, 5, 5, 0, 11, 8])


def load(family: str):
    state, raw = MAKERS[family]()
    return al.models.load(state, config=raw)


def read_by_attention(model, ids=IDS):
    """What the first layer's attention reads, and who sees whom."""
    x = enter(model.parts, given(model, ids), float)
    layer = model.parts.layers[0]
    seen = seen_by(model.config, np.ones(ids.shape, dtype=bool))
    norm = layer.attention_block.norm_before
    return layer.attention, (x if norm is None else apply_norm(norm, x)), seen


def test_every_family_has_a_tiny_checkpoint_here():
    assert set(al.models.families) == set(MAKERS)


@pytest.mark.parametrize("family", MAKERS)
def test_shapes_and_names_are_the_contract(family):
    m = load(family)
    c = m.config
    assert (
        c.family == family and m.raw_config["model_type"] in al.models.families[family].model_types
    )
    x = given(m, IDS)
    assert m.hidden_states(x).shape == (c.layers + 1, 7, 12)
    assert m.attention(x).shape == (c.layers, c.heads, 7, 7)
    assert m.hidden_states(np.stack([x, x])).shape == (2, c.layers + 1, 7, 12)
    assert np.allclose(m.attention(x).sum(axis=-1), 1)
    assert (m.parts.embedding is None) == (c.vocabulary == 0)
    w = m.weights(1)
    assert isinstance(w, al.Weights) and w.Q.shape == (c.heads, c.head_size, 12) and w.is_factored
    assert m.weights(1, head=2).V[0].shape == (1, 12, c.head_size)
    assert len(m.parts.layers) == c.layers and (
        m.parts.layers[0] is m.parts.layers[1]
    ) == c.is_tied == (family == "albert")


def gained(matrices, norm):
    """The matrices of queries or keys with the gain of their norm, and for LayerNorm its centring,
    but not its division.
    """
    if norm is None:
        return matrices
    k = len(norm.gain)
    centred = np.eye(k) - 1 / k if norm.kind == "layer" else np.eye(k)
    return np.einsum("k,kl,hld->hkd", norm.gain.astype(float), centred, matrices.astype(float))


@pytest.mark.parametrize("family", MAKERS)
def test_weights_are_what_attention_computes_with_when_biases_are_taken_away(family):
    """Scores <Q x_i, K x_j> and values V x_j of the folded Weights, from the stream itself, against
    the layer without biases.
    """
    m = load(family)
    parts = m.parts
    norm = parts.layers[0].attention_block.norm_before
    attention = parts.layers[0].attention
    bare = dataclasses.replace(
        attention,
        query_bias=None,
        key_bias=None,
        value_bias=None,
        output_bias=None,
        cap=None,
        window=None,
        by_offset=None,
        slopes=None,
        offset_rows=None,
        rotary=None,  # at offset 0 queries and keys are turned alike
        query=gained(attention.query, attention.query_norm),
        key=gained(attention.key, attention.key_norm),
        query_norm=None,
        key_norm=None,
    )
    stream = enter(parts, given(m, IDS), float)
    seen = np.ones((7, 7), dtype=bool)
    x, deviation = stream, np.ones((7, 1))
    if norm is not None:
        x = apply_norm(dataclasses.replace(norm, bias=None), stream)
        centred = stream - stream.mean(axis=-1, keepdims=True) if norm.kind == "layer" else stream
        deviation = np.sqrt(np.square(centred).mean(axis=-1, keepdims=True) + norm.eps)
    w = m.weights(0)
    scores = np.einsum("id,hde,je->hij", stream / deviation, w.M, stream / deviation)
    attention = np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)
    ours = np.einsum("hij,hde,je->id", attention, w.full_V, stream / deviation)
    theirs, _ = attention_output(bare, x, seen)
    assert np.abs(ours - theirs).max() < 1e-5 * np.abs(theirs).max()


@pytest.mark.parametrize("family", MAKERS)
def test_the_spectrum_of_ov_is_that_of_the_small_matrix(family):
    B, C = load(family).weights(1).V
    for b, c in zip(B, C, strict=True):
        large = np.linalg.eigvals(b @ c)
        large = large[np.argsort(-np.abs(large))][: c.shape[0]]
        small = np.linalg.eigvals(c @ b)
        assert max(np.abs(large - value).min() for value in small) < 1e-6 * np.abs(small).max()


def test_bert_against_a_loop_over_tokens_and_heads():
    state, raw = tiny_models.bert()
    get = {name.removeprefix("bert."): array.astype(float) for name, array in state.items()}

    def norm(name, v):
        return (v - v.mean()) / math.sqrt(v.var() + 1e-12) * get[name + ".weight"] + get[
            name + ".bias"
        ]

    def linear(name, v):
        return get[name + ".weight"] @ v + get[name + ".bias"]

    words, places, kinds = (
        get[f"embeddings.{name}_embeddings.weight"] for name in ("word", "position", "token_type")
    )
    x = [
        norm("embeddings.LayerNorm", words[word] + places[i] + kinds[0])
        for i, word in enumerate(IDS)
    ]
    expected = [x]
    for l in range(2):
        at = f"encoder.layer.{l}."
        q, k, v = (
            [linear(f"{at}attention.self.{name}", token) for token in x]
            for name in ("query", "key", "value")
        )
        after = []
        for i in range(7):
            heads = []
            for h in range(3):
                rows = slice(4 * h, 4 * h + 4)
                e = [math.exp(q[i][rows] @ k[j][rows] / 2) if j != 6 else 0.0 for j in range(7)]
                heads.append(sum(e[j] / sum(e) * v[j][rows] for j in range(7)))
            y = norm(
                f"{at}attention.output.LayerNorm",
                x[i] + linear(f"{at}attention.output.dense", np.concatenate(heads)),
            )
            inner = np.array(
                [
                    u * (1 + math.erf(u / math.sqrt(2))) / 2
                    for u in linear(f"{at}intermediate.dense", y)
                ]
            )
            after.append(norm(f"{at}output.LayerNorm", y + linear(f"{at}output.dense", inner)))
        x = after
        expected.append(x)
    m = al.models.load(state, config=raw)
    assert np.allclose(
        m.hidden_states(IDS, mask=[1, 1, 1, 1, 1, 1, 0]), np.array(expected), rtol=1e-10, atol=1e-12
    )
    assert not np.allclose(m.hidden_states(IDS), np.array(expected), rtol=1e-3)


def test_llama_against_a_loop_with_complex_rotations():
    state, raw = tiny_models.llama()
    get = {name.removeprefix("model."): array.astype(float) for name, array in state.items()}

    def norm(name, v):
        return v / math.sqrt(np.mean(v * v) + 1e-5) * get[name + ".weight"]

    def turned(v, place):  # head size 2: one plane, frequency 1; a rotation is a complex product
        z = complex(*v) * complex(math.cos(place), math.sin(place))
        return np.array([z.real, z.imag])

    x = [get["embed_tokens.weight"][word] for word in IDS]
    expected = [x]
    for l in range(2):
        at = f"layers.{l}."
        read = [norm(at + "input_layernorm", token) for token in x]
        q, k, v = (
            [get[f"{at}self_attn.{name}_proj.weight"] @ token for token in read] for name in "qkv"
        )
        after = []
        for i in range(7):
            heads = []
            for h in range(6):
                own, shared = slice(2 * h, 2 * h + 2), slice(2 * (h // 3), 2 * (h // 3) + 2)
                e = [
                    math.exp(turned(q[i][own], i) @ turned(k[j][shared], j) / math.sqrt(2))
                    for j in range(i + 1)
                ]
                heads.append(sum(e[j] / sum(e) * v[j][shared] for j in range(i + 1)))
            y = x[i] + get[f"{at}self_attn.o_proj.weight"] @ np.concatenate(heads)
            r = norm(at + "post_attention_layernorm", y)
            gate = np.array([u / (1 + math.exp(-u)) for u in get[f"{at}mlp.gate_proj.weight"] @ r])
            after.append(
                y + get[f"{at}mlp.down_proj.weight"] @ (gate * (get[f"{at}mlp.up_proj.weight"] @ r))
            )
        x = after
        expected.append(x)
    expected[-1] = [norm("norm", token) for token in x]
    assert np.allclose(
        al.models.load(state, config=raw).hidden_states(IDS),
        np.array(expected),
        rtol=1e-10,
        atol=1e-12,
    )


@pytest.mark.parametrize("pairs", ["halves", "neighbours"])
@pytest.mark.parametrize("size", [4, 6])
def test_rotary_scores_depend_on_the_difference_of_places_only(pairs, size):
    rotary = Rotary(10_000.0, size, pairs)
    q, k = np.random.default_rng(0).standard_normal((2, 1, 6))
    places = ((5, 2), (9, 6), (3, 0), (6, 2))
    score = [
        (rotate(rotary, q, np.array([i])) @ rotate(rotary, k, np.array([j])).T).item()
        for i, j in places
    ]
    assert np.allclose(score[:3], score[0]) and abs(score[3] - score[0]) > 1e-3
    assert np.allclose(rotate(rotary, q, np.array([0])), q)
    turned = rotate(rotary, q, np.array([7]))
    assert np.isclose(np.linalg.norm(turned), np.linalg.norm(q)) and np.array_equal(
        turned[:, size:], q[:, size:]
    )


@pytest.mark.parametrize("family", ["llama", "gpt_neox", "gemma", "phi3", "gptj"])
def test_offset_gives_the_score_of_a_query_that_many_places_later(family):
    m = load(family)
    w = m.weights(0, offset=3)
    config, layer = m.config, m.parts.layers[0].attention
    rotary = layer.rotary
    x = np.random.default_rng(1).standard_normal((7, 12))
    x -= x.mean(axis=-1, keepdims=True)
    read = x * m.parts.layers[0].attention_block.norm_before.gain
    group = config.heads // config.kv_heads
    for h in range(config.heads):
        q = rotate(rotary, read @ layer.query[h].T, np.arange(7))
        k = rotate(rotary, read @ layer.key[h // group].T, np.arange(7))
        expected = q[5] @ k[2] / math.sqrt(config.head_size)
        assert np.isclose(x[5] @ w.M[h] @ x[2], expected, rtol=1e-9)
        assert not np.isclose(x[5] @ m.weights(0).M[h] @ x[2], expected, rtol=1e-3)
    assert "offset 3" in w.source and "offset 0" in m.weights(0).source


def test_source_says_what_was_done_and_what_was_left_out():
    assert load("bert").weights(0, 1).source == "in-memory model L0H1 (biases dropped)"
    assert (
        "gain and centring of the LayerNorm before it folded in" in load("gpt2").weights(0).source
    )
    assert "norm before not folded in" in load("gpt2").weights(0, fold_norm=False).source
    assert (
        "gain of the RMSNorm" in load("llama").weights(0).source
        and "biases" not in load("llama").weights(0).source
    )


def test_without_folding_the_matrices_are_the_checkpoint_s():
    m = load("gpt2")
    state, _ = MAKERS["gpt2"]()
    w = m.weights(1, head=2, fold_norm=False)
    joined = state["h.1.attn.c_attn.weight"].astype(float).T
    assert np.allclose(w.Q[0] * math.sqrt(4), joined[8:12]) and np.allclose(w.K[0], joined[20:24])
    assert np.allclose(w.V[1][0], joined[32:36])
    assert np.allclose(w.V[0][0], state["h.1.attn.c_proj.weight"].astype(float).T[:, 8:12])
    assert np.allclose(
        m.weights(1).Q.sum(axis=-1), 0, atol=1e-12
    )  # folded: a constant shift of a token is not seen


@pytest.mark.parametrize("family", MAKERS)
def test_what_padding_holds_is_not_seen(family):
    m = load(family)
    mask = np.array([1, 1, 1, 1, 1, 0, 0])
    x, other = given(m, IDS), given(m, np.where(mask, IDS, 2))
    states = m.hidden_states(x, mask)
    assert np.array_equal(states[:, :5], m.hidden_states(other, mask)[:, :5])
    assert np.allclose(states[:, :5], m.hidden_states(x[:5]), rtol=1e-12, atol=1e-12)
    assert (m.attention(x, mask)[..., 5:] == 0).all()


@pytest.mark.parametrize("family", MAKERS)
def test_texts_in_one_batch_are_what_they_are_alone(family):
    m = load(family)
    lengths = (7, 4, 6)
    ids = np.array([np.roll(IDS, shift) for shift in range(3)])
    mask = np.arange(7) < np.array(lengths)[:, None]
    states, attention = m.hidden_states(given(m, ids), mask), m.attention(given(m, ids), mask)
    for text, length in enumerate(lengths):
        alone = given(m, ids[text, :length])
        assert np.allclose(states[text, :, :length], m.hidden_states(alone), rtol=1e-11, atol=1e-12)
        own = attention[text, ..., :length, :length]
        assert np.allclose(own, m.attention(alone), rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("family", [name for name in MAKERS if load(name).config.is_causal])
def test_a_causal_model_does_not_see_what_comes_later(family):
    m = load(family)
    assert np.allclose(
        m.hidden_states(IDS)[:, :4], m.hidden_states(IDS[:4]), rtol=1e-12, atol=1e-12
    )
    assert (np.triu(m.attention(IDS), 1) == 0).all()
    before = m.hidden_states(IDS, mask=[0, 0, 1, 1, 1, 1, 1])  # the first tokens see nothing at all
    assert np.isfinite(before).all()


def test_the_last_hidden_state_has_the_final_norm_and_the_others_do_not():
    m = load("gpt2")
    states = m.hidden_states(IDS)
    seen = seen_by(m.config, np.ones(7, dtype=bool))
    after, _ = layer_step(m.parts.layers[1], states[1], seen)
    assert np.allclose(apply_norm(m.parts.final_norm, after), states[2]) and not np.allclose(
        after, states[2]
    )


def test_roberta_counts_places_from_its_padding():
    state, raw = tiny_models.bert("roberta.")
    m = al.models.load(state, config={**raw, "model_type": "roberta", "pad_token_id": 1})
    plain = al.models.load(state, config=raw)
    table = m.parts.embedding.positions
    assert m.config.length == 8 and plain.config.length == 10
    moved = dataclasses.replace(plain.parts.embedding, positions=table[2:])
    assert np.allclose(embed(m.parts.embedding, IDS, float), embed(moved, IDS, float))
    left = np.concatenate([[1, 1], IDS[:5]])  # padding before a text does not move its places
    assert np.allclose(
        embed(m.parts.embedding, left, float)[2:], embed(m.parts.embedding, IDS[:5], float)
    )
    del raw["model_type"]  # the names of the tensors say it too
    assert al.models.load(state, config=raw).config == m.config


def test_electra_projects_a_narrow_embedding():
    state, raw = tiny_models.bert("electra.", width=6)
    make = tiny_models.Maker(1)
    make.linear("electra.embeddings_project", 12, 6)
    m = al.models.load(
        {**state, **make.state}, config={**raw, "model_type": "electra", "embedding_size": 6}
    )
    assert m.hidden_states(IDS).shape == (3, 7, 12) and m.parts.embedding.projection.shape == (
        12,
        6,
    )


def test_a_file_of_tensorflow_calls_gain_and_bias_gamma_and_beta():
    state, raw = tiny_models.bert()
    old = {
        name: name.replace("Norm.weight", "Norm.gamma").replace("Norm.bias", "Norm.beta")
        for name in state
    }
    renamed = {old[name]: array for name, array in state.items()}
    assert "bert.embeddings.LayerNorm.gamma" in renamed
    one, other = (
        al.models.load(tensors, config=raw).hidden_states(IDS) for tensors in (state, renamed)
    )
    assert np.array_equal(one, other)


@pytest.mark.parametrize("family", MAKERS)
def test_a_family_is_recognised_by_its_tensors_where_the_config_does_not_say(family):
    state, raw = MAKERS[family]()
    del raw["model_type"]
    if al.models.families[family].mark is not None:
        assert al.models.load(state, config=raw).config.family == family
    elif family != "gemma":  # its tensors are called like Llama's, all of them
        with pytest.raises(al.models.BadModel):
            al.models.load(state, config=raw)


@pytest.mark.parametrize("family", MAKERS)
def test_what_the_config_says_of_norms_and_rotary_positions_is_what_the_blocks_do(family):
    m = load(family)
    c = m.config
    for layer in m.parts.layers:
        first, second = layer.blocks
        assert layer.attention_block is first and layer.feedforward_block is second
        assert c.is_pre_norm == (first.norm_sum is None) == (second.norm_sum is None)
        assert c.is_pre_norm == (second.norm_before is not None)
        assert c.is_parallel == second.is_beside and not first.is_beside
        assert (layer.attention.rotary is None) == (c.rope_theta is None)
        assert (
            layer.attention.query.shape == (c.heads, c.head_size, c.d)
            and len(layer.attention.key) == c.kv_heads
        )
        assert layer.feedforward.activation == c.activation and layer.feedforward.inner.shape == (
            c.hidden,
            c.d,
        )
    windows = {layer.attention.window for layer in m.parts.layers} - {None}
    assert windows == ({c.window} if c.is_window_computed and c.window else set())


@pytest.mark.parametrize("family", [name for name in MAKERS if load(name).config.window])
def test_a_window_hides_what_is_far_and_nothing_else(family):
    m = load(family)
    away = np.abs(np.arange(7)[:, None] - np.arange(7))
    for layer, found in zip(m.parts.layers, m.attention(given(m, IDS)), strict=True):
        near = away < (layer.attention.window or 7)
        seen = near & np.tri(7, dtype=bool) if m.config.is_causal else near
        assert ((found > 0) == seen).all()


def test_a_sandwich_against_its_equation():
    m = load("gemma2")
    layer, x = m.parts.layers[1], m.hidden_states(IDS)[1]
    seen = np.tri(7, dtype=bool)
    first, second = layer.blocks
    x1 = x + apply_norm(
        first.norm_output,
        attention_output(layer.attention, apply_norm(first.norm_before, x), seen)[0],
    )
    expected = x1 + apply_norm(
        second.norm_output, feedforward(layer.feedforward, apply_norm(second.norm_before, x1))
    )
    assert np.allclose(layer_step(layer, x, seen)[0], expected, rtol=1e-13)
    assert not np.allclose(
        expected, x1 + feedforward(layer.feedforward, apply_norm(second.norm_before, x1)), rtol=1e-2
    )


def test_a_cap_bounds_scores():
    """Scores that are capped at c lie within c, so no weight of n tokens is below e^(-2c) / n."""
    m = load("gemma2")
    attention = dataclasses.replace(
        m.parts.layers[1].attention, query=1e3 * m.parts.layers[1].attention.query
    )
    x = np.random.default_rng(0).standard_normal((7, 12))
    seen = np.ones((7, 7), dtype=bool)
    capped = attention_matrix(attention, x, seen)
    assert (
        capped.min() >= math.exp(-6) / 7
        and np.isclose(capped.min(axis=-1) / capped.max(axis=-1), math.exp(-6)).any()
    )
    assert attention_matrix(dataclasses.replace(attention, cap=None), x, seen).min() < 1e-100


def test_slopes_and_biases_are_added_to_scores_by_distance():
    """BLOOM and T5 against loops over pairs; beyond its table the last bias holds."""
    x, n = np.random.default_rng(2).standard_normal((9, 12)), 9
    for family, expected in (("bloom", lambda a, h, i, j: -a.slopes[h] * (i - j)), ("t5", _bias)):
        m = load(family)
        attention = m.parts.layers[0].attention
        found = attention_matrix(attention, x, seen_by(m.config, np.ones(n, dtype=bool)))
        for h in range(3):
            scale = 0.5 if family == "bloom" else 1.0  # heads of width 4, and no division
            q, k = x @ attention.query[h].T, x @ attention.key[h].T
            if attention.query_bias is not None:
                q, k = q + attention.query_bias[h], k + attention.key_bias[h]
            for i in range(n):
                last = i + 1 if m.config.is_causal else n
                e = [
                    math.exp(scale * q[i] @ k[j] + expected(attention, h, i, j))
                    for j in range(last)
                ]
                assert np.allclose(found[h, i, :last], np.array(e) / sum(e), rtol=1e-10)


def _bias(attention, h, i, j):
    """The bias of T5 with 8 buckets up to distance 5: 0, 1, 2, and 3 for every longer distance."""
    table = MAKERS["t5"]()[0][
        "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
    ]
    return table[(4 if j > i else 0) + min(abs(j - i), 2 if abs(j - i) < 4 else 3), h]


def test_deberta_compares_queries_and_keys_with_vectors_of_distances():
    """Against loops over pairs; with 4 buckets the distances -10 to 10 have the rows below."""
    m = load("deberta")
    state = {name: array.astype(float) for name, array in MAKERS["deberta"]()[0].items()}
    part = m.parts.layers[1].attention
    x, n = np.random.default_rng(2).standard_normal((10, 12)), 10
    table = state["deberta.encoder.rel_embeddings.weight"]
    table = table - table.mean(axis=1, keepdims=True)
    table = table / np.sqrt(np.square(table).mean(axis=1, keepdims=True) + 1e-7)
    norm = "deberta.encoder.LayerNorm."
    table = table * state[norm + "weight"] + state[norm + "bias"]
    rows = {0: 4, 1: 5, 2: 6, **{away: 7 for away in range(3, 10)}}  # the query is later
    rows |= {-1: 3, -2: 2, **{-away: 1 for away in range(3, 10)}}
    found = attention_matrix(part, x, np.ones((n, n), dtype=bool))

    def mapped(name, h, vectors):
        at = f"deberta.encoder.layer.1.attention.self.{name}_proj."
        own = slice(4 * h, 4 * h + 4)
        return vectors @ state[at + "weight"][own].T + state[at + "bias"][own]

    for h in range(3):
        q, k = mapped("query", h, x), mapped("key", h, x)
        a, b = mapped("key", h, table), mapped("query", h, table)
        for i in range(n):
            e = [
                math.exp((q[i] @ k[j] + q[i] @ a[rows[i - j]] + b[rows[i - j]] @ k[j]) / 12**0.5)
                for j in range(n)
            ]
            assert np.allclose(found[h, i], np.array(e) / sum(e), rtol=1e-10)


@pytest.mark.parametrize("heads, expected", [
    (8, [2.0**-power for power in range(1, 9)]), (4, [2.0**-2, 2.0**-4, 2.0**-6, 2.0**-8]),
    (6, [2.0**-2, 2.0**-4, 2.0**-6, 2.0**-8, 2.0**-1, 2.0**-3]), (1, [2.0**-8]), (3, [2.0**-4, 2.0**-8, 2.0**-2]),
])  # fmt: skip
def test_slopes_are_a_geometric_sequence(heads, expected):
    assert alibi_slopes(heads).tolist() == expected


def test_a_token_that_is_hidden_takes_no_place_in_the_distances_of_bloom():
    m = load("bloom")
    middle = m.hidden_states(IDS, mask=[1, 1, 0, 0, 1, 1, 1])
    assert np.allclose(middle[:, [0, 1, 4, 5, 6]], m.hidden_states(IDS[[0, 1, 4, 5, 6]]))


def test_bloom_may_add_to_the_normed_stream():
    state, raw = MAKERS["bloom"]()
    m = al.models.load(state, config={**raw, "apply_residual_connection_post_layernorm": True})
    layer, x = m.parts.layers[0], np.random.default_rng(1).standard_normal((5, 12))
    first, second = layer.blocks
    seen = np.tri(5, dtype=bool)
    read = apply_norm(first.norm_before, x)
    middle = apply_norm(second.norm_before, read + attention_output(layer.attention, read, seen)[0])
    expected = middle + feedforward(layer.feedforward, middle)
    assert np.allclose(layer_step(layer, x, seen)[0], expected, rtol=1e-13)


def test_opt_counts_the_places_that_the_mask_shows():
    m = load("opt")
    left = np.concatenate([[1, 1], IDS[:5]])  # padding before a text does not move its places
    alone, padded = m.hidden_states(IDS[:5]), m.hidden_states(left, mask=[0, 0, 1, 1, 1, 1, 1])
    assert np.allclose(padded[:, 2:], alone, rtol=1e-12, atol=1e-12)


def test_llama2c_with_neighbours_is_the_same_model_as_hugging_face_s_with_halves(tmp_path):
    state, raw = tiny_models.llama(heads=3, kv_heads=3)
    (tmp_path / "model.bin").write_bytes(tiny_models.llama2c(state, raw))
    (tmp_path / "attnlab.json").write_text(
        json.dumps({"format": "llama2c", "family": "llama", "licence": "MIT"})
    )
    m = al.models.load(tmp_path)
    assert m.config.rope_pairs == "neighbours" and m.licence == "MIT"
    expected = al.models.load(state, config=raw)
    assert np.allclose(m.hidden_states(IDS), expected.hidden_states(IDS), rtol=1e-9, atol=1e-12)
    assert np.allclose(
        m.weights(1, offset=2).M, expected.weights(1, offset=2).M, rtol=1e-9, atol=1e-12
    )
    assert np.array_equal(
        al.models.load(tmp_path / "model.bin").hidden_states(IDS), m.hidden_states(IDS)
    )


@pytest.mark.parametrize("lost", [0, 5, 21, 30])
def test_a_cut_onnx_file_gives_the_weights_before_the_cut(tmp_path, lost):
    state, raw = tiny_models.albert("encoder.bert.")
    whole = tiny_models.onnx(state, layers=3)
    (tmp_path / "model.onnx").write_bytes(whole[: len(whole) - lost])
    (tmp_path / "config.json").write_text(json.dumps(raw))
    (tmp_path / "attnlab.json").write_text(json.dumps({"format": "onnx"}))
    ours, expected = al.models.load(tmp_path), al.models.load(state, config=raw)
    for name in ("Q", "K", "full_V"):
        assert np.array_equal(getattr(ours.weights(0), name), getattr(expected.weights(0), name))
    assert np.allclose(ours.hidden_states(IDS), expected.hidden_states(IDS), rtol=1e-12, atol=1e-12)
    (
        tmp_path / "config.json"
    ).unlink()  # the shapes and the use of the layer say all but the number of heads
    (tmp_path / "attnlab.json").unlink()
    config = al.models.load(tmp_path).config
    assert (config.layers, config.hidden, config.vocabulary, config.heads) == (3, 16, 19, 1)


def test_llama3_leaves_short_waves_and_stretches_long_ones():
    table = {"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 64}
    theta, stretched = read_rotary({"rope_theta": 1e4, "rope_scaling": table}, 16)
    plain = 1e4 ** (-np.arange(0, 16, 2) / 16)
    assert (
        theta == 1e4
        and np.isclose(stretched[0], plain[0])
        and np.isclose(stretched[-1], plain[-1] / 8)
    )
    assert (
        (np.array(stretched) <= plain + 1e-15) & (np.array(stretched) >= plain / 8 - 1e-15)
    ).all()
    assert np.allclose(
        read_rotary({"rope_parameters": {"rope_type": "linear", "factor": 4.0}}, 16)[1], plain / 4
    )


def test_the_page_of_models_lists_every_family():
    """One row per family: its name, its model_types, and the first paragraph of its file."""
    lines = (DOCS / "models.md").read_text().splitlines()
    start = lines.index("| family | model\\_type | layers |") + 2
    end = next(number for number in range(start, len(lines)) if not lines[number])
    expected = []
    for name in sorted(al.models.families):
        kinds = ", ".join(f"`{kind}`" for kind in al.models.families[name].model_types)
        module = importlib.import_module(f"attnlab.models.checkpoints.families.{name}")
        about = " ".join((module.__doc__ or "").split("\n\n")[0].split())
        expected.append(f"| `{name}` | {kinds} | {about} |")
    assert lines[start:end] == expected


def test_the_front_page_says_how_many_families_there_are():
    assert f"| {len(al.models.families)} families: " in (ROOT / "README.md").read_text()
