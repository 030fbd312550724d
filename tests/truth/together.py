"""Threads that ask at the same moment."""

from __future__ import annotations

import threading


def ask_together(questions, timeout=300.0):
    """The answers of eight threads that ask at the same moment, an exception as its own answer; no
    thread may hang.
    """
    gate, answers = threading.Barrier(len(questions)), [None] * len(questions)

    def ask(number, question):
        gate.wait()
        try:
            answers[number] = question()
        except Exception as problem:
            answers[number] = problem

    threads = [
        threading.Thread(target=ask, args=pair, daemon=True) for pair in enumerate(questions)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout)
        assert not thread.is_alive(), "a thread hangs"
    return answers
