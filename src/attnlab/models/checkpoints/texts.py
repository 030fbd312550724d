"""Tokenizers by their file: tokenizer.json through the library `tokenizers`, llama2.c's tokenizer.bin through our own reading.

A tokenizer.json holds regular expressions and tables of strangers. The library may loop for ever in them, or panic. So it runs in
a process of its own, with a time limit. Starting one takes a fifth of a second; it answers until the tokenizer is forgotten.
"""

from __future__ import annotations

import importlib.util
import json
import os
import queue
import subprocess
import sys
import threading
import weakref
from pathlib import Path
from typing import Any

from attnlab.checks import MissingLibrary
from attnlab.models.checkpoints.files import LONGEST_JSON, must_be_plain_file
from attnlab.models.checkpoints.model import INSTALL, Tokenizer
from attnlab.models.checkpoints.record import BadModel

SECONDS = 20.0
"""How long reading a tokenizer, or cutting one text, may take. A text of a million letters takes about one."""

MEMORY = 4 << 30
"""How many bytes it may use: a normalizer can make a text a million times longer."""


def open_tokenizer(path: Path, vocabulary: int) -> Tokenizer:
    """What turns a text into (ids, words)."""
    if path.suffix == ".bin":
        from attnlab.models.checkpoints.llama2c import Pieces

        return Pieces(path, vocabulary)
    if importlib.util.find_spec("tokenizers") is None:
        raise MissingLibrary(f"Cutting a text into tokens needs the library tokenizers: {INSTALL}")
    if must_be_plain_file(path) > LONGEST_JSON:
        raise BadModel(f"{path.name} must not be longer than {LONGEST_JSON:,} bytes, but has {path.stat().st_size:,}.")
    return LibraryTokenizer(path)


class LibraryTokenizer:
    """A tokenizer.json, read by the library in a process of its own."""

    def __init__(self, path: Path):
        """Start the process, so that a file that is no tokenizer is refused at once."""
        self.path = path
        self._lock = threading.Lock()
        self._child: _Child | None = _Child(path)
        _TOKENIZERS.add(self)

    def __call__(self, text: str, special: bool = True) -> tuple[list[int], list[str]]:
        """Ids and words, with the tokens that the model adds at the ends unless special is false."""
        lone = next((letter for letter in text if "\ud800" <= letter <= "\udfff"), None)
        if lone is not None:
            raise BadModel(
                f"A text must be made of whole characters, but this one holds half of one, U+{ord(lone):04X}, which UTF-8 cannot "
                "hold. It may have been read with a wrong encoding: remove it."
            )
        with self._lock:                        # threads take turns: replies come in the order of the questions
            if self._child is None or not self._child.is_alive:
                self._child = _Child(self.path)
            try:
                reply = self._child.ask({"text": text, "special": special})
            except BaseException:               # also Ctrl-C: an answer to come would be taken for that to the next question
                self._child.end()
                self._child = None
                raise
        if "error" in reply:
            raise BadModel(f"{self.path.name} cannot cut this text into tokens: {_shortened(reply['error'])} Give another text.")
        return reply["ids"], reply["words"]

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy in another process starts a process of its own."""
        return LibraryTokenizer, (self.path,)


_TOKENIZERS: weakref.WeakSet[LibraryTokenizer] = weakref.WeakSet()
_OF_PARENTS: list[_Child | None] = []
"""After a fork: what belongs to the parent. Closing it could wait for a thread that exists in the parent only."""


def _forget_threads() -> None:
    """After a fork the child has none of its parent's threads, and one of them may have held a lock."""
    for tokenizer in list(_TOKENIZERS):
        _OF_PARENTS.append(tokenizer._child)
        tokenizer._child, tokenizer._lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)


class _Child:
    """The process that has the library, and a thread that waits for its lines."""

    def __init__(self, path: Path):
        self.path, self.owner = path, os.getpid()
        program = Path(__file__).with_name("tokenizer_child.py")
        self._process = subprocess.Popen(
            [sys.executable, "-I", str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True, encoding="ascii",
        )
        self._replies: queue.SimpleQueue[str] = queue.SimpleQueue()
        reader = threading.Thread(target=_pass_on, args=(self._process.stdout, self._replies), daemon=True)
        reader.start()
        self.end = weakref.finalize(self, _end, self._process, reader, self.owner)
        try:
            reply = self.ask({"path": sys.path, "file": str(path.resolve()), "seconds": SECONDS, "memory": MEMORY})
            if "error" in reply:
                raise BadModel(
                    f"{path.name} must be a tokenizer of the library tokenizers, but cannot be read: {_shortened(reply['error'])}"
                )
        except BaseException:
            self.end()
            raise

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        """The reply to one question, within the time limit."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(question) + "\n")
            self._process.stdin.flush()
            line = self._replies.get(timeout=SECONDS + 5.0)
        except (queue.Empty, OSError):
            line = ""
        if line:
            reply: dict[str, Any] = json.loads(line)
            return reply
        raise BadModel(
            f"{self.path.name} must cut a text within {SECONDS:g} seconds and {MEMORY >> 30} GB, but the library tokenizers "
            "broke down or did not come back. A regular expression in the file may have no end. Give a shorter text, or "
            "another tokenizer.json."
        )


def _pass_on(stream: Any, replies: queue.SimpleQueue[str]) -> None:
    for line in stream:
        replies.put(line)
    replies.put("")                             # it has ended


def _end(process: subprocess.Popen[str], reader: threading.Thread, owner: int) -> None:
    if owner != os.getpid():                    # the parent's, after a fork
        return
    process.kill()
    process.wait()
    reader.join()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            try:
                stream.close()
            except OSError:                     # what was still to be written has nobody to go to
                pass


def _shortened(error: str) -> str:
    words = error.removeprefix("Exception: ").splitlines()[0][:160].rstrip(".") if error.strip() else "no reason was given"
    return words + "."
