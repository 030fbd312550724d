"""Attempts side by side keep BLAS to one thread, and leave the process as it was."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import scipy.linalg  # noqa: F401  (brings a BLAS of its own, whose threads are counted too)
from threadpoolctl import threadpool_info, threadpool_limits

import attnlab as al
from attnlab.engine.threads import one_blas_thread
from clock import PATIENCE


def blas_threads():
    return [
        library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
    ]


def test_contexts_that_overlap_restore_what_the_first_one_found():
    """A in, B in, A out, B out, in two threads: each restoring what it found would leave one thread
    for ever.
    """
    with threadpool_limits(2, user_api="blas"):
        before, inside = blas_threads(), []
        assert before, "threadpoolctl sees no BLAS: then nothing keeps it to one thread"
        is_in, may_end = threading.Event(), threading.Event()

        def other():
            with one_blas_thread():
                is_in.set()
                may_end.wait(PATIENCE)
                inside.append(blas_threads())

        with one_blas_thread():
            thread = threading.Thread(target=other)
            thread.start()
            assert is_in.wait(PATIENCE)
        inside.append(blas_threads())  # the other one still holds it
        may_end.set()
        thread.join()
        assert all(count == [1] * len(before) for count in inside) and blas_threads() == before


@pytest.mark.slow
def test_a_large_limit_leaves_blas_as_it_was():
    x0 = np.random.default_rng(0).uniform(-5.0, 5.0, (700, 2))
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        ends = [al.limit(al.Weights(V=np.eye(2)), x0, budget=120.0) for _ in range(2)]
        assert blas_threads() == before
    assert ends[0].grade == "exact" and np.array_equal(ends[0].limits, ends[1].limits)
