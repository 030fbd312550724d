"""A local worker: tasks come in on standard input and rows go out on standard output, one line of
JSON each.

The first line is the head of the sweep, answered by {"ready": true} or {"problem": sentence}. Then
each {"cells": ...} is answered by {"rows": ...}, in the same order. When standard input ends, the
process ends at once, also in the middle of compiled code: so no worker survives the process that
started it, however that ended. A worker opens no file of the sweep.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
from typing import Any, BinaryIO


def main() -> None:
    """Serve until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started this one
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # output of a user's observable must not mix with the answers
    messages: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(sys.stdin.buffer, messages), daemon=True).start()
    try:
        serve(messages, answers)
    except BrokenPipeError:  # the other end of the pipe is closed
        os._exit(0)


def serve(messages: queue.SimpleQueue[Any], answers: BinaryIO) -> None:
    """Answer each message."""
    from attnlab.sweep.compute import Computer, check_worker
    from attnlab.sweep.engines import Task

    head = messages.get()
    compute = Computer(head)
    problem = check_worker(head, head["first"])
    _say(answers, {"problem": problem} if problem else {"ready": True})
    while True:
        task = Task.from_json(messages.get())
        _say(answers, {"rows": [row.to_json() for row in compute(task)]})


def _listen(lines: BinaryIO, messages: queue.SimpleQueue[Any]) -> None:
    """Read messages as they arrive, so that the sender never waits. End the process when the pipe
    closes.
    """
    try:
        for line in lines:
            messages.put(json.loads(line))
    finally:
        os._exit(0)


def _say(answers: BinaryIO, message: dict[str, Any]) -> None:
    answers.write(json.dumps(message, allow_nan=False).encode() + b"\n")
    answers.flush()


if __name__ == "__main__":
    main()
