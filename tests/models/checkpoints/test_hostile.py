"""Files of strangers beside the weights: tokenizers that loop or panic, indexes that point
elsewhere, pipes, doubled members.
"""

from __future__ import annotations

import gc
import io
import json
import os
import pickle
import subprocess
import sys
import tarfile
import threading
import time

import numpy as np
import pytest

import attnlab as al
import tiny_models
from attnlab.models import BadModel
from attnlab.models.catalog import archives
from attnlab.models.checkpoints import texts
from clock import PATIENCE
from tiny_models import write_folder

WORDS = {"[UNK]": 0, "a": 1, "b": 2}
ENDLESS, LOOPS = "(x+x+)+y", ("x" * 21 + " ") * 2000


@pytest.fixture
def bert(tmp_path):
    """A sound folder, without a tokenizer."""
    return write_folder(tmp_path / "bert", *tiny_models.bert())


def put_tokenizer(folder, **changes):
    sound = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": None,
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": WORDS, "unk_token": "[UNK]"},
    }
    (folder / "tokenizer.json").write_text(json.dumps({**sound, **changes}))
    return al.models.load(folder)


def split_by(expression):
    return {
        "type": "Split",
        "pattern": {"Regex": expression},
        "behavior": "Isolated",
        "invert": False,
    }


@pytest.mark.parametrize("model, said", [
    ({"type": "WordLevel", "vocab": {"a": 1}, "unk_token": "[UNK]"}, r"Missing \[UNK\] token"),
    ({"type": "WordPiece", "vocab": {"a": 1}, "unk_token": "[UNK]", "continuing_subword_prefix": "##",
      "max_input_chars_per_word": 100}, r"Missing \[UNK\] token"),
    ({"type": "Unigram", "vocab": [["a", -1.0]], "unk_id": None}, "unk_id. is missing"),
])  # fmt: skip
def test_a_missing_unknown_token_is_a_sentence(bert, model, said):
    pytest.importorskip("tokenizers")
    m = put_tokenizer(bert, model=model)
    with pytest.raises(
        BadModel,
        match=f"tokenizer.json cannot cut this text into tokens: .*{said}.*Give another text",
    ):
        m.tokens("c")
    assert m.tokens("a")[1] == ["a"]  # a word that it knows


@pytest.mark.parametrize("changes", [
    # more tries than the library allows itself: it panics
    {"pre_tokenizer": split_by("(a+)+$")},
    {"post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}],
                        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
                        "special_tokens": {}}},
    {"model": {"type": "BPE", "vocab": {"a": 1, "b": 2}, "merges": [["a", "b"]], "unk_token": None}},
    {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAA"}},
])  # fmt: skip
def test_a_panic_of_the_library_is_a_sentence_and_prints_nothing(bert, changes, capfd):
    pytest.importorskip("tokenizers")
    # before tokenizers 0.23 a wrong merge is an error
    panic = "PanicException|Token `ab` out of vocabulary"
    with pytest.raises(
        BadModel, match=f"tokenizer.json (cannot cut|must be a tokenizer).*({panic})"
    ):
        put_tokenizer(bert, **changes).tokens("a" * 40 + "!")
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("where", ["pre_tokenizer", "normalizer"])
def test_a_regular_expression_without_end_is_a_sentence_in_time(bert, where, monkeypatch):
    pytest.importorskip("tokenizers")
    monkeypatch.setattr(texts, "SECONDS", 1.0)
    change = (
        split_by(ENDLESS)
        if where == "pre_tokenizer"
        else {"type": "Replace", "pattern": {"Regex": ENDLESS}, "content": "z"}
    )
    m = put_tokenizer(bert, **{where: change})
    begun = time.monotonic()
    with pytest.raises(
        BadModel,
        match="must cut a text within 1 seconds.*regular expression in the file may loop forever",
    ):
        m.tokens(LOOPS)
    assert time.monotonic() - begun < 120  # it would take ten minutes
    monkeypatch.undo()  # the next process may need more than a second to start
    assert m.tokens("a")[1] == ["a"]  # and the next text is cut again


