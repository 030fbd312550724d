"""Split the work of a layer over blocks of tokens, or over its heads, and the blocks over threads.

The blocks depend only on the shapes, never on the number of threads. So the numbers are the same to
the last bit on every machine with the same BLAS.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

ROWS = 128
"""Tokens in a block: what the feed-forward part needs for them stays in the cache of a core."""

ENTRIES = 1 << 18
"""Scores in a block of heads (2 MB), if a block of one head is not larger."""

WORTH_THREADS = 96
"""Fewer tokens than this run in the calling thread: the others would mostly wait."""


@contextlib.contextmanager
def prepared(tokens: int) -> Iterator[None]:
    """A context for the layers of so many tokens: BLAS has one thread, because blocks share the
    cores.
    """
    if tokens < WORTH_THREADS:  # without numba, which takes half a second to import
        yield
        return
    from attnlab.engine.threads import one_blas_thread

    with one_blas_thread():
        yield


def over_tokens(function: Callable[..., np.ndarray], *arrays: np.ndarray) -> np.ndarray:
    """Return function(*arrays) for arrays (*batch, n, .), where function maps each token alone."""
    batch, width = arrays[0].shape[:-1], arrays[0].shape[-1]
    count = int(np.prod(batch))
    if count <= ROWS:
        return function(*arrays)
    flat = [array.reshape(count, array.shape[-1]) for array in arrays]
    result = np.empty((count, width), arrays[0].dtype)

    def one(first: int) -> None:
        rows = slice(first, first + ROWS)
        result[rows] = function(*(array[rows] for array in flat))

    in_blocks(one, range(0, count, ROWS), count)
    return result.reshape(*batch, width)


def head_blocks(heads: int, group: int, entries: int) -> list[slice]:
    """Return slices of heads with about ENTRIES scores each, if a head has so many `entries`.

    group: so many heads share keys and values and stay together.
    """
    size = max(1, ENTRIES // max(entries, 1) // group) * group
    return [slice(first, min(first + size, heads)) for first in range(0, heads, size)]


def in_blocks(function: Callable[[Any], None], blocks: Sequence[Any], tokens: int) -> None:
    """Call function for each block; for many tokens on all threads."""
    if tokens < WORTH_THREADS or len(blocks) < 2 or _is_worker():
        for block in blocks:
            function(block)
        return
    from attnlab.engine.threads import pool

    for future in [pool().submit(function, block) for block in blocks]:
        future.result()


def _is_worker() -> bool:
    """Whether this thread is one of the pool's, which must not wait for the others."""
    return threading.current_thread().name.startswith("attnlab_")
