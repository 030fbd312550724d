"""Writing files: everything is written completely under a temporary name, then renamed. Imports nothing of ours.

A reader sees the old file or the new one, never a part. A full disk is one sentence that names the file. A process that
is killed leaves its temporary file behind, and the next write into that folder removes it.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import platform
import re
import shutil
import stat
import time
import uuid
from collections.abc import Iterator
from functools import cache
from pathlib import Path

TEMPORARY = re.compile(r"\.attnlab-([0-9a-f]{8})-(\d+)-(\d+)-[0-9a-f]{8}(\.\w{1,8})?")
"""The name of a temporary file or folder: machine, process, start of the process, a random part, the suffix of its target."""

FOREIGN_AGE = 7 * 24 * 3600.0
"""Seconds after which a temporary file of another machine is taken for a leftover: its processes cannot be asked about."""


FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class CannotWrite(OSError):
    """A file that cannot be written. The message names it and says why."""


class Damaged(ValueError):
    """Content that does not have the digest that it was stored with."""


def write_bytes(path: str | os.PathLike[str], content: bytes | memoryview) -> None:
    """Write a file; an existing file is replaced whole or not at all."""
    with replace_file(path) as temporary, temporary.open("wb") as file:
        file.write(content)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file in UTF-8; line ends stay as they are. An existing file is replaced whole or not at all."""
    write_bytes(path, text.encode())


@contextlib.contextmanager
def replace_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield the name of an empty temporary file, with the suffix of `path`; after the block it becomes `path`.

    If the block fails, the temporary file is removed and `path` stays as it was. A link is followed: the file behind it is
    replaced, and the link stays. A new file has the permissions of any new file, and a replaced one keeps its own.
    An OSError becomes CannotWrite, whose message names `path`.
    """
    named = Path(path)
    temporary = None
    try:
        target = Path(os.path.realpath(named))
        kept_mode = _mode_to_keep(target)
        remove_leftovers(target.parent)
        temporary = temporary_name(target)
        _create(temporary, kept_mode)
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())             # some disks say that they are full only now
        if kept_mode is not None:
            temporary.chmod(kept_mode)
        os.replace(temporary, target)
    except CannotWrite:
        raise
    except OSError as problem:
        raise cannot_write(named, problem.strerror or str(problem), problem.errno in FULL) from problem
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)


def cannot_write(path: Path, reason: str, is_full: bool = True) -> CannotWrite:
    """Return the error for a file that cannot be written, for this reason."""
    words = " ".join(reason.split()).rstrip(".") or "the folder does not take it"
    return CannotWrite(f"{path} cannot be written ({words}): {'make room there, or ' if is_full else ''}choose another place.")


@contextlib.contextmanager
def temporary_folder(beside: Path) -> Iterator[Path]:
    """Yield a new folder in the folder `beside`, for what is renamed when complete; it is removed after the block."""
    remove_leftovers(beside)
    folder = temporary_name(beside / "folder")
    folder.mkdir(mode=0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def temporary_name(target: Path) -> Path:
    """Return a new name beside `target`, which says whose it is. It has the suffix of `target`, which encoders go by."""
    suffix = target.suffix.lower() if re.fullmatch(r"\.\w{1,8}", target.suffix) else ""
    owner = os.getpid()
    return target.with_name(f".attnlab-{_machine()}-{owner}-{_started(owner)}-{uuid.uuid4().hex[:8]}{suffix}")


def remove_leftovers(folder: Path) -> None:
    """Remove the temporary files and folders in `folder` whose process is dead."""
    try:
        entries = [entry for entry in os.scandir(folder) if entry.name.startswith(".attnlab-")]
    except OSError:
        return
    for entry in entries:
        if _is_leftover(entry):
            with contextlib.suppress(OSError):
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path, ignore_errors=True)
                else:
                    os.unlink(entry.path)


def with_digest(content: bytes) -> bytes:
    """Return the content with its SHA-256 after it, for `without_digest` to check."""
    return content + hashlib.sha256(content).digest()


def without_digest(stored: bytes) -> bytes:
    """Return the content that `with_digest` was given, or raise Damaged."""
    content, digest = stored[:-32], stored[-32:]
    if hashlib.sha256(content).digest() != digest:
        raise Damaged("The content does not have the digest that it was stored with.")
    return content


def _mode_to_keep(target: Path) -> int | None:
    """The permissions of the file that is replaced, None where there is none; what is no regular file is refused."""
    if not target.parent.is_dir():
        raise CannotWrite(f"There is no folder {target.parent}: make it first.")
    try:
        found = target.stat()
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(found.st_mode):
        raise CannotWrite(f"{target} is a folder: give the name of a file in it.")
    if not stat.S_ISREG(found.st_mode):             # renaming would replace a device by a file
        raise CannotWrite(f"{target} is a device or a pipe: give the name of a file.")
    return stat.S_IMODE(found.st_mode)


def _create(temporary: Path, kept_mode: int | None) -> None:
    """Make the empty file. What replaces a private file is private from the first byte on."""
    mode = 0o666 if kept_mode is None else kept_mode & 0o777 | stat.S_IWUSR | stat.S_IRUSR
    os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))


def _is_leftover(entry: os.DirEntry[str]) -> bool:
    """Whether a temporary file's process is dead. Where that cannot be known, it must be old."""
    match = TEMPORARY.fullmatch(entry.name)
    if match is None:
        return False
    machine, owner, started = match[1], int(match[2]), int(match[3])
    if machine == _machine() and os.name == "posix":
        return not _is_running(owner, started)
    with contextlib.suppress(OSError):
        return time.time() - entry.stat(follow_symlinks=False).st_mtime > FOREIGN_AGE
    return False


def _is_running(process: int, started: int) -> bool:
    """Whether the process that began at `started` still runs; another one may have its number by now."""
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        pass                                        # it runs, and belongs to somebody else
    return _started(process) in (started, 0) or started == 0


def _started(process: int) -> int:
    """When a process began, in ticks since the machine did; -1 for one that has ended, 0 where the system does not tell."""
    try:
        words = Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return 0
    return -1 if words[0] in (b"Z", b"X") else int(words[19])


@cache
def _machine() -> str:
    """Eight digits for this machine: its name and, in a container, its own numbering of processes."""
    numbering = ""
    with contextlib.suppress(OSError):
        numbering = os.readlink("/proc/self/ns/pid")
    return hashlib.sha256(f"{platform.node()} {numbering}".encode()).hexdigest()[:8]
