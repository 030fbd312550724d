"""Damaged checkpoints: each is refused with a sentence, or gives a model with finite numbers, the
same where they must be.

Damaged bytes in the header of the weights, or damage in their index, must not change a number. A
config.json or a header that says something else is another model, and damaged weights are other
weights: a checkpoint has no checksum.
"""

from __future__ import annotations

import io
import json
import random
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import workers
from mutations import damage_bytes, damage_table
from worker import Fault

import tiny_gguf
import tiny_models
from tiny_models import TOKENIZER

FEW, MANY = 160, 3000

IDS = [3, 1, 4, 1, 5]
TEXT = "the cat sat"
PATTERNS = (
    "(a+)+$",
    "(",
    "(?:",
    "(x*)*y",
    "[",
    r"\p{L}+",
    "",
    "(?<!a)b",
    "." * 2000,
    "(a|aa)+$",
    "(?=a)*",
)


def prepare(folder: Path) -> None:
    """Write one sound folder for each family, one in two parts with an index, a raw file, an ONNX
    file and a GGUF file.
    """
    from attnlab.models import load

    for family, make in tiny_models.MAKERS.items():
        sound = tiny_models.write_folder(folder / f"sound_{family}", *make())
        (sound / "tokenizer.json").write_text(json.dumps(TOKENIZER))
    state, raw = tiny_models.bert()
    parts = folder / "sound_parts"
    parts.mkdir()
    names = sorted(state)
    halves = {"model-1.safetensors": names[::2], "model-2.safetensors": names[1::2]}
    for file, held in halves.items():
        (parts / file).write_bytes(tiny_models.safetensors({name: state[name] for name in held}))
    index = {
        "metadata": {"total_size": 1},
        "weight_map": {name: file for file, held in halves.items() for name in held},
    }
    (parts / "model.safetensors.index.json").write_text(json.dumps(index))
    (parts / "config.json").write_text(json.dumps(raw))
    onnx = folder / "sound_onnx"
    onnx.mkdir()
    state, raw = tiny_models.albert("albert.")
    (onnx / "model.onnx").write_bytes(tiny_models.onnx(state, raw["num_hidden_layers"]))
    (onnx / "config.json").write_text(json.dumps(raw))
    (onnx / "attnlab.json").write_text(json.dumps({"format": "onnx"}))
    (folder / "sound.bin").write_bytes(tiny_models.llama2c(*tiny_models.llama()))
    state, raw = tiny_models.llama()
    model = load(state, config=raw)
    tiny_gguf.write(folder / "sound.gguf", "llama", state, model.config, eps=1e-5)
    for sound in folder.glob("sound*"):
        computed(sound)  # what is sound is not refused


def computed(path: Path) -> tuple[np.ndarray, ...]:
    """What a model gives: hidden states of a few tokens, and the matrices of its first head."""
    from attnlab.models import load

    model = load(path)
    states = model.hidden_states(
        tiny_models.given(model, [number % (model.config.vocabulary or 19) for number in IDS])
    )
    weights = model.weights(0, 0)
    found = (np.asarray(states), weights.Q, weights.K, *weights.V)
    if not all(np.isfinite(array).all() for array in found):
        raise Fault("unhealthy", "a model was loaded, and what it computes is not finite")
    return found


def attempt(rng: random.Random, folder: Path) -> None:
    """One damaged file of a checkpoint, or one damaged archive."""
    ways = (
        _config,
        _config,
        _config_bytes,
        _header,
        _header,
        _weights,
        _index,
        _tokenizer,
        _tokenizer,
        _raw,
        _onnx,
        _gguf,
        _gguf,
        _zip,
        _tar,
    )
    rng.choice(ways)(rng, folder)


def _copy(sound: Path, folder: Path) -> Path:
    """A folder that may be damaged, with the content of a sound one."""
    damaged = folder / "damaged"
    damaged.mkdir(exist_ok=True)
    for left in damaged.iterdir():
        left.unlink()
    for file in sound.iterdir():
        (damaged / file.name).write_bytes(file.read_bytes())
    return damaged


def _any_folder(rng: random.Random, folder: Path) -> Path:
    return folder / f"sound_{rng.choice(sorted(tiny_models.MAKERS))}"


def _is_same(damaged: Path, sound: Path, what: str) -> None:
    """Damage that is not refused must not have changed a number."""
    found, expected = computed(damaged), computed(sound)
    if not all(np.array_equal(one, other) for one, other in zip(found, expected, strict=True)):
        raise Fault("silent", f"{what} was damaged, and {sound.name} computes other numbers")


def _config(rng: random.Random, folder: Path) -> None:
    damaged = _copy(_any_folder(rng, folder), folder)
    changed = damage_table(json.loads((damaged / "config.json").read_text()), rng)
    (damaged / "config.json").write_bytes(_json(changed))
    computed(damaged)


