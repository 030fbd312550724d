"""Tokenizers by their file: tokenizer.json with the library `tokenizers`, that of a GGUF file, and
llama2.c's tokenizer.bin with our own reader.

A tokenizer.json holds untrusted regular expressions and tables. The library may loop forever in
them, or panic. So it runs in a separate process with a time limit. Starting one takes 0.2 seconds;
it answers until the tokenizer is deleted.
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
from attnlab.models.checkpoints.gguf_file import GgufFile, is_gguf
from attnlab.models.checkpoints.gguf_tokens import tokenizer_of
from attnlab.models.checkpoints.joining import must_be_whole_characters
from attnlab.models.checkpoints.model import INSTALL, Tokenizer
from attnlab.models.checkpoints.record import BadModel

SECONDS = 20.0
"""The most seconds for reading a tokenizer or cutting one text. A text of a million letters takes
about one.
"""

MEMORY = 4 << 30
"""The most bytes of memory: a normalizer can make a text a million times longer."""


def open_tokenizer(path: Path, vocabulary: int) -> Tokenizer:
    """Return the function from a text to (ids, words)."""
    if path.suffix == ".bin":
        from attnlab.models.checkpoints.llama2c import Pieces

        return Pieces(path, vocabulary)
    content = None
    if is_gguf(path):
        found = tokenizer_of(GgufFile(path).fields)
        if not isinstance(found, str):
            return found
        content = found
    if importlib.util.find_spec("tokenizers") is None:
        raise MissingLibrary(f"Cutting a text into tokens needs the library tokenizers: {INSTALL}")
    if content is not None:
        return LibraryTokenizer(path, content)
    if must_be_plain_file(path) > LONGEST_JSON:
        raise BadModel(
            f"{path.name} must not be longer than {LONGEST_JSON:,} bytes, but has"
            f" {path.stat().st_size:,}."
        )
    return LibraryTokenizer(path)


class LibraryTokenizer:
    """A tokenizer.json, or the text of one that another file holds. The library reads it in a
    separate process.
    """

    def __init__(self, path: Path, content: str | None = None):
        """Start the process, so that a file that is not a tokenizer is refused at once."""
        self.path, self._content = path, content
        self._lock = threading.Lock()
        self._child: _Child | None = _Child(path, content)
        _TOKENIZERS.add(self)

    def __call__(self, text: str, special: bool = True) -> tuple[list[int], list[str]]:
        """Return ids and words; with special, also the tokens that the model adds at the ends."""
        must_be_whole_characters(text)
        with self._lock:  # one thread at a time: replies come in the order of the questions
            if self._child is None or not self._child.is_alive:
                self._child = _Child(self.path, self._content)
            try:
                reply = self._child.ask({"text": text, "special": special})
            except (
                BaseException
            ):  # also Ctrl-C: a late answer would be read as that to the next question
                self._child.end()
                self._child = None
                raise
        if "error" in reply:
            reason = _shorten_error(reply["error"])
            raise BadModel(
                f"{self.path.name} cannot cut this text into tokens: {reason} Give another text."
            )
        return reply["ids"], reply["words"]

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy in another process starts its own process."""
        return LibraryTokenizer, (self.path, self._content)


_TOKENIZERS: weakref.WeakSet[LibraryTokenizer] = weakref.WeakSet()
_OF_PARENTS: list[_Child | None] = []
"""Objects of the parent after a fork. Closing them could wait for a thread that exists only in the
parent.
"""


def _forget_threads() -> None:
    """Drop objects of the parent after a fork: the child has no threads of its parent, and one may
    have held a lock.
    """
    for tokenizer in list(_TOKENIZERS):
        _OF_PARENTS.append(tokenizer._child)
        tokenizer._child, tokenizer._lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)


class _Child:
    """The process that has the library, and a thread that waits for its lines."""

    def __init__(self, path: Path, content: str | None):
        self.path, self.owner = path, os.getpid()
        program = Path(__file__).with_name("tokenizer_child.py")
        self._process = subprocess.Popen(
            [sys.executable, "-I", str(program)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="ascii",
        )
        self._replies: queue.SimpleQueue[str] = queue.SimpleQueue()
        reader = threading.Thread(
            target=_pass_on, args=(self._process.stdout, self._replies), daemon=True
        )
        reader.start()
        self.end = weakref.finalize(self, _end, self._process, reader, self.owner)
        try:
            reply = self.ask(
                {
                    "path": sys.path,
                    "file": str(path.resolve()),
                    "content": content,
                    "seconds": SECONDS,
                    "memory": MEMORY,
                }
            )
            if "error" in reply:
                raise BadModel(
                    f"{path.name} must be a tokenizer of the library tokenizers, but cannot be"
                    f" read: {_shorten_error(reply['error'])}"
                )
        except BaseException:
            self.end()
            raise

    @property
    def is_alive(self) -> bool:
        """Whether the process is running."""
        return self._process.poll() is None

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        """Return the reply to one question, within the time limit."""
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
            f"{self.path.name} must cut a text within {SECONDS:g} seconds and {MEMORY >> 30} GB,"
            " but the library tokenizers crashed or did not return. A regular expression in the"
            " file may loop forever. Give a shorter text, or another tokenizer.json."
        )


def _pass_on(stream: Any, replies: queue.SimpleQueue[str]) -> None:
    for line in stream:
        replies.put(line)
    replies.put("")  # it has ended


def _end(process: subprocess.Popen[str], reader: threading.Thread, owner: int) -> None:
    if owner != os.getpid():  # the parent's, after a fork
        return
    process.kill()
    process.wait()
    reader.join()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            try:
                stream.close()
            except OSError:  # the process is gone: it cannot read the rest
                pass


def _shorten_error(error: str) -> str:
    words = (
        error.removeprefix("Exception: ").splitlines()[0][:160].rstrip(".")
        if error.strip()
        else "no reason was given"
    )
    return words + "."
