"""Where a model comes from: folders, the hub, memory; what is none of them is said."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import attnlab as al
import tiny_models
from attnlab.models import BadModel
from attnlab.models.catalog import hub_progress
from attnlab.models.catalog.hub import check_hashes
from stub_hub import stub_hub
from tiny_models import write_folder


@pytest.fixture
def bert(tmp_path):
    """A sound folder."""
    return write_folder(tmp_path / "bert", *tiny_models.bert())


def test_sources_that_are_none_are_said(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadModel, match="must hold model.safetensors .*but holds nothing"):
        al.models.load(tmp_path / "empty")
    with pytest.raises(FileNotFoundError, match="There is no folder .*hf:owner/name"):
        al.models.load("not/there")
    with pytest.raises(al.UnknownName, match="minilm"):
        al.models.load("minilmm")
    with pytest.raises(ValueError, match="needs config="):
        al.models.load({})
    with pytest.raises(ValueError, match="config= goes with a state dict"):
        al.models.load("minilm", config={})
    with pytest.raises(TypeError, match="got int"):
        al.models.load(3)
    with pytest.raises(BadModel, match="array of real numbers"):
        al.models.load(
            {**tiny_models.bert()[0], "bert.embeddings.LayerNorm.bias": "text"},
            config=tiny_models.bert()[1],
        )


def test_a_folder_without_config_or_of_an_unknown_format_is_said(bert):
    for said in ("tensorflow", "gguf"):  # and no such file
        (bert / "attnlab.json").write_text('{"format": "' + said + '"}')
        with pytest.raises(BadModel, match=f"onnx, llama2c or gguf, with its file, found '{said}'"):
            al.models.load(bert)
    (bert / "attnlab.json").unlink()
    (bert / "config.json").unlink()
    with pytest.raises(BadModel, match="must hold config.json"):
        al.models.load(bert)


@pytest.mark.parametrize(
    "said", ["hf:", "hf:name", "hf:a/b/c", "hf:../x", "hf:owner/name@", "hf:owner/name@rev ision"]
)
def test_a_hub_name_that_is_none_is_said(said):
    with pytest.raises((ValueError, OSError), match="hf:owner/name|hub"):
        al.models.load(said)


def hub_error(name):
    from huggingface_hub import errors

    kind = getattr(errors, name)
    error = kind.__new__(kind)
    Exception.__init__(error, "a long story\nwith lines")
    return error


@pytest.mark.parametrize("name, kind, said", [
    ("LocalEntryNotFoundError", ConnectionError, "not in the hub's cache and the hub cannot be reached"),
    ("RepositoryNotFoundError", FileNotFoundError, "The hub has no owner/name that you may read"),
    ("RevisionNotFoundError", FileNotFoundError, "no revision 'v2' of owner/name"),
    ("HfHubHTTPError", ConnectionError, "did not give owner/name: "),
])  # fmt: skip
def test_what_the_hub_answers_is_one_sentence(monkeypatch, name, kind, said):
    library = pytest.importorskip("huggingface_hub")
    error = hub_error(name)

    def answer(*_, **__):
        raise error

    monkeypatch.setattr(library, "snapshot_download", answer)
    with pytest.raises(kind, match=said) as caught:
        al.models.load("hf:owner/name@v2")
    assert "\n" not in str(caught.value)


def test_only_weights_config_and_tokenizer_are_taken_from_the_hub(monkeypatch, bert):
    library = pytest.importorskip("huggingface_hub")
    asked = {}

    def answer(repository, **options):
        asked.update(options, repository=repository)
        return str(bert)

    monkeypatch.setattr(library, "snapshot_download", answer)
    m = al.models.load("hf:owner/name@v2")
    assert m.name == "owner/name@v2" and "hub" in m.source
    assert (asked["repository"], asked["revision"]) == ("owner/name", "v2")
    assert set(asked["allow_patterns"]) == {
        "config.json",
        "*.safetensors",
        "model.safetensors.index.json",
        "tokenizer.json",
    }


def test_a_download_from_the_hub_goes_through_progress(monkeypatch, tmp_path):
    """The function is called in the thread that called attnlab, with the bytes so far."""
    library = pytest.importorskip("huggingface_hub")
    halfway, heard, threads = threading.Event(), [], set()

    def hear(fraction, doing):
        heard.append((fraction, doing))
        threads.add(threading.get_ident())
        if "2.0 of 4.0 MB" in doing:
            halfway.set()

    hub = stub_hub(tmp_path, pause=lambda: halfway.wait(30))
    monkeypatch.setattr(library, "snapshot_download", hub.snapshot_download)
    monkeypatch.setattr(hub_progress, "EVERY", 0.01)
    m = al.models.load("hf:owner/name", progress=hear)
    assert m.config.family == "bert" and threads == {threading.get_ident()}
    assert halfway.is_set() and any("owner/name, 2.0 of 4.0 MB" in words for _, words in heard)
    fractions = [fraction for fraction, _ in heard]
    assert fractions == sorted(fractions) and fractions[-1] == 1.0
    silent = al.models.load("hf:owner/name")  # the library has bars of its own
    assert np.array_equal(silent.hidden_states([1, 2]), m.hidden_states([1, 2]))


def test_a_cancelled_download_from_the_hub_stops(monkeypatch, tmp_path):
    library = pytest.importorskip("huggingface_hub")
    reached = threading.Event()
    hub = stub_hub(tmp_path, pause=lambda: reached.wait(30))

    def stop(fraction, doing):
        if "MB" in doing:
            reached.set()
            raise KeyboardInterrupt

    monkeypatch.setattr(library, "snapshot_download", hub.snapshot_download)
    monkeypatch.setattr(hub_progress, "EVERY", 0.01)
    with pytest.raises(KeyboardInterrupt):
        al.models.load("hf:owner/name", progress=stop)
    assert reached.is_set()


def test_an_old_huggingface_hub_counts_files():
    counts = hub_progress.Counts()
    kind = counts.make_class()
    assert counts.report("owner/name") == (0.0, "owner/name")
    bar = kind(range(4), total=4, desc="Fetching 4 files")
    bar.update(1)
    assert counts.report("owner/name") == (0.25, "owner/name, 1 of 4 files")
    counts.is_stopped.set()
    with pytest.raises(KeyboardInterrupt):
        bar.update(1)


def hub_cache(folder, state, raw):
    """A folder as huggingface_hub keeps it: links to files that are named by their hashes."""
    made = write_folder(folder / "made", state, raw)
    blobs, snapshot = folder / "models--o--n" / "blobs", folder / "models--o--n" / "snapshots" / "r"
    blobs.mkdir(parents=True)
    snapshot.mkdir(parents=True)
    for file in made.iterdir():
        data = file.read_bytes()
        is_large = file.suffix == ".safetensors"
        head = b"" if is_large else f"blob {len(data)}\0".encode()
        name = (hashlib.sha256 if is_large else hashlib.sha1)(head + data).hexdigest()
        (blobs / name).write_bytes(data)
        (snapshot / file.name).symlink_to(blobs / name)
    return snapshot


@pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
def test_what_the_hub_delivers_must_have_the_hash_that_it_announced(monkeypatch, tmp_path, name):
    library = pytest.importorskip("huggingface_hub")
    snapshot = hub_cache(tmp_path, *tiny_models.bert())
    monkeypatch.setattr(library, "snapshot_download", lambda *_, **__: str(snapshot))
    assert al.models.load("hf:o/n").config.family == "bert" and check_hashes(snapshot) == 2
    blob = (snapshot / name).resolve()
    blob.write_bytes(blob.read_bytes()[:-1] + b" ")
    with pytest.raises(BadModel, match=f"{name} from the hub must have the hash {blob.name}"):
        al.models.load("hf:o/n")
    assert not blob.exists() and not (snapshot / name).exists()


def test_what_was_cached_before_is_not_hashed_again(monkeypatch, tmp_path):
    snapshot = hub_cache(tmp_path, *tiny_models.bert())
    assert check_hashes(snapshot, since=time.time() + 60) == 0
    assert check_hashes(tmp_path / "made") == 0  # no links: a system that has none


def test_a_mirror_comes_before_the_hub(monkeypatch, tmp_path):
    library = pytest.importorskip("huggingface_hub")
    monkeypatch.setattr(library, "snapshot_download", lambda *_, **__: pytest.fail("no network"))
    monkeypatch.setenv("ATTNLAB_MIRROR", str(tmp_path))
    (tmp_path / "owner").mkdir()
    state, raw = tiny_models.bert()
    write_folder(tmp_path / "owner" / "name", state, raw)
    write_folder(tmp_path / "owner" / "name@v2", *tiny_models.gpt2())
    ours = al.models.load("hf:owner/name", offline=True)
    expected = al.models.load(state, config=raw)
    assert np.array_equal(ours.hidden_states([1, 2]), expected.hidden_states([1, 2]))
    assert ours.address == "hf:owner/name"
    assert al.models.load("hf:owner/name@v2").config.family == "gpt2"
    flow = al.models.flow(ours, 0, 0, ids=[1, 2], t_end=0.1, saves=2, limit=False, check=False)
    assert np.array_equal(al.run_spec(flow.run.spec).x, flow.run.x)
    with pytest.raises(ValueError, match="hf:owner/name"):
        al.models.load("hf:../name")


def test_what_the_mirror_has_not_is_asked_from_the_hub(monkeypatch, bert, tmp_path):
    library = pytest.importorskip("huggingface_hub")
    monkeypatch.setattr(library, "snapshot_download", lambda *_, **__: str(bert))
    monkeypatch.setenv("ATTNLAB_MIRROR", str(tmp_path))
    assert al.models.load("hf:other/name").config.family == "bert"


@pytest.mark.parametrize(
    "name, said",
    [
        ("bert-base-uncased", "hf:google-bert/bert-base-uncased"),
        ("gpt2", "hf:openai-community/gpt2"),
        ("albert-base-v2", "hf:albert/albert-base-v2"),
        ("tinyllama", "hf:owner/tinyllama"),
    ],
)
def test_an_unknown_name_says_how_to_get_the_model_and_names_no_wrong_neighbour(name, said):
    with pytest.raises(al.UnknownName) as caught:
        al.models.load(name)
    assert said in str(caught.value) and "Did you mean" not in str(caught.value)
    assert "by its path" in str(caught.value)


def test_a_name_that_is_nearly_right_gets_its_neighbour():
    with pytest.raises(al.UnknownName, match="Did you mean 'minilm'"):
        al.models.load("minlm")


@pytest.mark.parametrize(
    "library, use",
    [("tokenizers", "m.tokens('x')"), ("huggingface_hub", "al.models.load('hf:a/b')")],
)
def test_a_missing_library_says_what_to_install(bert, library, use):
    (bert / "tokenizer.json").write_text("{}")
    code = (
        f"import sys; sys.modules[{library!r}] = None; import attnlab as al; m ="
        f" al.models.load({str(bert)!r}); {use}"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert f"MissingLibrary: {'Cutting' if library == 'tokenizers' else 'Models'}" in done.stderr
    assert "pip install 'attnlab[models]'" in done.stderr


def test_loading_needs_no_heavy_library(bert):
    heavy = (
        "torch",
        "transformers",
        "safetensors",
        "tokenizers",
        "huggingface_hub",
        "pandas",
        "numba",
        "matplotlib",
    )
    code = f"import sys, attnlab as al; al.models.load({str(bert)!r}).hidden_states([1, 2]); "
    code += f"print([x for x in {heavy} if x in sys.modules])"
    assert (
        subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, text=True
        ).stdout.strip()
        == "[]"
    )


def test_a_missing_file_and_an_empty_name_say_so():
    for name in ("model.gguf", "pytorch_model.bin"):
        with pytest.raises(FileNotFoundError, match=f"no file '{name}'"):
            al.models.load(name)
    with pytest.raises(ValueError, match="the text is empty"):
        al.models.load("")
