"""Allow one process per file or folder, with a lock of the operating system that ends with the
process.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

fcntl: Any
try:
    import fcntl
except ImportError:  # missing on some platforms, which then have no protection
    fcntl = None


class InUse(ValueError):
    """Another process is using this file or folder now."""


@contextlib.contextmanager
def hold_lock(lock: Path, doing: str, advice: str = "wait for it, or stop it") -> Iterator[None]:
    """Hold the lock for as long as the context lasts.

    Where another process holds it, raise InUse with the number of that process, what it is `doing`,
    and the `advice`. Processes that this one starts do not inherit the lock.
    """
    if fcntl is None:
        yield
        return
    held = _take(lock, doing, advice)
    try:
        yield
    finally:
        lock.unlink(
            missing_ok=True
        )  # while it is held, so that a process that opened it sees that it is gone
        os.close(held)


def _take(lock: Path, doing: str, advice: str) -> int:
    """Lock a file and return its descriptor. What is in the file is for people only: it may be old,
    empty or nonsense.
    """
    while True:
        if os.path.lexists(lock) and not stat.S_ISREG(os.lstat(lock).st_mode):
            raise InUse(
                f"{lock} is not a regular file, but attnlab needs this name for its lock."
                " Remove it."
            )
        file = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NONBLOCK, 0o666)
        try:
            _lock(file)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file), os.stat(lock)):
                    os.ftruncate(file, 0)
                    os.write(file, str(os.getpid()).encode())
                    return file
        except BlockingIOError:
            owner = os.read(file, 20).decode(errors="replace")
            os.close(file)
            who = f"Process {owner}" if owner.isdecimal() else "Another process"
            raise InUse(f"{who} is {doing} now: {advice}.") from None
        os.close(file)  # the one who held it has just removed it: begin again


def _lock(file: int) -> None:
    """Lock an open file; BlockingIOError where another process holds the lock."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:  # a file system without locks
        pass
