"""Models of the Hugging Face hub: from a mirror on this machine, or through huggingface_hub, which
keeps a cache.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from functools import partial
from pathlib import Path

from attnlab.checks import MissingLibrary
from attnlab.models.catalog.archives import CHUNK
from attnlab.models.catalog.hub_progress import with_progress
from attnlab.models.checkpoints.record import BadModel
from attnlab.progress import Progress

HUB = "hf:"
"""The prefix of the name of a model of the hub."""

HUB_FILES = ["config.json", "*.safetensors", "model.safetensors.index.json", "tokenizer.json"]
"""Nothing else is taken from a repository: no pickle, no code."""

MIRROR = "ATTNLAB_MIRROR"
"""The environment variable that names the folder of a mirror."""

CLOCK = 2.0
"""Seconds by which the time of a file may be before that of the clock."""

OWNERS = {
    "google-bert": ("bert-base-uncased", "bert-base-cased", "bert-large-uncased", "bert-large-cased"),
    "openai-community": ("gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl"),
    "distilbert": ("distilbert-base-uncased", "distilbert-base-cased", "distilgpt2", "distilroberta-base"),
    "FacebookAI": ("roberta-base", "roberta-large", "xlm-roberta-base", "xlm-roberta-large"),
    "albert": tuple(f"albert-{size}-v{v}" for size in ("base", "large", "xlarge", "xxlarge") for v in (1, 2)),
    "almanach": ("camembert-base",),
}  # fmt: skip
"""Names that models had before the hub asked for an owner."""


def full_name(name: str) -> str:
    """Return owner/name of a model that people call by its name alone, or else "owner/NAME"."""
    owner = next((owner for owner, names in OWNERS.items() if name in names), "owner")
    return f"{owner}/{name}"


def check_hub_name(said: str) -> tuple[str, str | None]:
    """Return the repository and the revision that owner/name[@revision] names, or raise a
    ValueError.
    """
    match = re.fullmatch(r"(\w[\w.-]*/\w[\w.-]*)(?:@(\w[\w./-]*))?", said)
    if match is None or ".." in said:
        raise ValueError(
            "A model of the hub is written hf:owner/name or hf:owner/name@revision, got"
            f" {HUB + said!r}."
        )
    return match[1], match[2]


def hub_folder(
    said: str, force: bool = False, offline: bool = False, progress: Progress | None = None
) -> Path:
    """Return the folder of owner/name[@revision], in the mirror or else in the hub's cache.
    Downloads it if it is missing, and checks the hashes of what was downloaded.

    progress: what shows the download. None: the bars of huggingface_hub.
    """
    repository, revision = check_hub_name(said)
    mirrored = mirror_folder(said)
    if mirrored is not None:
        return mirrored
    try:
        import huggingface_hub
        from huggingface_hub import errors
    except ImportError:
        from attnlab.models.checkpoints.model import INSTALL

        raise MissingLibrary(
            f"Models of the hub need the library huggingface_hub: {INSTALL}"
        ) from None
    began = time.time()
    download = partial(
        huggingface_hub.snapshot_download,
        repository,
        revision=revision,
        allow_patterns=HUB_FILES,
        ignore_patterns=["*/*"],
        force_download=force,
        local_files_only=offline,
    )
    try:
        folder = Path(
            download() if progress is None else with_progress(download, progress, repository)
        )
    except errors.LocalEntryNotFoundError:
        if offline:
            raise BadModel(
                f"{HUB}{said} is not in the hub's cache. `attnlab fetch {HUB}{said}` downloads it."
            ) from None
        raise ConnectionError(
            f"{repository} is not in the hub's cache and the hub cannot be reached (no network, or"
            f" offline mode is on). Connect once and run `attnlab fetch {HUB}{said}`, or copy the"
            " model's folder to this machine and give its path."
        ) from None
    except (errors.RepositoryNotFoundError, errors.RevisionNotFoundError) as error:
        is_revision = isinstance(error, errors.RevisionNotFoundError)
        what = f"no revision {revision!r} of {repository}" if is_revision else f"no {repository}"
        raise FileNotFoundError(
            f"The hub has {what} that you may read. Check the spelling; a private one needs `hf"
            " auth login`."
        ) from None
    except (errors.HfHubHTTPError, OSError) as error:
        first = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
        raise ConnectionError(
            f"The hub did not give {repository}: {first} Try again, or load a folder."
        ) from None
    check_hashes(folder, since=began)
    return folder


def mirror_folder(said: str) -> Path | None:
    """Return the folder of owner/name[@revision] in the mirror, or None if there is none.

    ATTNLAB_MIRROR names a folder that has owner/name, or owner/name@revision, as folders.
    """
    mirror = os.environ.get(MIRROR)
    if not mirror:
        return None
    folder = Path(mirror).expanduser().absolute() / said
    return folder if folder.is_dir() else None


def check_hashes(folder: Path, since: float = 0.0) -> int:
    """Check the files of a folder of the hub's cache against the hashes that the hub announced.
    Return how many were checked.

    The cache keeps a file under its hash: SHA-256 for large files, that of git for small ones.
    since: only files that were written at that time or later. A file that differs is removed, so
    that nothing uses it.
    """
    checked = 0
    for path in sorted(folder.iterdir()):
        blob = path.resolve()
        announced = blob.name
        kinds = {64: hashlib.sha256, 40: hashlib.sha1}
        if blob == path.absolute() or not re.fullmatch("[0-9a-f]+", announced):
            continue  # a system without links, where the cache does not keep hashes
        if len(announced) not in kinds or blob.stat().st_mtime < since - CLOCK:
            continue
        digest = kinds[len(announced)]()
        if len(announced) == 40:
            digest.update(f"blob {blob.stat().st_size}\0".encode())
        with blob.open("rb") as stream:
            while chunk := stream.read(CHUNK):
                digest.update(chunk)
        if digest.hexdigest() != announced:
            blob.unlink()
            path.unlink(missing_ok=True)
            raise BadModel(
                f"{path.name} from the hub must have the hash {announced}, but has"
                f" {digest.hexdigest()}. It was removed. Fetch the model again; if the hash is wrong"
                " again, do not use the model."
            )
        checked += 1
    return checked