def test_a_normalizer_that_fills_the_memory_is_a_sentence(bert, monkeypatch):
    pytest.importorskip("tokenizers")
    pytest.importorskip("resource")
    monkeypatch.setattr(texts, "MEMORY", 1 << 30)
    grow = {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 1000}
    m = put_tokenizer(bert, normalizer={"type": "Sequence", "normalizers": [grow] * 5})
    with pytest.raises(
        BadModel, match="within 20 seconds and 1 GB, but the library tokenizers crashed"
    ):
        m.tokens("a")


def test_a_tokenizer_survives_threads_pickles_and_forks_and_leaves_no_process(bert):
    pytest.importorskip("tokenizers")
    m = put_tokenizer(bert)
    found = {}

    def ask(tokenizer, number):
        found[number] = tokenizer(" ".join("ab"[i % 2] for i in range(number)))[0]

    threads = [threading.Thread(target=ask, args=(m.tokenizer, number)) for number in range(1, 30)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert found == {number: [1 + i % 2 for i in range(number)] for number in range(1, 30)}
    assert pickle.loads(pickle.dumps(m.tokenizer))("b")[0] == [2]
    process = m.tokenizer._child._process
    del m, threads, one
    gc.collect()
    assert process.returncode is not None  # ended and waited for


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks need POSIX")
def test_a_fork_cuts_texts_by_itself(bert):
    pytest.importorskip("tokenizers")
    put_tokenizer(bert)
    code = f"""
import os, attnlab as al
m = al.models.load({str(bert)!r})
assert m.tokens("a b")[0].tolist() == [1, 2]
child = os.fork()
assert all(m.tokens("b b b")[0].tolist() == [2, 2, 2] for _ in range(50)) if child == 0 else all(
    m.tokens("a")[0].tolist() == [1] for _ in range(50))
if child:
    assert os.waitpid(child, 0)[1] == 0
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks need POSIX")
def test_a_fork_cuts_texts_while_another_thread_of_its_parent_does(bert):
    """The thread holds the lock of the tokenizer at the fork, and waits for its reply: the child
    has the lock, but no thread.
    """
    pytest.importorskip("tokenizers")
    put_tokenizer(bert)
    program = f"""
import os, signal, sys, threading, time
import attnlab as al
m = al.models.load({str(bert)!r})
long, stop = "a b " * 100_000, threading.Event()
def work():
    while not stop.is_set():
        m.tokenizer(long)
thread = threading.Thread(target=work)
thread.start()
while not m.tokenizer._lock.locked():
    time.sleep(0.01)
child = os.fork()
if child == 0:
    signal.alarm(150)                           # instead of hanging
    sys.exit(0 if m.tokenizer("a b")[0] == [1, 2] else 3)
status = os.waitpid(child, 0)[1]
stop.set()
thread.join()
print("status", status)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.stdout.strip() == "status 0", done.stderr


def test_half_a_character_is_named(bert):
    pytest.importorskip("tokenizers")
    with pytest.raises(BadModel, match="U[+]D83D, which UTF-8 cannot hold"):
        put_tokenizer(bert).tokens("a \ud83d b")


def test_a_tokenizer_nested_deeply_is_a_sentence(bert):
    pytest.importorskip("tokenizers")
    put_tokenizer(bert)
    text = (bert / "tokenizer.json").read_text()
    deep = '{"type": "Sequence", "normalizers": [' * 5000 + '{"type": "Lowercase"}' + "]}" * 5000
    (bert / "tokenizer.json").write_text(
        text.replace('"normalizer": null', f'"normalizer": {deep}')
    )
    with pytest.raises(BadModel, match="must be a tokenizer of the library tokenizers"):
        al.models.load(bert).tokens("a")


@pytest.mark.parametrize("depth", [60, 900, 50_000])
def test_a_config_nested_deeply_is_a_sentence(bert, depth):
    text = (bert / "config.json").read_text().strip()
    (bert / "config.json").write_text(
        text[:-1] + ', "hidden_act": ' + "[" * depth + "]" * depth + "}"
    )
    with pytest.raises(
        BadModel,
        match=(
            "config.json must (not be nested deeper than 50|be a JSON object, but cannot be read)"
        ),
    ):
        al.models.load(bert)


def test_a_config_of_a_gigabyte_is_not_read(bert):
    with (bert / "config.json").open("r+b") as file:
        file.truncate(1 << 30)  # sparse: takes no disk
    with pytest.raises(
        BadModel,
        match="config.json must not be longer than 50,000,000 bytes, but has 1,073,741,824",
    ):
        al.models.load(bert)


def sharded(folder, **where):
    """The sound folder in two files with an index; `where` says of tensors, by number, which file
    they are in instead.
    """
    state, _ = tiny_models.bert()
    names = sorted(state)
    (folder / "model.safetensors").unlink()
    files = {"one.safetensors": names[::2], "two.safetensors": names[1::2]}
    for file, of_file in files.items():
        (folder / file).write_bytes(
            tiny_models.safetensors({name: state[name] for name in of_file})
        )
    index = {name: file for file, of_file in files.items() for name in of_file} | where
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
    return folder


def within_seconds(folder):
    """Load in another process, so that one that hangs is seen; what it says."""
    code = (
        f"import attnlab as al\ntry:\n    al.models.load({str(folder)!r})\nexcept ValueError as"
        " error:\n    print(error)"
    )
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, check=True
    ).stdout


