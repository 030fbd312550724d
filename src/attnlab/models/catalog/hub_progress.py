"""Show a download of huggingface_hub through attnlab's own argument `progress`: the bytes so far."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, TypeVar

from attnlab.progress import Cancelled, Progress

EVERY = 0.2
"""Seconds between two reports."""

Found = TypeVar("Found")


def with_progress(download: Callable[..., Found], progress: Progress, name: str) -> Found:
    """Return download(tqdm_class=...), and report its bytes in this thread while it works.
    name: the repository, for the words.

    The library fills its bars from several threads. So they only count, and a cancelled download
    stops at the next piece of a file.
    """
    counts = Counts()
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(download, tqdm_class=counts.make_class())
        try:
            while not future.done():
                wait([future], timeout=EVERY)
                progress(*counts.report(name))
        except BaseException:
            counts.is_stopped.set()
            raise
    return future.result()


class Counts:
    """What the bars of one download have counted."""

    def __init__(self) -> None:
        self.bars: list[Any] = []
        self.is_stopped = threading.Event()

    def make_class(self) -> type:
        """Return a class of bars, as the library asks for, that draw nothing."""
        from tqdm.auto import tqdm

        counts = self

        # tqdm has no types, where its stubs are not installed
        class Counting(tqdm):  # type: ignore[misc,type-arg,unused-ignore]
            def __init__(self, *args: Any, **options: Any):
                self.kind = options.get("unit", "it")
                options.pop("name", None)
                super().__init__(*args, **{**options, "disable": True})
                counts.bars.append(self)

            def update(self, n: float | None = 1) -> None:
                if counts.is_stopped.is_set():
                    raise Cancelled("The download was cancelled.")
                self.n += n or 0

        return Counting

    def report(self, name: str) -> tuple[float, str]:
        """Return the fraction that is done, and words for it.

        The library has two bars of bytes with one total, one for the network and one for the disk.
        Its older versions have only one bar, of files.
        """
        bars = [bar for bar in list(self.bars) if bar.total]
        for kind, words in (("B", "{:.1f} of {:.1f} MB"), ("it", "{:.0f} of {:.0f} files")):
            found = [bar for bar in bars if bar.kind == kind]
            if found:
                size = 1e6 if kind == "B" else 1
                done, total = (max(getattr(bar, of) for bar in found) for of in ("n", "total"))
                return min(done / total, 1.0), f"{name}, {words.format(done / size, total / size)}"
        return 0.0, name
