"""Report the progress of long work, and cancel it: the argument `progress` of many functions.

    al.simulate(weights, x0, progress=True)                     a bar
    al.simulate(weights, x0, progress=function)                 function(fraction, doing) is called
    al.simulate(weights, x0, progress=al.Progress(True))        a bar, and progress.cancel() stops the run from any thread

A function of the library writes `with track(progress, "integrating") as progress:`, and passes
parts of it to its callees.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

import numpy as np

_token_of_work: contextvars.ContextVar[threading.Event | None] = contextvars.ContextVar(
    "token_of_work", default=None
)
"""The cancel token of the present work in this thread."""


class Cancelled(KeyboardInterrupt):
    """Raised when work was cancelled with `progress.cancel()`. It has the same effects as Ctrl-C,
    but in any thread.
    """


class Progress:
    """The progress of some work, and whether it must stop.

    After `cancel()` a Progress stays cancelled. Make a new one for the next work. `with
    al.Progress(True) as progress:` is one bar for all the work inside. A function is called in the
    thread that called attnlab.

    The bar appears after half a second. On a terminal and in a notebook it is removed at the end.
    If standard error is a file, lines are written instead: the first after two seconds, the others
    at least ten seconds apart.

    Parameters
    ----------
    show : bool, function or Progress, optional
        None or False (silent), True (a bar), or a function show(fraction, doing).
    cancel : threading.Event, optional
        An event that cancels the work when it is set. Several Progress may share one.

    Examples
    --------
    >>> import numpy as np
    >>> import attnlab as al
    >>> fractions = []
    >>> progress = al.Progress(lambda fraction, doing: fractions.append(fraction))
    >>> run = al.simulate(al.Weights(V=np.eye(2)), np.eye(2), t_end=1.0, progress=progress)
    >>> fractions[0], fractions[-1], progress.is_cancelled
    (0.0, 1.0, False)
    """

    def __init__(self, show: ProgressOption = None, *, cancel: threading.Event | None = None):
        self._show: Callable[[float, str], object] | None = None
        self._bar: Any = None
        if isinstance(show, bool | np.bool_):
            if show:
                from attnlab.bars import Bar

                self._bar = Bar()
                self._show = self._bar.show
        elif isinstance(show, Progress):
            self._show = show._tell
        elif callable(show):
            self._show = show
        elif show is not None:
            raise TypeError(
                "progress must be False, True, a function f(fraction, doing) or an"
                f" attnlab.Progress, got {type(show).__name__}."
            )
        if cancel is None:
            cancel = show._token if isinstance(show, Progress) else threading.Event()
        if not callable(getattr(cancel, "is_set", None)):
            raise TypeError(f"cancel must be a threading.Event, got {type(cancel).__name__}.")
        self._token: threading.Event = cancel
        self._root: Progress = show._root if isinstance(show, Progress) else self
        self._uses, self._lock = 0, threading.Lock()
        self._fraction = 0.0
        self._entered: list[track] = []

    def __call__(self, fraction: float, doing: str = "") -> None:
        """Report the fraction done, from 0 to 1, and the present activity. Raises Cancelled if the
        work must stop.
        """
        self.raise_if_cancelled()
        self._tell(fraction, doing)
        if fraction >= 1.0 and self._root is self and self._bar is not None and not self._uses:
            self._bar.finish()  # outside a `with` nothing else finishes it
        self.raise_if_cancelled()

    @property
    def fraction(self) -> float:
        """The last reported fraction. It never decreases."""
        return self._fraction

    @property
    def is_cancelled(self) -> bool:
        """Whether the work must stop."""
        return self._token.is_set()

    def cancel(self) -> None:
        """Ask the work to stop, from any thread. It ends as after Ctrl-C. All parts are cancelled
        together with the whole.
        """
        self._token.set()

    def raise_if_cancelled(self) -> None:
        """Raise Cancelled if the work must stop."""
        if self._token.is_set():
            raise Cancelled("The work was cancelled.")

    def part(self, first: float, last: float, name: str = "") -> Progress:
        """Return a Progress for a part of the work.

        Parameters
        ----------
        first, last : float
            The fractions of the whole work at which the part begins and ends.
        name : str, optional
            A name that is put before the words of the part.

        Returns
        -------
        Progress
            What the part reports to, from 0 to 1.
        """

        def show(fraction: float, doing: str) -> None:
            self._tell(
                first + (last - first) * fraction,
                f"{name}: {doing}" if name and doing else name or doing,
            )

        inner = Progress(show, cancel=self._token)
        inner._root = self._root
        return inner

    def piece(self, number: int, count: int, name: str = "") -> Progress:
        """Return a Progress for one of several equal parts of the work.

        Parameters
        ----------
        number : int
            The number of the part, counted from 0.
        count : int
            How many parts there are.
        name : str, optional
            A name that is put before the words of the part.

        Returns
        -------
        Progress
            What the part reports to, from 0 to 1.
        """
        return self.part(number / count, (number + 1) / count, name)

    def next_part(self, share: float = 0.5, name: str = "") -> Progress:
        """Return a Progress for a share of the remaining work. It suits work with an unknown number
        of pieces.

        Parameters
        ----------
        share : float, optional
            The share of the remaining work.
        name : str, optional
            A name that is put before the words of the part.

        Returns
        -------
        Progress
            What the part reports to, from 0 to 1.
        """
        first = self._fraction
        return self.part(first, first + share * (1.0 - first), name)

    def _tell(self, fraction: float, doing: str) -> None:
        """Report without checking the token. Fractions stay in [0, 1] and never decrease."""
        if fraction > self._fraction:  # not for NaN
            self._fraction = min(float(fraction), 1.0)
        if self._show is not None:
            self._show(self._fraction, doing)

    def _begin(self) -> None:
        root = self._root
        with root._lock:
            root._uses += 1
            if root._uses == 1:
                self._fraction = 0.0  # the same Progress may be given to one function after another

    def _end(self) -> None:
        root = self._root
        with root._lock:
            root._uses -= 1
            is_last = root._uses == 0
        if is_last and root._bar is not None:
            root._bar.finish() if root is self else root._bar.hide()

    def __enter__(self) -> Progress:
        self._entered.append(track(self))
        return self._entered[-1].__enter__()

    def __exit__(self, *problem: Any) -> None:
        self._entered.pop().__exit__(*problem)

    def __repr__(self) -> str:
        return f"Progress({self._fraction:.0%}{', cancelled' if self.is_cancelled else ''})"


class track:
    """A context in which work reports to any `progress` of a user: from 0 at its beginning to 1 if
    it succeeds.

    Functions that are called inside without their own progress are cancelled together with it.
    keeps=True: work that is cancelled before it begins does not raise here, because the caller
    returns a partial result.
    """

    def __init__(self, progress: ProgressOption, doing: str = "", *, keeps: bool = False):
        self.progress, self.doing, self.keeps = as_progress(progress), doing, keeps
        self.token_before: threading.Event | None = None

    def __enter__(self) -> Progress:
        progress = self.progress
        self.token_before = _token_of_work.get()
        progress._begin()
        _token_of_work.set(progress._token)
        try:
            if not self.keeps:
                progress.raise_if_cancelled()
            progress._tell(0.0, self.doing)
            if not self.keeps:
                progress.raise_if_cancelled()
        except BaseException:
            self._leave()
            raise
        return progress

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None and not self.progress.is_cancelled:
                self.progress._tell(1.0, "")
        finally:
            self._leave()

    def _leave(self) -> None:
        _token_of_work.set(self.token_before)
        self.progress._end()


def as_progress(progress: ProgressOption) -> Progress:
    """Return the Progress for the argument of a user. A new one is cancelled together with the
    surrounding work.
    """
    return (
        progress
        if isinstance(progress, Progress)
        else Progress(progress, cancel=_token_of_work.get())
    )


ProgressOption = bool | Callable[[float, str], object] | Progress | None
"""The type of the argument `progress`."""
