"""The same families in other layouts: old names, other model_types, raw files and bare parts."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

import attnlab as al
import tiny_models
from attnlab.models.checkpoints.forward import attention_output, embed, feedforward
from tiny_models import MAKERS, given

IDS = np.array([3, 17, 5, 5, 0, 11, 8])


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


BARE = {"bart": "encoder.", "whisper": "encoder.", "t5": "encoder.", "opt": "decoder."}


@pytest.mark.parametrize("family", BARE)
def test_a_bare_part_is_the_model(family):
    """As model.get_encoder().state_dict() has it in transformers: no prefix."""
    state, raw = MAKERS[family]()
    whole = al.models.load(state, config=raw)
    inner = BARE[family]
    bare = {name.split(inner, 1)[1]: array for name, array in state.items() if inner in name}
    if "embed_tokens.weight" not in bare and whole.parts.embedding is not None:
        bare["embed_tokens.weight"] = whole.parts.embedding.tokens
    assert not any(inner in name for name in bare)
    found = al.models.load(bare, config=raw)
    x = given(whole, IDS)
    assert found.config == whole.config
    assert np.array_equal(found.hidden_states(x), whole.hidden_states(x))


@pytest.mark.parametrize("family", ["bart", "whisper", "t5"])
def test_a_decoder_says_that_the_encoder_must_be_given(family):
    _, raw = MAKERS[family]()
    name = "block.0.layer.1.EncDecAttention.q" if family == "t5" else "layers.0.encoder_attn.q_proj"
    for state, config in (
        ({f"{name}.weight": np.ones((2, 2))}, raw),
        ({"model.decoder.layers.0.self_attn.q_proj.weight": np.ones((2, 2))}, raw),
        ({"layers.0.self_attn.q_proj.weight": np.ones((2, 2))}, {**raw, "is_decoder": True}),
    ):
        with pytest.raises(al.models.BadModel, match=r"decoder of a .*model.get_encoder\(\)"):
            al.models.load(state, config=config)


def test_a_model_of_texts_and_images_says_which_part_is_read():
    config = {"model_type": "gemma3", "text_config": {"model_type": "gemma3_text"}}
    with pytest.raises(al.models.BadModel, match="'gemma3_text', which is read here"):
        al.models.load({}, config=config)
    with pytest.raises(al.models.BadModel, match="'idefics', which no family here can read"):
        al.models.load({}, config={"model_type": "idefics", "text_config": {"model_type": "rwkv"}})


def variant_of_bart(kind):
    """The tiny BART as that model_type: its final norm, and what it does not have left out."""
    state, raw = MAKERS["bart"]()
    make = tiny_models.Maker(3)
    make.norm("model.encoder.layer_norm")
    if kind in ("mbart", "pegasus"):
        state |= make.state
    if kind in ("pegasus", "marian"):
        drop = ("layernorm_embedding", "embed_positions")
        state = {name: array for name, array in state.items() if not any(d in name for d in drop)}
    return state, {**raw, "model_type": kind}


@pytest.mark.parametrize("kind", ["mbart", "pegasus", "marian"])
def test_relatives_of_bart_by_their_equations(kind):
    state, raw = variant_of_bart(kind)
    m = al.models.load(state, config=raw)
    states = m.hidden_states(IDS)
    get = {name.removeprefix("model.encoder."): x.astype(float) for name, x in state.items()}

    def norm(name, x):
        x = x - x.mean(axis=-1, keepdims=True)
        x = x / np.sqrt(np.square(x).mean(axis=-1, keepdims=True) + 1e-5)
        return x * get[name + ".weight"] + get[name + ".bias"]

    x = np.array([state["model.shared.weight"][word] for word in IDS], dtype=float) * 12**0.5
    if kind == "mbart":
        x = norm("layernorm_embedding", x + get["embed_positions.weight"][2:9])
    else:
        for place in range(7):
            for i in range(6):
                angle = place / 10000 ** (2 * i / 12)
                x[place, i] += np.float32(np.sin(angle))
                x[place, 6 + i] += np.float32(np.cos(angle))
    assert np.allclose(states[0], x, rtol=1e-12, atol=1e-13)
    for layer, parts in enumerate(m.parts.layers):
        at = f"layers.{layer}."
        seen = np.ones((7, 7), dtype=bool)
        if kind == "marian":
            y = norm(at + "self_attn_layer_norm", x + attend(parts, x, seen))
            x = norm(at + "final_layer_norm", y + feed(parts, y))
        else:
            y = x + attend(parts, norm(at + "self_attn_layer_norm", x), seen)
            x = y + feed(parts, norm(at + "final_layer_norm", y))
    x = x if kind == "marian" else norm("layer_norm", x)
    assert np.allclose(states[-1], x, rtol=1e-11, atol=1e-12)


def attend(layer, x, seen):
    return attention_output(layer.attention, x, seen)[0]


def feed(layer, x):
    return feedforward(layer.feedforward, x)


@pytest.mark.parametrize("kind", ["bart", "mbart", "pegasus", "marian"])
def test_a_relative_of_bart_under_a_wrong_model_type_is_refused(kind):
    """Norms outside the layers and the positions tell them apart."""
    state, raw = variant_of_bart(kind)
    for other in {"bart", "mbart", "pegasus", "marian"} - {kind}:
        with pytest.raises(al.models.BadModel, match="norm|embed_positions"):
            al.models.load(state, config={**raw, "model_type": other})
    is_before = kind in ("mbart", "pegasus")
    assert al.models.load(state, config={**raw, "normalize_before": is_before})
    with pytest.raises(al.models.BadModel, match="normalize_before"):
        al.models.load(state, config={**raw, "normalize_before": not is_before})
