"""Models whose input is vectors, x (n, d): what a model with an embedding computes from the same
stream.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import attnlab as al
import tiny_models
from attnlab.cli.token_ids import check_tokenizer
from attnlab.models.checkpoints.record import Parts
from attnlab.models.studies.dossier import dossier

IDS = np.array([[3, 17, 5, 9], [2, 2, 11, 4]])


@pytest.fixture(params=["bert", "llama"])
def pair(request):
    """The model, and the same without its embedding."""
    model = al.models.load(*getattr(tiny_models, request.param)())
    config = replace(model.config, vocabulary=0)
    parts = Parts(config, None, model.parts.layers, model.parts.final_norm)
    return model, replace(model, parts=parts, raw_config={})


def test_the_stream_goes_on_as_after_the_embedding(pair):
    model, bare = pair
    mask = np.array([[1, 1, 1, 0], [1, 1, 1, 1]])
    states = model.hidden_states(IDS, mask)
    assert np.array_equal(bare.hidden_states(states[:, 0], mask), states)
    assert np.array_equal(bare.attention(states[:, 0], mask), model.attention(IDS, mask))
    assert np.array_equal(bare.hidden_states(states[1, 0]), model.hidden_states(IDS[1]))
    assert bare.hidden_states(states[1, 0], dtype=np.float32).dtype == np.float32


def test_what_is_no_stream_is_refused(pair):
    model, bare = pair
    d = model.config.d
    x = np.ones((3, d))
    for wrong in ([3, 1, 4], x[:, :-1], np.ones(d), "a text", np.zeros((0, d))):
        with pytest.raises(ValueError, match=rf"must be an array x of shape \(n, {d}\)"):
            bare.hidden_states(wrong)
    with pytest.raises(ValueError, match="finite real numbers"):
        bare.attention(np.where(x > 0, np.nan, x))
    with pytest.raises(ValueError, match="finite real numbers"):
        bare.attention(x * 1j)
    with pytest.raises(ValueError, match=r"one entry per token, \(3,\)"):
        bare.hidden_states(x, mask=np.ones((3, d)))
    with pytest.raises(ValueError, match="places for"):
        bare.hidden_states(np.ones((model.config.length + 1, d)))
    with pytest.raises(ValueError, match="no embedding of tokens, so it cannot read a text"):
        bare.tokens("a text")
    with pytest.raises(ValueError, match="ids must be whole numbers"):
        model.hidden_states(x)
    assert not bare.has_tokenizer


def test_studies_read_the_vectors(pair):
    model, bare = pair
    x = model.hidden_states(IDS[0])[0]
    ours = al.models.sentence(bare, ids=x, only=["real", "twin"])
    theirs = al.models.sentence(model, ids=IDS[0], only=["real", "twin"])
    assert np.array_equal(ours["x"], theirs["x"])
    once = al.models.iterate(bare, ids=x, times=3)
    assert np.array_equal(
        once["cosine"], al.models.iterate(model, ids=IDS[0], times=3)["cosine"], equal_nan=True
    )
    table = al.models.spectra(bare, null=5, texts=[x])
    assert table["token_norm"].equals(
        al.models.spectra(model, null=5, texts=[IDS[0]])["token_norm"]
    )


def test_a_flow_starts_from_what_attention_reads_or_from_x0(pair):
    model, bare = pair
    x = model.hidden_states(IDS[0])[0]
    wanted = al.models.flow(
        model, 1, 0, ids=IDS[0], t_end=0.1, saves=3, limit=False, check=False
    ).run
    for given in ({"ids": x}, {"x0": wanted.x[0]}):
        one = al.models.flow(bare, 1, 0, **given, t_end=0.1, saves=3, limit=False, check=False)
        assert np.allclose(one.run.x, wanted.x, rtol=0, atol=1e-14)
    with pytest.raises(ValueError, match="Give one of them"):
        al.models.flow(bare, 1, 0, x0=x, n=3)
    with pytest.raises(ValueError, match="two or more"):
        al.models.flow(bare, 1, 0, x0=x[:1])


def test_the_flow_of_a_model_on_disk_has_a_spec_with_its_tokens(pair, tmp_path):
    model = al.models.load(tiny_models.write_folder(tmp_path / "tiny", *tiny_models.bert()))
    x0 = np.random.default_rng(0).normal(size=(4, model.config.d))
    one = al.models.flow(model, 1, 0, x0=x0, t_end=0.1, saves=3, limit=False, check=False)
    again = al.run_spec(one.run.spec)
    assert np.array_equal(again.x, one.run.x)


def test_a_dossier_needs_no_text(pair):
    _, bare = pair
    page = dossier(bare, layer=0, head=1, work=2e3, budget=2)
    assert "no embedding" in page.about_texts and len(page.sentences) == 2
    with pytest.raises(ValueError, match="cannot read a text"):
        dossier(bare, ["a text"])


def test_the_command_line_says_that_it_cannot_give_vectors(pair):
    with pytest.raises(ValueError, match=r"reads vectors.*al.models.sentence\(model, ids=x\)"):
        check_tokenizer(pair[1])