def _json(table: Any) -> bytes:
    try:
        return json.dumps(table).encode("utf-8", "surrogatepass")
    except RecursionError:  # Python writes nothing deep; by hand it can be done
        return b'{"model_type": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"


def _config_bytes(rng: random.Random, folder: Path) -> None:
    damaged = _copy(_any_folder(rng, folder), folder)
    (damaged / "config.json").write_bytes(damage_bytes((damaged / "config.json").read_bytes(), rng))
    computed(damaged)


def _header(rng: random.Random, folder: Path) -> None:
    sound = _any_folder(rng, folder)
    damaged = _copy(sound, folder)
    data = (damaged / "model.safetensors").read_bytes()
    length = int.from_bytes(data[:8], "little")
    header, rest = data[8 : 8 + length], data[8 + length :]
    how = rng.randrange(3)
    if how == 0:
        changed = tiny_models.with_header(damage_bytes(header, rng), rest)
    elif how == 1:
        changed = tiny_models.with_header(_json(damage_table(json.loads(header), rng)), rest)
    else:
        changed = rng.choice(
            (
                rng.randrange(2**64).to_bytes(8, "little") + data[8:],
                data[: rng.randrange(len(data))],
                data + b"more",
                (length + rng.choice((-1, 1, 8))).to_bytes(8, "little") + data[8:],
            )
        )
    (damaged / "model.safetensors").write_bytes(changed)
    if how == 1:
        computed(damaged)  # two tensors that changed places are another model
    else:
        _is_same(damaged, sound, "the header")


def _weights(rng: random.Random, folder: Path) -> None:
    damaged = _copy(_any_folder(rng, folder), folder)
    data = bytearray((damaged / "model.safetensors").read_bytes())
    start = 8 + int.from_bytes(data[:8], "little")
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(start, len(data))
        data[at] = rng.choice((0, 0x7F, 0x80, 0xFF, data[at] ^ 0x40))
    (damaged / "model.safetensors").write_bytes(data)
    computed(damaged)


def _index(rng: random.Random, folder: Path) -> None:
    damaged = _copy(folder / "sound_parts", folder)
    path = damaged / "model.safetensors.index.json"
    table = json.loads(path.read_text())
    how = rng.randrange(3)
    if how == 0:
        path.write_bytes(damage_bytes(path.read_bytes(), rng))
    elif how == 1:
        path.write_bytes(_json(damage_table(table, rng)))
    else:
        name = rng.choice(sorted(table["weight_map"]))
        table["weight_map"][name] = rng.choice(
            (
                "../sound_bert/model.safetensors",
                "/dev/zero",
                "/dev/stdin",
                "",
                ".",
                "nowhere",
                "/etc/passwd",
                "model-1.safetensors/",
                "config.json",
                7,
                None,
                "a\x00b",
            )
        )
        path.write_bytes(_json(table))
    _is_same(damaged, folder / "sound_parts", "the index")


def _tokenizer(rng: random.Random, folder: Path) -> None:
    """What a text is cut into are numbers of words that the model has."""
    from attnlab.models import load

    damaged = _copy(_any_folder(rng, folder), folder)
    path = damaged / "tokenizer.json"
    how = rng.randrange(4)
    if how == 0:
        path.write_bytes(damage_bytes(path.read_bytes(), rng))
    elif how == 1:
        table = json.loads(path.read_text())
        split = {
            "type": "Split",
            "pattern": {"Regex": rng.choice(PATTERNS)},
            "behavior": "Isolated",
            "invert": False,
        }
        replace = {
            "type": "Replace",
            "pattern": {"Regex": rng.choice(PATTERNS)},
            "content": rng.choice(("", "a" * 1000)),
        }
        table |= rng.choice(({"pre_tokenizer": split}, {"normalizer": replace}))
        path.write_bytes(_json(table))
    elif how == 2:
        table = json.loads(path.read_text())
        words = TOKENIZER["model"]
        table["model"] = rng.choice(
            (
                {"type": "BPE", "vocab": {}, "merges": []},
                {"type": "Unigram", "vocab": []},
                {**words, "unk_token": "[GONE]"},
                {**words, "vocab": {"cat": 10**9}},
                {"type": "WordPiece", "vocab": {"cat": 3}, "unk_token": "[UNK]"},
            )
        )
        path.write_bytes(_json(table))
    else:
        path.write_bytes(_json(damage_table(json.loads(path.read_text()), rng)))
    model = load(damaged)
    for text in (TEXT, "a" * 40 + "!", rng.choice((" ", "\x00", "中文 the", "the " * 400))):
        ids, words = model.tokens(text)
        if len(ids) != len(words):
            raise Fault("unhealthy", f"{len(ids)} ids and {len(words)} words")


