"""The sizes of the tiled kernel's blocks and buffers."""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

ROWS = 16
PANEL, NARROW = 12, 8
TILE = 240
STATE = 2 * ROWS
"""What is kept of a block between tiles: the largest score and the sum of weights of every row."""

MOST_BLOCKS, GROUP_NUMBERS = 8, 32_768
"""A group has at most so many blocks, and about so many numbers of queries and sums, because they
share the cache with a tile.
"""


@register_jitable
def group_size(k, r):
    """How many blocks of rows go through a tile together, for k score and r value coordinates."""
    return max(1, min(MOST_BLOCKS, GROUP_NUMBERS // (ROWS * (k + r + PANEL))))


@register_jitable
def value_width(r):
    """The width of the panels that r value coordinates are packed in: 12, or 8 where fewer columns
    are then empty.
    """
    return (
        NARROW if (r + NARROW - 1) // NARROW * NARROW < (r + PANEL - 1) // PANEL * PANEL else PANEL
    )


def key_size(n: int, k: int) -> int:
    """The length of the packed keys."""
    return -(-n // PANEL) * PANEL * k


def value_size(n: int, r: int) -> int:
    """The length of the packed values."""
    return -(-n // PANEL) * PANEL * _columns(r)


def work_size(k: int, r: int) -> int:
    """The length of the `work` array: a tile of scores, and for each block of a group its queries,
    sums and state.
    """
    return ROWS * TILE + group_size(k, r) * (ROWS * (k + _columns(r)) + STATE)


def make_aligned(size: int) -> np.ndarray:
    """Return an array of `size` numbers that starts at a cache line, so that eight numbers never
    lie in two lines.
    """
    room = np.zeros(size + 8)
    start = -(room.ctypes.data // 8) % 8
    return room[start : start + size]


def _columns(r: int) -> int:
    width = value_width(r)
    return -(-r // width) * width
