"""The layers of families against loops over tokens and heads, and against their equations."""

from __future__ import annotations

import dataclasses
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
    feedforward,
    layer_step,
    seen_by,
)
from attnlab.models.checkpoints.record import Rotary
from attnlab.models.checkpoints.rotary import read_rotary, rotate
from tiny_models import MAKERS

IDS = np.array([3, 17, 5, 5, 0, 11, 8])


def load(family: str):
    state, raw = MAKERS[family]()
    return al.models.load(state, config=raw)


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
