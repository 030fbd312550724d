"""Families of checkpoints: what they are read into, what their heads are, and the model itself run
in NumPy.
"""

from __future__ import annotations

import dataclasses
import importlib
import math

import numpy as np
import pytest

import attnlab as al
from attnlab.models.checkpoints.forward import (
    apply_norm,
    attention_output,
    enter,
    layer_step,
    seen_by,
)
from places import DOCS, ROOT
from tiny_models import MAKERS, given

IDS = np.array([3, 17, 5, 5, 0, 11, 8])


def load(family: str):
    state, raw = MAKERS[family]()
    return al.models.load(state, config=raw)


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


def test_a_token_that_is_hidden_takes_no_place_in_the_distances_of_bloom():
    m = load("bloom")
    middle = m.hidden_states(IDS, mask=[1, 1, 0, 0, 1, 1, 1])
    assert np.allclose(middle[:, [0, 1, 4, 5, 6]], m.hidden_states(IDS[[0, 1, 4, 5, 6]]))


def test_opt_counts_the_places_that_the_mask_shows():
    m = load("opt")
    left = np.concatenate([[1, 1], IDS[:5]])  # padding before a text does not move its places
    alone, padded = m.hidden_states(IDS[:5]), m.hidden_states(left, mask=[0, 0, 1, 1, 1, 1, 1])
    assert np.allclose(padded[:, 2:], alone, rtol=1e-12, atol=1e-12)


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
