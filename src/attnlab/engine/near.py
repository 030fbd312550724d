"""The velocity of many different tokens that see all, softmax of one head, without all pairs."""

from __future__ import annotations

import math

import numpy as np

from attnlab.engine.cells import cell_core, cell_count, cut_bits, make_boxes, pack, packed_size
from attnlab.engine.cells_extended import extended_rows_in_cells
from attnlab.engine.large import LargeSystem, Room, scratch
from attnlab.engine.plan import MOST_PAIRS
from attnlab.engine.stages import largest
from attnlab.engine.unrolled import MOST_COORDINATES, are_small
from attnlab.types import Dynamics

PAIRS_A_TASK = 4_000_000
"""Pairs of one task, looked at or not."""


def may_be_near(dynamics: Dynamics, n: int) -> bool:
    """Whether NearSystem covers this equation and is of use for n different tokens."""
    weights = dynamics.weights
    is_plain = dynamics.kernel.is_softmax and dynamics.mask.sees_all and dynamics.geometry.is_linear
    has_tokens_as_keys = weights.Q.shape[1] >= weights.d and not weights.is_factored
    is_alone = weights.heads == 1 and dynamics.feedforward.is_none and dynamics.is_value_linear
    return bool(is_plain and has_tokens_as_keys and is_alone and n * n > MOST_PAIRS)


class NearSystem(LargeSystem):
    """As LargeSystem in the frame x, for one trajectory; right for tokens in any order.

    It is fast in that of `cell_order`. pairs: how many pairs were looked at, and bounds of cells.
    """

    def __init__(self, dynamics: Dynamics, n: int, flag: np.ndarray, start_log_size: float):
        super().__init__(dynamics, n, "x")
        self.flag, self.start_log_size = flag, start_log_size
        d = dynamics.weights.d
        self.cut, self.pairs = 0.0, 0.0
        self.near_core = cell_core(d) if d <= MOST_COORDINATES else None
        self.packed = np.zeros(packed_size(n, d) if self.near_core is not None else 0)
        self.counts = (
            np.zeros(-(-n // 8))
            if self.near_core is None
            else self.packed[packed_size(n, d) - 2 * cell_count(n) :]
        )
        self.centres, self.halves = np.empty((d, cell_count(n))), np.empty((d, cell_count(n)))
        rows = max(1, PAIRS_A_TASK // (8 * n)) * 8
        self.blocks = [
            (begin, min(begin + rows, self.n_pad)) for begin in range(0, self.n_pad, rows)
        ]

    def velocity(
        self, t: float, log_scale: float, state: np.ndarray, is_extended: bool, out: np.ndarray
    ) -> None:
        """As LargeSystem's."""
        size = largest(state[0])
        growth = log_scale + math.log(size) - self.start_log_size if 0.0 < size < math.inf else 0.0
        self.cut = cut_bits(self.n, growth)
        super().velocity(t, log_scale, state, is_extended, out)

    def means(self, factor: float, x: np.ndarray, y: np.ndarray, room: Room) -> np.ndarray:
        """As LargeSystem's."""
        queries, core = room.mapped[: self.k], self.near_core
        if core is not None:
            self.product(self.score_stack, x, queries)
        if core is None or factor == 0.0 or are_small(queries, x, factor):
            self.pairs += float(self.n) ** 2
            return super().means(factor, x, y, room)
        pack(x, self.n, self.packed)

        def rows(begin: int, end: int) -> None:
            work = scratch(8 * cell_count(self.n) + self.k)
            core(
                queries,
                self.packed,
                self.packed,
                self.n,
                begin,
                end,
                factor,
                self.cut,
                False,
                work,
                room.means[0],
            )

        self.all_tasks((rows, begin, end) for begin, end in self.blocks)
        self._count()
        return room.means

    def extended_means(self, factor: float, x: np.ndarray, state: np.ndarray) -> np.ndarray:
        """As LargeSystem's."""
        full, queries = np.zeros((1, *x.shape)), self.query_map[0] @ x
        make_boxes(x, self.n, self.centres, self.halves)

        def rows(begin: int, end: int) -> None:
            extended_rows_in_cells(
                queries,
                state,
                self.n,
                begin,
                end,
                factor,
                self.cut,
                self.centres,
                self.halves,
                self.counts,
                full[0],
            )

        self.all_tasks((rows, begin, end) for begin, end in self.blocks)
        self._count()
        return full

    def _count(self) -> None:
        self.pairs += float(self.counts.sum())
        self.counts[:] = 0.0
