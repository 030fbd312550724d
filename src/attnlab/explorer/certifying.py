"""Compute a certified limit in a thread, so that a notebook stays usable. It reports progress and
can be cancelled.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from attnlab.progress import Cancelled, Progress

PAUSE = 0.2
"""Seconds between two messages about the progress."""


class Certifier:
    """One computation at a time.

    tell     is called in the thread with a table {kind, ...}: "progress" with fraction and doing,
             "done" with a sentence
    """

    def __init__(self, tell: Callable[[dict[str, Any]], None]):
        self._tell = tell
        self._lock = threading.Lock()
        self._progress: Progress | None = None
        self._thread: threading.Thread | None = None

    @property
    def is_busy(self) -> bool:
        """Whether a computation is running."""
        return self._progress is not None

    def start(self, work: Callable[[Progress], str]) -> None:
        """Do work(progress), which returns a sentence, in a thread. If a computation is already
        running, do nothing.
        """
        with self._lock:
            if self._progress is not None:
                return
            said = 0.0

            def show(fraction: float, doing: str) -> None:
                nonlocal said
                if (now := time.monotonic()) - said > PAUSE:
                    said = now
                    self._tell({"kind": "progress", "fraction": fraction, "doing": doing})

            self._progress = Progress(show)
            self._thread = threading.Thread(
                target=self._work, args=(work, self._progress), name="attnlab certify", daemon=True
            )
            self._thread.start()

    def cancel(self) -> None:
        """Ask the computation to stop. It sends "done" when it has stopped."""
        progress = self._progress
        if progress is not None:
            progress.cancel()

    def wait(self, seconds: float | None = None) -> None:
        """Wait until no computation is running."""
        thread = self._thread
        if thread is not None:
            thread.join(seconds)

    def _work(self, work: Callable[[Progress], str], progress: Progress) -> None:
        try:
            sentence = work(progress)
        except (Cancelled, KeyboardInterrupt):
            sentence = "Cancelled."
        except Exception as problem:  # any exception: the reader must not wait forever
            sentence = str(problem) or type(problem).__name__
        with self._lock:
            self._progress = None
        self._tell({"kind": "done", "sentence": sentence})
