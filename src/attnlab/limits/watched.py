"""The pairs whose gaps are watched between events, and how long each is known to be open.

Up to MOST_TABLE tokens these are all pairs of a row and a token that it sees. With more tokens they
are listed: only those that Abel's test does not show open for ever, found in cells of tokens
(engine/doubts.py). With V = c I few are left at the hand-over.
"""

from __future__ import annotations

import numpy as np

from attnlab.engine.doubts import cell_kernels, gap_cells, with_stand_ins
from attnlab.limits.allowance import Allowance, price_of_doubt
from attnlab.limits.certificate import Certificate
from attnlab.limits.events import Undecidable
from attnlab.limits.frozen import Frozen

MOST_TABLE = 2500
"""A table of so many tokens has six million pairs, 100 MB."""

MOST_LISTED = 20_000_000
"""More pairs than this are not listed: 500 MB while they are put in order."""

ROOM = 1_000_000
"""Pairs that there is room for at first."""


class Watched:
    """Row i is watched against column[start[i]] to column[start[i + 1] - 1].

    safe: for each of these pairs the time, from now, up to which its gap is known to be open.
    """

    start: np.ndarray
    column: np.ndarray
    safe: np.ndarray

    def __init__(self, frozen: Frozen, certificate: Certificate, allowance: Allowance):
        self.frozen, self.certificate, self.allowance = frozen, certificate, allowance
        n = frozen.n
        self.has_all = n <= MOST_TABLE or certificate.is_causal
        if self.has_all:
            seen = np.arange(1, n + 1) if certificate.is_causal else np.full(n, n)
            self.start = np.concatenate([[0], np.cumsum(seen)]).astype(np.int64)
            self.column = np.concatenate([np.arange(count) for count in seen]).astype(np.int64)
            self.safe = np.zeros(len(self.column))
        else:
            self._list()

    def look_again(self, moved: np.ndarray) -> None:
        """The tokens `moved` (n,) move otherwise from now on: each of their gaps may close soon."""
        if not moved.any():
            return
        if self.has_all:
            for i in np.flatnonzero(moved):
                self.safe[self.start[i] : self.start[i + 1]] = 0.0
            self.safe[moved[self.column]] = 0.0
        else:
            self._list()

    def _list(self) -> None:
        frozen, ranks = self.frozen, self.certificate.ranks
        problem = frozen.problem
        begin, order = gap_cells(frozen.leader, frozen.D, frozen.is_alive)
        parts = (
            begin,
            order,
            frozen.leader,
            frozen.root,
            frozen.D,
            np.zeros(frozen.D.shape),
            frozen.scaled_bonus,
        )
        leader, root, D, D_error, bonus = with_stand_ins(*parts)
        room, counted = ROOM, np.zeros(1, np.int64)
        while True:
            rows, columns = np.zeros(room, np.int64), np.zeros(room, np.int64)
            found = cell_kernels(problem.is_complex).list_doubts(
                problem.M,
                leader,
                root,
                frozen.base,
                frozen.Y,
                frozen.E,
                D,
                D_error,
                bonus,
                ranks.pair,
                ranks.single,
                ranks.pair_turns,
                ranks.single_turns,
                ranks.count,
                begin,
                order,
                rows,
                columns,
                self.allowance.flag,
                counted,
            )
            if self.allowance.flag[0]:
                raise Undecidable(self.allowance.ended_by)
            if found <= room:
                break
            if found > MOST_LISTED:
                raise Undecidable("pairs")
            room = found
        self.allowance.spend(
            price_of_doubt(int(counted[0]), len(problem.rates), problem.is_complex)
        )
        rows, columns = rows[:found], columns[:found]
        place = np.lexsort((columns, rows))
        self.column = columns[place]
        self.start = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=frozen.n))]).astype(
            np.int64
        )
        self.safe = np.zeros(found)
