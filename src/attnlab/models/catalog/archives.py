"""Take named files out of an untrusted archive.

Only the requested members are read, into files with our names, and each must have exactly its known
size. So no name, link or length inside the archive decides where or how much is written.
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
"""A compressed tar is read from its beginning: at most this many bytes more than twice the wanted
size are unpacked.
"""

METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""With other methods the archive decides how much memory unpacking takes."""

BROKEN = (
    zipfile.BadZipFile,
    tarfile.TarError,
    gzip.BadGzipFile,
    zlib.error,
    EOFError,
    NotImplementedError,  # a version of the format that Python does not know
    RecursionError,  # headers of headers of headers
    struct.error,
    UnicodeError,
    ValueError,
    OverflowError,
)


def take(archive: Path, wanted: Mapping[str, int], into: Path) -> dict[str, Path]:
    """Unpack `wanted` {member: size} from a .whl, .zip or .tgz into a folder. Return {member: its
    new path}.
    """
    try:
        read = _take_zip if archive.suffix in (".whl", ".zip") else _take_tar
        found = read(archive, wanted, into)
    except BadModel:
        raise
    except (*BROKEN, OSError) as problem:
        # the system calls an offset before the beginning an invalid argument; other OSErrors are
        # about the disk
        if (
            isinstance(problem, OSError)
            and not isinstance(problem, gzip.BadGzipFile)
            and problem.errno != errno.EINVAL
        ):
            raise
        raise BadModel(
            f"The archive {archive.name} is damaged and cannot be read ({problem}). Fetch it again."
        ) from problem
    missing = [member for member in wanted if member not in found]
    if missing:
        raise BadModel(
            f"The archive {archive.name} must hold {missing[0]}, but does not. It is not the known"
            " release."
        )
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
            is_readable = (
                not info.flag_bits & 1 and info.compress_type in METHODS
            )  # bit 0: encrypted
            _check_plain(info.filename, kind in (0, stat.S_IFREG) and is_readable)
            _check_size(info.filename, info.file_size, wanted)
            with opened.open(info) as source:
                found[info.filename] = _copy(
                    info.filename, source, into / str(len(found)), info.file_size
                )
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
                _check_plain(
                    info.name,
                    info.type in (tarfile.REGTYPE, tarfile.AREGTYPE) and not info.issparse(),
                )
                _check_size(info.name, info.size, wanted)
                source = opened.extractfile(info)
                assert source is not None
                found[info.name] = _copy(info.name, source, into / str(len(found)), info.size)
                if len(found) == len(wanted):
                    break  # the rest is not read, so that it can do no harm
    return found


def _check_name(name: str) -> None:
    """Refuse archives with members outside their folder: these are never an accident."""
    parts = name.replace("\\", "/").split("/")
    if name.startswith(("/", "\\")) or ".." in parts or ":" in parts[0] or "\0" in name:
        raise BadModel(
            f"Every name inside the archive must stay in its folder, got {name!r}: the archive is"
            " refused."
        )


def _check_once(name: str, found: Mapping[str, Path]) -> None:
    if name in found:
        raise BadModel(f"The archive must hold {name} once, and holds it twice: it is refused.")


def _check_plain(name: str, is_plain: bool) -> None:
    if not is_plain:
        raise BadModel(
            f"{name} inside the archive must be a plain file, not a link, a device or encrypted: it"
            " is refused."
        )


def _check_size(name: str, size: int, wanted: Mapping[str, int]) -> None:
    if size != wanted[name]:
        raise BadModel(
            f"{name} inside the archive must have {wanted[name]} bytes, but declares {size}. It is"
            " not read."
        )


def _copy(name: str, source: IO[bytes], target: Path, size: int) -> Path:
    """Write exactly `size` bytes of `source` to `target`."""
    left = size
    with target.open("xb") as file:
        while left > 0 and (chunk := source.read(min(CHUNK, left))):
            file.write(chunk)
            left -= len(chunk)
    if left > 0 or source.read(1):
        raise BadModel(
            f"{name} inside the archive declares {size} bytes, but has"
            f" {'less' if left else 'more'}."
        )
    return target


class _Bounded:
    """A file that may be read up to `limit` bytes: a header declares its own length and is read
    into memory.
    """

    def __init__(self, source: gzip.GzipFile, limit: int):
        self._source, self._left = source, limit

    def read(self, size: int) -> bytes:
        chunk = self._source.read(size)
        self._left -= len(chunk)
        if self._left < 0:
            raise BadModel("The archive unpacks to far more than its known size. It is refused.")
        return chunk
