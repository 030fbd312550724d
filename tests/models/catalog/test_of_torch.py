"""Models whose package has a file of torch: it becomes safetensors, and a list becomes a tokenizer."""

from __future__ import annotations

import json
import random
import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import attnlab as al
from attnlab.models.catalog.catalog import is_cached
from attnlab.models.catalog.reaction_tokens import tokenizer_of_list
from attnlab.models.catalog.torch_weights import safetensors_of_torch
from attnlab.models.checkpoints.files import TensorFile
from attnlab.models.checkpoints.record import BadModel


class Tensor:
    """What is asked of a tensor of torch."""

    def __init__(self, array):
        self.array = np.asarray(array)

    def is_floating_point(self):
        return self.array.dtype.kind == "f"

    def float(self):
        return Tensor(self.array.astype(np.float32))

    def numpy(self):
        return self.array


def torch_that_loads(state, asked):
    def load(stream, **options):
        asked.append((stream.read(), options))
        if state is None:
            raise RuntimeError("Unsupported global")
        return state

    return SimpleNamespace(load=load)


def test_tensors_of_torch_become_safetensors(monkeypatch, tmp_path):
    rng, asked = np.random.default_rng(0), []
    weights = {"a.weight": rng.normal(size=(3, 5)).astype(np.float16), "b": rng.normal(size=7)}
    state = {name: Tensor(array) for name, array in weights.items()} | {"ids": Tensor([1, 2])}
    monkeypatch.setitem(sys.modules, "torch", torch_that_loads(state, asked))
    (tmp_path / "model.safetensors").write_bytes(safetensors_of_torch(b"PK"))
    found = TensorFile(tmp_path / "model.safetensors")
    assert set(found) == set(weights)
    for name, array in weights.items():
        assert np.array_equal(found[name], array.astype(np.float32))
    assert asked == [(b"PK", {"map_location": "cpu", "weights_only": True})]


def test_a_file_of_torch_that_cannot_be_read_says_what_to_do(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", torch_that_loads(None, []))
    with pytest.raises(BadModel, match=r"weights_only=True\) refuses them \(RuntimeError\)"):
        safetensors_of_torch(b"")
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(BadModel, match=r"pip install torch .*Then fetch the model again"):
        safetensors_of_torch(b"")


LIST = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *"cCNO()=.#", "Cl", "Br", ">>", ">", "%10", "[nH]", "1"]
ORIGINAL = (
    r"(\[[^\]]+]|Br?|Cl?|N|O|S|P|F|I|b|c|n|o|s|p|\(|\)|\.|=|#|-|\+|\\|\/|:|~|@|\?|>>?|\*|\$"
    r"|\%[0-9]{2}|[0-9])"
)


def test_pieces_of_reactions_are_those_of_the_packages():
    """There: [CLS], re.findall(ORIGINAL, text), [SEP]; what is not in the list is [UNK]."""
    tokenizers = pytest.importorskip("tokenizers")
    made = tokenizer_of_list(("\n".join(LIST) + "\n").encode())
    tokenizer, rng = tokenizers.Tokenizer.from_str(made.decode()), random.Random(0)
    number = {token: place for place, token in enumerate(LIST)}
    for _ in range(500):
        text = "".join(rng.choice([*LIST, *"xZ {}[]%l\n漢S"]) for _ in range(rng.randint(0, 25)))
        pieces = [number.get(piece, 1) for piece in re.findall(ORIGINAL, text)]
        assert tokenizer.encode(text).ids == [2, *pieces, 3]
    with pytest.raises(BadModel, match=r"must have \[SEP\]"):
        tokenizer_of_list(b"[CLS]\n[UNK]\n")


@pytest.mark.parametrize("name, heads", [("rxnmapper", 8), ("rxnfp", 4)])
def test_the_models_of_reactions_read_reactions(name, heads):
    if not is_cached(name):
        pytest.skip(f"{name} has not been fetched: attnlab fetch {name}")
    m = al.models.load(name)
    ids, words = m.tokens("CC(=O)O.OCC>>CC(=O)OCC")
    assert words[0] == "[CLS]" and ">>" in words and "[UNK]" not in words
    assert m.config.heads == heads and m.attention(ids).shape[:2] == (12, heads)
    assert json.loads(m.tokenizer_file.read_text())["model"]["vocab"]["[CLS]"] == 12
