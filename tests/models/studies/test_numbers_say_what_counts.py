"""Every share beside chance says how many draws that is from; every share of leaders says whether
special tokens count.
"""

from __future__ import annotations

import numpy as np
import pytest
import xarray

import attnlab as al
import tiny_models
from attnlab.models import findings
from attnlab.models.studies.dossier_findings import same_leader
from attnlab.models.studies.sentences import special_words
from attnlab.models.studies.shares import summary
from attnlab.render.spectra_figure import draw_shares, draw_spectra


@pytest.fixture(scope="module")
def model():
    state, raw = tiny_models.bert()
    return al.models.load(state, config=raw)


def words_of(figure):
    """All text of a figure in one line."""
    return " ".join(
        text.get_text() for text in figure.findobj(lambda one: hasattr(one, "get_text"))
    ).replace("\n", " ")


@pytest.mark.parametrize("draws", [7, 31])
def test_chance_says_how_many_draws_it_is_from(model, draws):
    frame = al.models.spectra(model, null=draws)
    assert f"Chance: {draws} random heads" in summary(frame)
    assert f"the share of {draws} Gaussian heads" in words_of(draw_shares([frame]))
    other = al.models.spectra(model, null=50)
    assert f"the share of {draws} to 50 Gaussian heads" in words_of(draw_shares([other, frame]))
    assert "over 200 Gaussian heads" in words_of(draw_spectra(model))


def planted(is_special):
    """A sentence of 4 tokens in 3 layers: the first token leads everywhere; without it the
    idealised model has another leader.
    """
    received = np.array([[[0.7, 0.2, 0.1, 0.0]] * 3, [[0.7, 0.1, 0.2, 0.0]] * 3])
    return xarray.Dataset(
        {"received": (("variant", "step", "token"), received)},
        coords={
            "variant": ["real", "twin"],
            "word": ("token", ["[CLS]", "cat", "sat", "[SEP]"]),
            "is_special": ("token", np.array(is_special, dtype=np.int8)),
        },
        attrs={"layers": 3},
    )


def test_special_tokens_are_named_where_they_count_and_where_not():
    data = planted([1, 0, 0, 1])
    assert special_words(data, is_counted=True) == "[CLS] and [SEP] count"
    assert special_words(data, is_counted=False) == "[CLS] and [SEP] left out"
    assert special_words(planted([0, 0, 0, 0]), is_counted=True) == ""
    assert special_words(planted([1, 0, 0, 0]), is_counted=True) == "[CLS] counts"
    # and it matters: with it the same token leads in all layers, without it in none
    assert same_leader(data, "twin") == 0.0 and same_leader(planted([0, 0, 0, 0]), "twin") == 1.0


def test_the_words_of_a_sentence_say_whether_special_tokens_count(model):
    data = al.models.sentence(model, ids=[1, 2, 3, 4], only=["twin"])
    assert "count)" not in findings(data)[-1]  # ids bring no special tokens
    data["word"] = ("token", ["[CLS]", "a", "b", "[SEP]"])
    data["is_special"] = ("token", np.array([1, 0, 0, 1], dtype=np.int8))
    assert "([CLS] and [SEP] count); among the text's own tokens" in findings(data)[-1]


def test_the_tour_says_at_its_number_what_was_left_out(model):
    from attnlab.models.studies.stacks import read_stacks
    from attnlab.tour.stops.sentence import answers

    data = al.models.sentence(model, ids=[1, 2, 3, 4], only=["twin", "random", "untrained"])
    data["word"] = ("token", ["[CLS]", "a", "b", "[SEP]"])
    data["is_special"] = ("token", np.array([1, 0, 0, 1], dtype=np.int8))
    found = answers(
        read_stacks(model, [{"ids": [1, 2, 3, 4]}, {"ids": [3, 1, 4]}]),
        special_words(data, is_counted=False),
    )
    assert found["leaders"].model.endswith(
        "of the layers after the first ([CLS] and [SEP] left out)"
    )
