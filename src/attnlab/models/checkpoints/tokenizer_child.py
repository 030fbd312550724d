"""The child process of `texts.py`: it reads one tokenizer.json and cuts texts, with one line of
JSON per text.

It imports nothing from attnlab. If the library does not return, the alarm ends it, even after the
parent has ended.
"""

from __future__ import annotations

import json
import signal
import sys
from typing import Any


def main() -> None:
    """Answer the lines on standard input until it is closed. The first line gives the module path,
    the file and the limits.
    """
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl-C is meant for the parent, which ends this process if necessary
    first = json.loads(sys.stdin.readline())
    sys.path[:] = first["path"]
    seconds = first["seconds"]
    _limit_memory(first["memory"])
    library = answer(lambda: _open(first["file"], first["content"]), seconds)
    for line in sys.stdin:
        asked = json.loads(line)
        answer(lambda asked=asked: _cut(library, asked["text"], asked["special"]), seconds)


def answer(function: Any, seconds: float) -> Any:
    """Print the result of `function` as JSON, or its error, and return the result. A panic is a
    BaseException.
    """
    try:
        _set_alarm(seconds)
        result, reply = function()
        _set_alarm(0)
    except BaseException as error:
        result, reply = None, {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(reply), flush=True)
    return result


def _open(file: str, content: str | None) -> tuple[Any, dict[str, Any]]:
    from tokenizers import Tokenizer

    library = Tokenizer.from_file(file) if content is None else Tokenizer.from_str(content)
    library.no_padding()  # files of sentence encoders ask for both; we use the text unchanged
    library.no_truncation()
    return library, {}


def _cut(library: Any, text: str, special: bool) -> tuple[None, dict[str, Any]]:
    encoding = library.encode(text, add_special_tokens=special)
    return None, {"ids": encoding.ids, "words": encoding.tokens}


def _set_alarm(seconds: float) -> None:
    """Let the system end this process after so many seconds; 0: never. On Windows, without alarms,
    only the parent ends it.
    """
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)


def _limit_memory(most: int) -> None:
    try:
        import resource
    except ImportError:  # Windows
        return
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(
        resource.RLIMIT_AS, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard)
    )


if __name__ == "__main__":
    main()