def _raw(rng: random.Random, folder: Path) -> None:
    data = bytearray((folder / "sound.bin").read_bytes())
    if rng.random() < 0.5:  # one of the seven numbers at the beginning
        at = 4 * rng.randrange(7)
        data[at : at + 4] = rng.choice((0, 1, -1, 2**31 - 1, -(2**31), 13, 10**6)).to_bytes(
            4, "little", signed=True
        )
    else:
        data = bytearray(damage_bytes(bytes(data[:64]), rng) + data[64:])
    path = folder / "damaged.bin"
    path.write_bytes(data)
    computed(path)


def _onnx(rng: random.Random, folder: Path) -> None:
    damaged = _copy(folder / "sound_onnx", folder)
    (damaged / "model.onnx").write_bytes(damage_bytes((damaged / "model.onnx").read_bytes(), rng))
    computed(damaged)


def _gguf(rng: random.Random, folder: Path) -> None:
    """Damage of the header alone: a file has no checksum, so other numbers are another model."""
    data = (folder / "sound.gguf").read_bytes()
    how = rng.randrange(3)
    path = folder / "damaged.gguf"
    if how == 0:
        path.write_bytes(data[: rng.randrange(len(data))])
    elif how == 1:
        path.write_bytes(damage_bytes(data, rng))
    else:
        at = rng.randrange(64) if rng.random() < 0.3 else rng.randrange(len(data) // 2)
        size = rng.choice((1, 4, 8))
        path.write_bytes(data[:at] + rng.randbytes(size) + data[at + size :])
    computed(path)


CONTENT = {"package/model.bin": bytes(range(256)) * 40, "package/config.json": b'{"a": 1}'}


def _zip(rng: random.Random, folder: Path) -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(
        made, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    ) as archive:
        for name, content in CONTENT.items():
            archive.writestr(name, content)
        if rng.random() < 0.3:
            archive.writestr(
                rng.choice(("../escaped", "/tmp/escaped", "package/../../escaped", "a\\..\\b")),
                b"x",
            )
    _take(folder / "archive.zip", made.getvalue(), rng, is_checked=True)


def _tar(rng: random.Random, folder: Path) -> None:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for name, content in CONTENT.items():
            member = tarfile.TarInfo(rng.choice((name, name, name, f"./{name}", f"../{name}")))
            member.size = len(content)
            member.type = rng.choice(
                (
                    tarfile.REGTYPE,
                    tarfile.REGTYPE,
                    tarfile.REGTYPE,
                    tarfile.SYMTYPE,
                    tarfile.FIFOTYPE,
                )
            )
            member.linkname = "/etc/passwd" if member.type == tarfile.SYMTYPE else ""
            archive.addfile(member, io.BytesIO(content))
            if rng.random() < 0.2:
                archive.addfile(member, io.BytesIO(content))
    _take(folder / "archive.tgz", made.getvalue(), rng, is_checked=False)


def _take(path: Path, data: bytes, rng: random.Random, is_checked: bool) -> None:
    """What comes out are the files that were asked for, of the right size and nowhere else; a .zip
    has checksums of its own.
    """
    from attnlab.models.catalog.archives import take

    path.write_bytes(damage_bytes(data, rng) if rng.random() < 0.8 else data)
    into = path.parent / "taken"
    into.mkdir(exist_ok=True)
    for left in into.iterdir():
        left.unlink()
    around = set(path.parent.parent.rglob("*"))
    found = take(path, {name: len(content) for name, content in CONTENT.items()}, into)
    if any(file.is_symlink() or file.resolve().parent != into.resolve() for file in found.values()):
        raise Fault("escaped", f"{found}")
    if escaped := {
        file for file in set(path.parent.parent.rglob("*")) - around if file.parent != into
    }:
        raise Fault("escaped", f"{escaped}")
    contents = {name: file.read_bytes() for name, file in found.items()}
    if (
        any(len(content) != len(CONTENT[name]) for name, content in contents.items())
        or is_checked
        and contents != CONTENT
    ):
        raise Fault("silent", f"{path.name} gave other files")


@pytest.mark.parametrize(
    "numbers",
    [
        pytest.param(range(FEW), id="few"),
        pytest.param(range(FEW, MANY), id="many", marks=pytest.mark.slow),
    ],
)
def test_every_damaged_checkpoint_is_refused_or_sound(numbers, tmp_path):
    outcomes = workers.try_all("test_checkpoints", numbers, tmp_path)
    counts = workers.counted(outcomes)
    workers.assert_clean(outcomes)
    assert counts["result"] > 0.05 * len(numbers) and counts["refused"] > 0.4 * len(numbers), counts
