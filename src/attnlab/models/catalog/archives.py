"""Named files out of an archive that nobody vouches for.

Only the members asked for are read, into files that we name, and each must have exactly the size that is known beforehand: so
neither a name, nor a link, nor a declared length inside the archive decides where or how much is written.
"""

from __future__ import annotations

import errno
import gzip
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from attnlab.models.checkpoints.record import BadModel

CHUNK = 1 << 20

SLACK = 64 << 20
"""How many bytes of a compressed tar may be unpacked beyond twice what is wanted: it can only be read from its beginning."""

METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""The others let the archive say how much memory unpacking takes."""

BROKEN = (
    zipfile.BadZipFile, tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError,
    NotImplementedError,        # a version of the format that Python does not know
    RecursionError,             # headers of headers of headers
    struct.error, UnicodeError, ValueError, OverflowError,
)


def take(archive: Path, wanted: Mapping[str, int], into: Path) -> dict[str, Path]:
    """The files {member: where it is now}, for `wanted` {member: its size}, out of a .whl or .zip, else a .tgz, into a folder."""
    try:
        read = _take_zip if archive.suffix in (".whl", ".zip") else _take_tar
        found = read(archive, wanted, into)
    except BadModel:
        raise
    except (*BROKEN, OSError) as problem:
        # an offset before the beginning is an invalid argument to the system; other OSErrors are about the disk
        if isinstance(problem, OSError) and not isinstance(problem, gzip.BadGzipFile) and problem.errno != errno.EINVAL:
            raise
        raise BadModel(f"The archive {archive.name} must be whole, and cannot be read ({problem}): fetch it again.") from problem
    missing = [member for member in wanted if member not in found]
    if missing:
        raise BadModel(f"The archive {archive.name} must hold {missing[0]}, and does not: it is not the release that is known.")
    return found


def _take_zip(archive: Path, wanted: Mapping[str, int], into: Path) -> dict[str, Path]:
    found: dict[str, Path] = {}
    with zipfile.ZipFile(archive) as opened:
        for info in opened.infolist():
            _check_name(info.filename)
            if info.filename not in wanted:
                continue
            _check_once(info.filename, found)
            kind = stat.S_IFMT(info.external_attr >> 16)
            is_readable = not info.flag_bits & 1 and info.compress_type in METHODS      # bit 0: encrypted
            _check_plain(info.filename, kind in (0, stat.S_IFREG) and is_readable)
            _check_size(info.filename, info.file_size, wanted)
            with opened.open(info) as source:
                found[info.filename] = _copy(info.filename, source, into / str(len(found)), info.file_size)
    return found


def _take_tar(archive: Path, wanted: Mapping[str, int], into: Path) -> dict[str, Path]:
    found: dict[str, Path] = {}
    with gzip.open(archive) as unpacked:
        bounded: Any = _Bounded(unpacked, 2 * sum(wanted.values()) + SLACK)
        with tarfile.open(fileobj=bounded, mode="r|") as opened:
            for info in opened:
                _check_name(info.name)
                if info.name not in wanted:
                    continue
                _check_once(info.name, found)
                _check_plain(info.name, info.type in (tarfile.REGTYPE, tarfile.AREGTYPE) and not info.issparse())
                _check_size(info.name, info.size, wanted)
                source = opened.extractfile(info)
                assert source is not None
                found[info.name] = _copy(info.name, source, into / str(len(found)), info.size)
                if len(found) == len(wanted):
                    break       # what comes after is not looked at, so that it can do no harm
    return found


def _check_name(name: str) -> None:
    """Refuse archives with members that want to be written elsewhere: nobody makes them by accident."""
    parts = name.replace("\\", "/").split("/")
    if name.startswith(("/", "\\")) or ".." in parts or ":" in parts[0] or "\0" in name:
        raise BadModel(f"Every name inside the archive must stay in its folder, got {name!r}: the archive is refused.")


def _check_once(name: str, found: Mapping[str, Path]) -> None:
    if name in found:
        raise BadModel(f"The archive must hold {name} once, and holds it twice: it is refused.")


def _check_plain(name: str, is_plain: bool) -> None:
    if not is_plain:
        raise BadModel(f"{name} inside the archive must be a plain file, not a link, a device or encrypted: it is refused.")


def _check_size(name: str, size: int, wanted: Mapping[str, int]) -> None:
    if size != wanted[name]:
        raise BadModel(f"{name} inside the archive must have {wanted[name]} bytes, and says it has {size}: it is not read.")


def _copy(name: str, source: IO[bytes], target: Path, size: int) -> Path:
    """Write `source` to `target`, never more than `size` bytes, and not less."""
    left = size
    with target.open("xb") as file:
        while left > 0 and (chunk := source.read(min(CHUNK, left))):
            file.write(chunk)
            left -= len(chunk)
    if left > 0 or source.read(1):
        raise BadModel(f"{name} inside the archive must have {size} bytes, as it says, and has {'less' if left else 'more'}.")
    return target


class _Bounded:
    """A file that may be read up to `limit` bytes: headers can be as long as they say, and would be read into memory."""

    def __init__(self, source: gzip.GzipFile, limit: int):
        self._source, self._left = source, limit

    def read(self, size: int) -> bytes:
        chunk = self._source.read(size)
        self._left -= len(chunk)
        if self._left < 0:
            raise BadModel("The archive unpacks to far more than it should hold: it is refused.")
        return chunk
