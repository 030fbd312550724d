"""Write files: each is written completely under a temporary name, then renamed. Imports nothing
from attnlab.

A reader sees the old file or the new one, never a part. A full disk gives one sentence that names
the file. A process that is killed leaves its temporary file behind, and the next write into that
folder removes it.
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
"""The name of a temporary file or folder: machine, process, start of the process, a random part,
the suffix of its target.
"""

FOREIGN_AGE = 7 * 24 * 3600.0
"""Seconds after which a temporary file of another machine counts as a leftover: its processes are
unknown here.
"""


FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class CannotWrite(OSError):
    """A file that cannot be written. The message names it and says why."""


class Damaged(ValueError):
    """Raised for content that does not match its stored digest."""


def write_bytes(path: str | os.PathLike[str], content: bytes | memoryview) -> None:
    """Write a file. An existing file is replaced completely or not at all."""
    with replace_file(path) as temporary, temporary.open("wb") as file:
        file.write(content)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file in UTF-8 with unchanged line ends. An existing file is replaced completely
    or not at all.
    """
    write_bytes(path, text.encode())


@contextlib.contextmanager
def replace_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield the name of an empty temporary file, with the suffix of `path`. After the block it
    becomes `path`.

    If the block fails, the temporary file is removed and `path` is unchanged. A link is followed:
    its target is replaced, and the link stays. A new file has the usual permissions, and a replaced
    one keeps its own. An OSError becomes CannotWrite, whose message names `path`.
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
            os.fsync(file.fileno())  # some disks report only now that they are full
        if kept_mode is not None:
            temporary.chmod(kept_mode)
        os.replace(temporary, target)
    except CannotWrite:
        raise
    except OSError as problem:
        raise cannot_write(
            named, problem.strerror or str(problem), problem.errno in FULL
        ) from problem
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)


def cannot_write(path: Path, reason: str, is_full: bool = True) -> CannotWrite:
    """Return the error for a file that cannot be written, for this reason."""
    words = " ".join(reason.split()).rstrip(".") or "the folder does not take it"
    return CannotWrite(
        f"{path} cannot be written ({words}): {'make room there, or ' if is_full else ''}choose"
        " another folder."
    )


@contextlib.contextmanager
def temporary_folder(beside: Path) -> Iterator[Path]:
    """Yield a new folder in the folder `beside`, for files that are renamed when complete. It is
    removed after the block.
    """
    remove_leftovers(beside)
    folder = temporary_name(beside / "folder")
    folder.mkdir(mode=0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def temporary_name(target: Path) -> Path:
    """Return a new name next to `target`, which contains its process. It has the suffix of
    `target`, which encoders need.
    """
    suffix = target.suffix.lower() if re.fullmatch(r"\.\w{1,8}", target.suffix) else ""
    owner = os.getpid()
    return target.with_name(
        f".attnlab-{_machine()}-{owner}-{_started(owner)}-{uuid.uuid4().hex[:8]}{suffix}"
    )


def remove_leftovers(folder: Path) -> None:
    """Remove the temporary files and folders in `folder` whose process has ended."""
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
    """Return the content followed by its SHA-256, which `without_digest` checks."""
    return content + hashlib.sha256(content).digest()


def without_digest(stored: bytes) -> bytes:
    """Return the original content of `with_digest`, or raise Damaged."""
    content, digest = stored[:-32], stored[-32:]
    if hashlib.sha256(content).digest() != digest:
        raise Damaged("The content does not match its stored digest.")
    return content


def _mode_to_keep(target: Path) -> int | None:
    """Return the permissions of the file to replace, or None. Refuse anything but a regular
    file.
    """
    if not target.parent.is_dir():
        raise CannotWrite(f"There is no folder {target.parent}. Create it first.")
    try:
        found = target.stat()
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(found.st_mode):
        raise CannotWrite(f"{target} is a folder: give the name of a file in it.")
    if not stat.S_ISREG(found.st_mode):  # renaming would replace a device by a file
        raise CannotWrite(f"{target} is a device or a pipe: give the name of a file.")
    return stat.S_IMODE(found.st_mode)


def _create(temporary: Path, kept_mode: int | None) -> None:
    """Create the empty file. The replacement of a private file is private from the first byte."""
    mode = 0o666 if kept_mode is None else kept_mode & 0o777 | stat.S_IWUSR | stat.S_IRUSR
    os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))


def _is_leftover(entry: os.DirEntry[str]) -> bool:
    """Whether the process of a temporary file has ended. If this is unknown, the file must be
    old.
    """
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
    """Whether the process that began at `started` still runs. Another process may have its number
    now.
    """
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        pass  # it runs and belongs to another user
    return _started(process) in (started, 0) or started == 0


def _started(process: int) -> int:
    """Return the start of a process in ticks since boot; -1 if it has ended, 0 if the system does
    not report it.
    """
    try:
        words = Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return 0
    return -1 if words[0] in (b"Z", b"X") else int(words[19])


@cache
def _machine() -> str:
    """Return eight digits for this machine: its name and, in a container, its namespace of
    processes.
    """
    numbering = ""
    with contextlib.suppress(OSError):
        numbering = os.readlink("/proc/self/ns/pid")
    return hashlib.sha256(f"{platform.node()} {numbering}".encode()).hexdigest()[:8]
