"""Models and tokenizers that other libraries have in memory, and files of torch: as the same
weights in a folder, or refused.
"""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import attnlab as al
import tiny_models
from attnlab.checks import MissingLibrary
from attnlab.models import BadModel
from attnlab.models.checkpoints.torch_files import open_torch_files
from tiny_models import write_folder

IDS = [3, 17, 5]


class Other:
    """What a model of transformers offers."""

    def __init__(self, family, **changes):
        state, raw = getattr(tiny_models, family)()
        self.state, self.config = state, SimpleNamespace(to_dict=lambda: {**raw, **changes})

    def state_dict(self):
        return self.state


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama"])
def test_a_model_of_another_library_is_its_folder(family, tmp_path):
    state, raw = getattr(tiny_models, family)()
    folder = al.models.load(write_folder(tmp_path / family, state, raw))
    ours = al.models.load(Other(family))
    assert (
        np.array_equal(ours.hidden_states(IDS), folder.hidden_states(IDS))
        and ours.name == "Other"
        and ours.address is None
    )
    assert al.models.load(Other(family), name="mine").name == "mine"


def test_a_model_without_a_config_says_what_to_do():
    other = Other("bert")
    other.config = None
    with pytest.raises(
        TypeError,
        match=r"a config that has to_dict\(\).*Other is none of them.*state_dict\(\), config=",
    ):
        al.models.load(other)
    with pytest.raises(ValueError, match="config= goes with a state dict"):
        al.models.load(Other("bert"), config={})
    with pytest.raises(BadModel, match="hidden_act in the config"):  # nothing is silently wrong
        al.models.load(Other("bert", hidden_act="mish"))


class OfTransformers:
    """A tokenizer of transformers: letters are ids."""

    def __call__(self, text, add_special_tokens=True):
        ids = [ord(letter) - 97 for letter in text]
        return {"input_ids": [1, *ids, 2] if add_special_tokens else ids}

    def convert_ids_to_tokens(self, ids):
        return [f"<{one}>" for one in ids]


class OfTokenizers:
    """A tokenizer of tokenizers."""

    def encode(self, text, add_special_tokens=True):
        ids = [ord(letter) - 97 for letter in text]
        ids = [1, *ids, 2] if add_special_tokens else ids
        return SimpleNamespace(ids=ids, tokens=[f"<{one}>" for one in ids])

    def id_to_token(self, one):
        return f"<{one}>"


def by_hand(text, special):
    ids = [ord(letter) - 97 for letter in text]
    ids = [1, *ids, 2] if special else ids
    return np.array(ids), [f"<{one}>" for one in ids]


@pytest.mark.parametrize(
    "tokenizer",
    [OfTransformers(), OfTokenizers(), by_hand],
    ids=["transformers", "tokenizers", "function"],
)
def test_a_tokenizer_of_another_library_cuts_texts(tokenizer):
    model = al.models.load(Other("bert"), tokenizer=tokenizer)
    assert model.has_tokenizer and not al.models.load(Other("bert")).has_tokenizer
    for special, ids in ((True, [1, 3, 4, 2]), (False, [3, 4])):
        found, words = model.tokens("de", special=special)
        assert (
            found.tolist() == ids
            and words == [f"<{one}>" for one in ids]
            and found.dtype == np.int64
        )
    assert "word" in al.models.sentence(model, "de", only=["random"]).coords
    with pytest.raises(ValueError, match=r"gave the id \d+, and the model knows 0 to"):
        model.tokens("\u00ff")


def test_a_tokenizer_by_its_path_and_what_is_none(tmp_path):
    (tmp_path / "tokenizer.json").write_text(json.dumps(tiny_models.TOKENIZER))
    for path in (tmp_path, tmp_path / "tokenizer.json", str(tmp_path)):
        model = al.models.load(Other("bert"), tokenizer=path)
        assert model.has_tokenizer and model.tokens("the cat")[0].tolist() == [1, 3, 4, 2]
    with pytest.raises(
        FileNotFoundError, match=r"tokenizer must be a tokenizer\.json or a folder that has one"
    ):
        al.models.load(Other("bert"), tokenizer=tmp_path / "none")
    with pytest.raises(TypeError, match="tokenizer must be a path, .* got int"):
        al.models.load(Other("bert"), tokenizer=3)
    uneven = al.models.load(Other("bert"), tokenizer=lambda text, special: ([1, 2], ["a"]))
    with pytest.raises(ValueError, match="one word per id, but gave 2 ids and 1 words"):
        uneven.tokens("a")
    with pytest.raises(TypeError, match=r"must take \(text, special\).* takes other arguments"):
        al.models.load(Other("bert"), tokenizer=lambda text: [1, 2])
    ids_only = al.models.load(Other("bert"), tokenizer=lambda text, special: [1, 2, 3])
    with pytest.raises(TypeError, match=r"must return \(ids, words\), got list"):
        ids_only.tokens("a")


def test_the_spec_of_a_flow_does_not_depend_on_the_tokenizer(tmp_path):
    """The Spec finds the folder, whose own tokenizer knows other words."""
    folder = write_folder(tmp_path / "bert", *tiny_models.bert())
    (folder / "tokenizer.json").write_text(json.dumps(tiny_models.TOKENIZER))
    flow = al.models.flow(al.models.load(folder, tokenizer=by_hand), 0, 0, text="de", t_end=0.5)
    assert flow.run.spec.start["ids"] == [1, 3, 4, 2]
    assert np.array_equal(al.run_spec(flow.run.spec).states, flow.run.states)
    own = al.models.flow(al.models.load(folder), 0, 0, text="the cat", t_end=0.5)
    assert own.run.spec.start["text"] == "the cat"


def test_files_of_torch_are_read_only_when_asked(tmp_path, monkeypatch):
    folder = write_folder(tmp_path / "bert", *tiny_models.bert())
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(BadModel, match=r"is a pickle.*torch_files=True"):
        al.models.load(folder)
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "torch", None)  # as if it were not installed
        with pytest.raises(
            MissingLibrary, match=r"pytorch_model\.bin is a file of torch.*pip install torch"
        ):
            al.models.load(folder, torch_files=True)
    (folder / "pytorch_model.bin").unlink()
    with pytest.raises(BadModel, match=r"must hold pytorch_model\.bin"):
        open_torch_files(folder)
    (folder / "pytorch_model.bin.index.json").write_text(
        json.dumps({"weight_map": {"a": "../a.bin"}})
    )
    with pytest.raises(BadModel, match=r"must hold pytorch_model\.bin"):
        open_torch_files(folder)