@pytest.mark.parametrize(
    "name", ["model.safetensors.index.json", "one.safetensors", "model.safetensors"]
)
@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_a_pipe_or_a_device_in_the_place_of_a_file_is_refused(bert, name, kind):
    if not hasattr(os, "mkfifo"):
        pytest.skip("pipes by name need POSIX")
    if name != "model.safetensors":
        sharded(bert)
    (bert / name).unlink()
    if kind == "pipe":
        os.mkfifo(bert / name)
    else:
        (bert / name).symlink_to("/dev/zero")
    said = within_seconds(bert)
    assert f"{name} must be a plain file" in said or "is a link that leads outside" in said


def test_an_index_that_points_outside_its_folder_is_refused(bert, tmp_path):
    assert np.isfinite(al.models.load(sharded(bert)).hidden_states([1, 2])).all()
    (bert / "two.safetensors").rename(tmp_path / "two.safetensors")
    (bert / "two.safetensors").symlink_to(tmp_path / "two.safetensors")
    with pytest.raises(
        BadModel, match="'two.safetensors' is a link that leads outside. It is refused"
    ):
        al.models.load(bert)
    for name in (
        "../two.safetensors",
        str(tmp_path / "two.safetensors"),
        "/dev/zero",
        "..\\two.safetensors",
    ):
        index = json.loads((bert / "model.safetensors.index.json").read_text())
        first = sorted(index["weight_map"])[0]
        (tmp_path / "index.json").write_text(
            json.dumps({"weight_map": {**index["weight_map"], first: name}})
        )
        (bert / "model.safetensors.index.json").write_text((tmp_path / "index.json").read_text())
        with pytest.raises(BadModel, match="must name .safetensors files of its own folder"):
            al.models.load(bert)


def test_links_of_the_hubs_cache_are_followed(bert, tmp_path):
    sharded(bert)
    snapshot = tmp_path / "models--owner--name" / "snapshots" / "abc"
    blobs = tmp_path / "models--owner--name" / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    for number, path in enumerate(sorted(bert.iterdir())):
        path.rename(blobs / str(number))
        (snapshot / path.name).symlink_to(f"../../blobs/{number}")
    assert al.models.load(snapshot).config.d == 12


def test_a_doubled_member_of_a_tar_has_its_own_sentence(tmp_path):
    path = tmp_path / "package.tgz"
    with tarfile.open(path, "w:gz") as archive:
        for name, content in (("package/a", b"one"), ("package/a", b"two"), ("package/b", b"end")):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    (tmp_path / "into").mkdir()
    with pytest.raises(
        BadModel, match="The archive must hold package/a once, and holds it twice: it is refused"
    ):
        archives.take(path, {"package/a": 3, "package/b": 3}, tmp_path / "into")
