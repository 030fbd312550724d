"""A process that tries cases of a corpus, one after the other: python worker.py MODULE FOLDER,
numbers on standard input.

The answer to a number is a line of JSON, {"outcome": ..., "detail": ...}. The parent process judges
silence and death.
"""

from __future__ import annotations

import faulthandler
import importlib
import json
import os
import random
import resource
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

MEMORY = 8 << 30
"""Bytes of address space: what would fill the machine is a MemoryError here."""

LONGEST = 1000
"""Characters of a message that are still one sentence for a person."""


class Fault(Exception):
    """What must not happen, and which of them it is."""

    def __init__(self, outcome: str, detail: str):
        super().__init__(detail)
        self.outcome = outcome


def try_case(
    attempt: Callable[[random.Random, Path], None], number: int, folder: Path
) -> dict[str, str]:
    """What one case comes to: "result", "refused", or a fault; a warning is one where nothing else
    is wrong.
    """
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        found = _try(attempt, number, folder)
    if warned and found["outcome"] in ("result", "refused"):
        first = warned[0]
        said = (
            f"{first.category.__name__}: {str(first.message)[:200]} at"
            f" {Path(first.filename).name}:{first.lineno}"
        )
        return {
            "outcome": "warning",
            "detail": f"{said}, then {found['outcome']} {found['detail'][:100]}",
        }
    return found


def _try(
    attempt: Callable[[random.Random, Path], None], number: int, folder: Path
) -> dict[str, str]:
    from attnlab.registry import UnknownName
    from attnlab.types import RunFailed

    try:
        attempt(random.Random(number), folder)
    except Fault as fault:
        return {"outcome": fault.outcome, "detail": str(fault)}
    except (
        ValueError,
        OSError,
        UnknownName,
        OverflowError,
        RunFailed,
    ) as problem:  # what the command line guards against
        return judge_words(problem)
    except BaseException as problem:  # a panic inside a library of Rust is no Exception
        return {"outcome": "traceback", "detail": describe(problem)}
    return {"outcome": "result", "detail": ""}


def judge_words(problem: Exception) -> dict[str, str]:
    """Refused, where the message is a sentence for a person."""
    message = str(problem)
    is_sentence = (
        10 <= len(message) <= LONGEST and "\n" not in message.strip() and "Traceback" not in message
    )
    return {
        "outcome": "refused" if is_sentence else "words",
        "detail": f"{type(problem).__name__}: {message[:300]}",
    }


def describe(problem: BaseException) -> str:
    """The class and the message of an exception, and the last line of ours that it came through."""
    ours = [
        frame
        for frame in traceback.extract_tb(problem.__traceback__)
        if "attnlab" in frame.filename
    ]
    place = (
        f" at {Path(ours[-1].filename).name}:{ours[-1].lineno} ({ours[-1].name})" if ours else ""
    )
    return f"{type(problem).__name__}: {str(problem)[:200]}{place}"


def main() -> None:
    """Serve until standard input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever is printed goes elsewhere
    faulthandler.enable()
    here = Path(__file__).parent
    sys.path[:0] = [str(here), str(here.parent / "truth")]
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    sys.modules["worker"] = sys.modules["__main__"]  # the corpus raises this very Fault
    corpus: Any = importlib.import_module(sys.argv[1])
    folder = Path(sys.argv[2])
    corpus.prepare(folder)
    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(try_case(corpus.attempt, int(line), folder)), file=answers, flush=True)


if __name__ == "__main__":
    main()
