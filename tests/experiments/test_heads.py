"""The heads of the slides' experiments: nested, as the model has them, and the same flow in the
span of the tokens.
"""

from __future__ import annotations

import numpy as np
import pytest

import attnlab as al
from attnlab.analysis.span import in_span
from attnlab.experiments.common import heads
from attnlab.experiments.common.paragraphs import PARAGRAPHS


@pytest.fixture(scope="module")
def model():
    return heads.stand_in()


def test_heads_are_nested(model):
    for make in (
        lambda count, values: heads.synthetic_heads(count, 3, values),
        lambda *rest: heads.trained_heads(model, *rest),
    ):
        for values in heads.VALUES:
            most = make(16, values)
            for count in heads.HEADS:
                few = make(count, values)
                assert few.heads == count
                np.testing.assert_array_equal(few.M, most.M[:count])
                np.testing.assert_array_equal(few.full_V, most.full_V[:count])


def test_trained_heads_are_those_of_the_layers(model):
    sixteen = heads.trained_heads(model, 16, "own")
    for number in range(16):
        one = model.weights(number // 4, number % 4)
        np.testing.assert_array_equal(sixteen.M[number], one.M[0])
        np.testing.assert_array_equal(sixteen.full_V[number], one.full_V[0])


def test_more_heads_than_the_model_has_are_refused():
    from attnlab.experiments.paper.albert_spectra.experiment import Planted

    with pytest.raises(ValueError, match="has not 8 different heads"):
        heads.trained_heads(Planted(), 8)  # six, the same in every layer


def test_the_span_of_the_tokens_is_enough(model):
    x0 = heads.real_start(model, 6)
    weights = heads.trained_heads(model, 4)
    reduced, y0, basis = in_span(weights, x0)
    assert reduced.d == 6 < weights.d
    options = {"t_end": 0.4, "rtol": 1e-11, "times": np.linspace(0, 0.4, 5)}
    whole, small = al.simulate(weights, x0, **options), al.simulate(reduced, y0, **options)
    np.testing.assert_allclose(
        small.x @ basis.T, whole.x, rtol=0, atol=1e-8 * np.abs(whole.x).max()
    )


def test_pieces_of_text_do_not_overlap():
    """A model whose embedding is the place of the token in the text: pieces are told apart by
    it.
    """

    class Reader:
        config, tokenizer_file = None, "here"

        def tokens(self, text, special):
            return np.arange(len(text.split())), text.split()

        def hidden_states(self, ids):
            return np.asarray(ids, dtype=float)[None, :, None]

    count = len(" ".join(PARAGRAPHS).split())
    pieces = [heads.real_start(Reader(), 100, piece)[:, 0] for piece in range(count // 100)]
    assert sorted(np.concatenate(pieces)) == list(range(100 * (count // 100)))
    with pytest.raises(
        ValueError, match=f"{count // 100} pieces of 100; piece {count // 100} is asked for"
    ):
        heads.real_start(Reader(), 100, count // 100)


def test_the_stand_in_reads_other_ids_in_every_piece(model):
    one, same, other = (heads.real_start(model, 6, piece) for piece in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert np.abs(one - other).max() > 0.1


def test_other_values_leave_the_span(model):
    with pytest.raises(ValueError, match="V_h = I"):
        in_span(heads.trained_heads(model, 2, "own"), heads.real_start(model, 5))


def test_a_model_that_is_not_here_is_a_reason(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    found, why = heads.trained_model("full", "albert-chem")
    assert found is None and "attnlab fetch albert-chem" in why
