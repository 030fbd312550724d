"""The pool of threads, and functions that wait for its work while Ctrl-C, a cancel and progress
still work.
"""

from __future__ import annotations

import atexit
import contextlib
import contextvars
import ctypes
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from functools import cache
from typing import Any

import numba
import numpy as np

from attnlab.progress import Progress

POLL_SECONDS = 0.1

PATIENCE_SECONDS = 0.3
"""Seconds that Ctrl-C waits for background work to end before it abandons the work."""


def thread_count() -> int:
    """Return the number of threads: NUMBA_NUM_THREADS if set, but not more than this process may
    use.
    """
    available = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    return max(1, min(numba.config.NUMBA_NUM_THREADS, available))


@cache
def pool() -> ThreadPoolExecutor:
    """The threads that kernels run on. Kernels hold no interpreter lock, so threads are enough."""
    return ThreadPoolExecutor(thread_count(), thread_name_prefix="attnlab")


@cache
def supervisors() -> ThreadPoolExecutor:
    """Return threads that drive a large run, so that the main thread stays free for Ctrl-C. They
    wait for those of `pool`.
    """
    return ThreadPoolExecutor(1, thread_name_prefix="attnlab-run")


@cache
def _libraries() -> Any:
    """Return the libraries of this process with their own threads. Finding them takes a
    millisecond, so it is done once.
    """
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


class _Held:
    """The number of contexts that limit BLAS to one thread now, and the setting to restore when the
    last one ends.
    """

    lock, count, limiter = threading.Lock(), 0, None


def _release_blas() -> None:
    """Release the limit. Newer versions of threadpoolctl let only one thread set it: it must be
    this one.
    """
    import threadpoolctl

    release = getattr(
        getattr(threadpoolctl, "OpenBLASController", None), "clear_controlling_thread", None
    )
    if release is not None:
        release(force=True)


@contextlib.contextmanager
def one_blas_thread() -> Iterator[None]:
    """A context in which BLAS uses only the calling thread, because attnlab splits the work itself.

    Contexts of several threads overlap. The first one sets the limit and the last one restores the
    old value. If each context restored the value that it found, a limit set by another one would
    remain.
    """
    with _Held.lock:
        if _Held.count == 0:
            _release_blas()
            _Held.limiter = _libraries().limit(limits=1, user_api="blas")
        _Held.count += 1
    try:
        yield
    finally:
        with _Held.lock:
            _Held.count -= 1
            if _Held.count == 0:
                _release_blas()
                _Held.limiter.restore_original_limits()
                _release_blas()


def _forget_threads() -> None:
    """Forget the pools after a fork: the child has none of its parent's threads, and one of them
    may have held the lock.
    """
    pool.cache_clear()
    supervisors.cache_clear()
    _Held.lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)


def _interrupt(thread: threading.Thread) -> None:
    """Raise KeyboardInterrupt in another thread, between two steps of its Python code. If it has
    ended, do nothing.
    """
    if thread.ident is not None:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(thread.ident), ctypes.py_object(KeyboardInterrupt)
        )


def do_unless_interrupted(
    work: Callable[[], None],
    stop: Callable[[], None],
    progress: Progress,
    doing: str = "",
    fraction: Callable[[], float] = lambda: 0.0,
) -> bool:
    """Do the work in a new thread and return True, or call `stop` and return False after Ctrl-C or
    a cancel.

    A single library call may take minutes, and Python handles Ctrl-C only between two calls. So the
    calling thread waits for the work, reports to `progress`, and checks whether it was cancelled.
    Interrupted work ends later by itself.
    """
    problems: list[BaseException] = []
    is_over = (
        threading.Event()
    )  # not thread.join: after Ctrl-C in it Python believes that the thread has ended (3.11)

    def do_it() -> None:
        try:
            work()
        except BaseException as problem:
            problems.append(problem)
        finally:
            is_over.set()

    # a daemon: the end of the process does not wait for it
    thread = threading.Thread(
        target=contextvars.copy_context().run, args=(do_it,), daemon=True, name="attnlab-background"
    )

    def end() -> None:
        stop()
        if thread.ident is None:  # it has not been started
            return
        if not is_over.is_set():
            _interrupt(thread)
        if not is_over.wait(PATIENCE_SECONDS):
            atexit.register(
                is_over.wait, 1.0
            )  # C++ code that returns into a finished interpreter would abort

    try:
        progress(0.0, doing)
        thread.start()
        while not is_over.wait(POLL_SECONDS):
            progress(fraction(), doing)
    except KeyboardInterrupt:
        end()
        return False
    except BaseException:
        end()
        raise
    if problems:
        raise problems[0]
    return True


def wait_for(
    futures: Sequence[Future[Any]],
    flag: np.ndarray,
    fraction: Callable[[], float],
    progress: Progress,
    doing: str,
) -> bool:
    """Wait for all futures and return True, or False after Ctrl-C or a cancel: then the flag ends
    the work early.
    """
    is_whole = True
    try:
        while wait(futures, timeout=POLL_SECONDS, return_when=FIRST_EXCEPTION).not_done:
            progress(fraction(), doing)
            if any(future.done() and future.exception() for future in futures):
                break
    except KeyboardInterrupt:
        is_whole = False
        _stop(futures, flag)
    except BaseException:
        _stop(futures, flag)
        raise
    if any(not future.cancelled() and future.exception() for future in futures):
        _stop(futures, flag)
    for future in futures:
        if not future.cancelled():
            future.result()
    return is_whole


def _stop(futures: Sequence[Future[Any]], flag: np.ndarray) -> None:
    """End running work, when it next checks the flag, and work that has not begun."""
    flag[0] = 1
    for future in futures:
        future.cancel()
    wait(futures)
