"""The display of progress=True: a bar in a terminal or a notebook, occasional lines in a log
file.
"""

from __future__ import annotations

import atexit
import contextlib
import contextvars
import html
import os
import sys
import threading
import time
from typing import Any, Protocol

from attnlab.controls import escape_controls

DELAY = 0.5
"""Seconds until a bar appears. Shorter work shows no bar."""

PAUSE = 0.1
"""Seconds between two updates of a bar in a notebook, at least."""

FIRST_LINE, NEXT_LINE, LONGER = 2.0, 10.0, 1.2
"""In a log file: seconds until the first line, and between two lines. Each line is at least 1.2
times as late as the last.
"""


class Place(Protocol):
    """A display of progress."""

    def show(self, fraction: float, doing: str, seconds: float) -> None:
        """Show the fraction done, the present activity, and the time so far."""

    def close(self) -> None:
        """Remove or finish the display."""


class Bar:
    """The bar of progress=True. Its place is chosen when it appears."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._place: Place | None = None
        self._timer: threading.Timer | None = None
        self._began: float | None = None
        self._last = 0.0, ""

    def show(self, fraction: float, doing: str) -> None:
        """Show the fraction done and the present activity, beginning DELAY seconds after the first
        call.
        """
        with self._lock:
            self._last = fraction, doing
            if self._began is None:
                self._began = time.monotonic()
            if time.monotonic() - self._began >= DELAY:
                self._appear()
            elif self._timer is None:
                # a timer, because the next report may come late; with our context, by which a
                # notebook finds its cell
                self._timer = threading.Timer(
                    DELAY, contextvars.copy_context().run, (self._appear_late,)
                )
                self._timer.daemon = True
                self._timer.start()

    def hide(self) -> None:
        """Remove it until the next call of `show`."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            if self._place is not None:
                atexit.unregister(self.hide)
                self._place.close()
                self._place = None

    def finish(self) -> None:
        """Remove it, and begin again with the next call of `show`."""
        with self._lock:
            self.hide()
            self._began = None

    def _appear_late(self) -> None:
        with self._lock:
            if self._timer is not None:  # else it was hidden meanwhile
                self._appear()

    def _appear(self) -> None:
        assert self._began is not None
        if self._place is None:
            self._place = _find_place(self._began)
            if self._place is not None:
                atexit.register(
                    self.hide
                )  # a bar that is left open hides the cursor of the terminal
        if self._place is not None:
            fraction, doing = self._last
            self._place.show(fraction, doing, time.monotonic() - self._began)


def _find_place(began: float) -> Place | None:
    """Return the place for a bar, or None if there is none or another bar has the terminal."""
    if has_notebook():
        return Notebook()
    if not has_terminal():
        return Lines()
    if not Terminal.is_taken.acquire(blocking=False):
        return None
    try:
        return Terminal(began)
    except BaseException:  # Ctrl-C too: the next bar must be able to show
        Terminal.is_taken.release()
        raise


def has_terminal() -> bool:
    """Whether standard error is a terminal that can move its cursor."""
    is_open = sys.stderr is not None and not sys.stderr.closed
    return is_open and sys.stderr.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")


def has_notebook() -> bool:
    """Whether the code runs in a kernel, which shows objects in the cells of a notebook."""
    loaded = sys.modules.get("IPython")  # a kernel has loaded it
    shell = loaded.get_ipython() if loaded is not None else None
    return getattr(shell, "kernel", None) is not None


class Terminal:
    """A bar on standard error, drawn by rich, which is removed at the end. There is one at a
    time.
    """

    is_taken = threading.Lock()

    def __init__(self, began: float):
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        percent, words = (
            TextColumn("{task.percentage:>3.0f} %"),
            TextColumn("{task.description}", markup=False),
        )
        columns = (words, BarColumn(), percent, TimeElapsedColumn(), TimeRemainingColumn())
        self.shown = Progress(
            *columns, transient=True, console=Console(stderr=True), get_time=time.monotonic
        )
        self.task = self.shown.add_task("", total=1.0)
        self.shown.tasks[0].start_time = began

    def show(self, fraction: float, doing: str, seconds: float) -> None:
        """Move the bar; rich draws it ten times a second."""
        self.shown.update(
            self.task, completed=fraction, description=escape_controls(doing, keep="")
        )
        self.shown.start()  # the first time only

    def close(self) -> None:
        """Remove the bar."""
        try:
            self.shown.stop()
        finally:
            self.is_taken.release()


class Notebook:
    """A bar in the output of a cell, which is emptied at the end. It needs no widgets."""

    def __init__(self) -> None:
        self.handle: Any = None
        self.last = -PAUSE

    def show(self, fraction: float, doing: str, seconds: float) -> None:
        """Move the bar, unless it has just been moved."""
        if seconds - self.last < PAUSE:
            return
        self.last = seconds
        words, clock = escape_controls(doing, keep=""), format_clock(fraction, seconds)
        bar = (
            f'<progress value="{fraction:.4f}" max="1" style="width: 20em; vertical-align:'
            ' middle"></progress>'
        )
        self._display(
            f"<div>{bar} {fraction:.0%} {html.escape(words)} <small>{clock}</small></div>",
            f"{fraction:.0%} {words} {clock}",
        )

    def close(self) -> None:
        """Leave an empty output."""
        if self.handle is not None:
            self._display("", "")

    def _display(self, page: str, text: str) -> None:
        from IPython.display import display

        content = {"text/html": page, "text/plain": text}
        if self.handle is None:
            self.handle = display(content, raw=True, display_id=True)
        else:
            self.handle.update(content, raw=True)


class Lines:
    """Lines on standard error, if it is a file. There are few lines, because a file keeps all of
    them.
    """

    def __init__(self) -> None:
        self.next = FIRST_LINE

    def show(self, fraction: float, doing: str, seconds: float) -> None:
        """Write a line if it is time for one."""
        if seconds < self.next or sys.stderr is None:
            return
        self.next = max(seconds + NEXT_LINE, LONGER * seconds)
        line = (
            f"attnlab: {fraction:.0%} {escape_controls(doing, keep='')}"
            f" ({format_clock(fraction, seconds)})"
        )
        with contextlib.suppress(OSError, ValueError):  # a closed file: the work goes on
            print(line, file=sys.stderr, flush=True)

    def close(self) -> None:
        """Nothing is left to do: lines stay."""


def format_clock(fraction: float, seconds: float) -> str:
    """Format the time so far, and the time left at the same speed: '0:12, 0:28 left'."""
    left = seconds * (1.0 - fraction) / fraction if fraction > 0.02 else None
    return ", ".join(
        [_format_time(seconds), *([] if left is None else [f"{_format_time(left)} left"])]
    )


def _format_time(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
