"""The context that every stop gets: its progress, trained models that a thread downloads, and
figures as pictures.
"""

from __future__ import annotations

import contextvars
import importlib.util
import io
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from attnlab.models import BadModel, load
from attnlab.models.catalog import fetch
from attnlab.progress import Cancelled, Progress, as_progress
from attnlab.tour.record import Picture

LIBRARIES = ("safetensors", "tokenizers", "pandas")
"""Libraries of the extra `models` that the tour needs."""

MODELS = ("albert-chem", "minilm")
DPI = 130
PATIENCE = 300.0
"""The most seconds that a stop waits for a model."""

POLL = 0.1
"""Seconds between two checks whether a model has been downloaded."""


class Context:
    """The context that every stop gets."""

    def __init__(self, progress: Progress | None = None, models: Sequence[str] = MODELS):
        self.progress = as_progress(progress)  # of the stop
        self._downloads = {name: Download(name) for name in models}
        # a thread, so that Ctrl-C need not wait for a download; with our context, so that a cancel
        # ends it
        self._thread = threading.Thread(
            target=contextvars.copy_context().run, args=(self._fetch,), daemon=True
        )
        if has_libraries():
            self._thread.start()

    def report(self, what: str) -> None:
        """Report the present activity."""
        self.progress(self.progress.fraction, what)

    def _fetch(self) -> None:
        for download in self._downloads.values():
            download.run()

    def model(self, name: str) -> tuple[Any, str]:
        """Return (the trained model, "") or (None, why it is unavailable)."""
        if not has_libraries():
            return (
                None,
                "the libraries for trained models are not installed: pip install 'attnlab[models]'",
            )
        download = self._downloads[name]
        end = time.monotonic() + PATIENCE
        while not download.is_done.wait(POLL):
            self.report(f"waiting for {name}")
            if time.monotonic() > end:
                return None, f"{name} could not be fetched within {PATIENCE:.0f} seconds"
        if download.problem:
            return None, download.problem
        try:
            return load(name), ""
        except (BadModel, OSError) as problem:
            return None, str(problem)

    def draw(
        self,
        name: str,
        figure: Any,
        words: str,
        caption: str = "",
        is_narrow: bool = False,
        live: Mapping[str, Any] | None = None,
    ) -> Picture:
        """Return a figure as a Picture. live: the record of its viewer (explorer/embed.py)."""
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=DPI)
        return Picture(f"{name}.png", buffer.getvalue(), words, caption, is_narrow, live)


class Download:
    """The download of one known model; `problem` says why it failed, "" if it did not."""

    def __init__(self, name: str):
        self.name, self.problem, self.is_done = name, "", threading.Event()

    def run(self) -> None:
        """Fetch the model; every exception becomes `problem`."""
        try:
            fetch.fetch(self.name)
        except (
            Exception,
            Cancelled,
        ) as problem:  # the page shows it; a thread has no other way to report it
            self.problem = " ".join(str(problem).split()) or type(problem).__name__
        finally:
            self.is_done.set()


def has_libraries() -> bool:
    """Whether the extra `models` is installed."""
    return all(importlib.util.find_spec(name) is not None for name in LIBRARIES)
