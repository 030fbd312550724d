"""The certificate's test of all gaps (contacts.py) for many tokens, in cells of tokens.

A cell is a set of followers of one root, or one leader alone. Its *stand-in* has the root, the
leader and the base that all of them share. Its offset D is the middle of theirs. Its error is the
largest of their errors and their distances from the middle, added. As a column it has the largest
of their bonuses. Abel's test takes a token as "D, off by at most D_error", and each member is such
a token: its computed D is within the distance of the middle, and its true D within its own error of
that. The partial sums that the test forms are lower bounds for every token of that kind. So a
stand-in of rows and a stand-in of columns that pass prove the gaps of all pairs of their members.
Cells that do not pass are tested row by row, and then pair by pair. So the answer is the one of
find_doubt, and all n^2 pairs are accounted for, by about (n / CELL)^2 tests and memory of size n.

Rounding: the test allows for it in parts of each term. The products with the widened errors are
rounded too. These errors are made larger by SPARE of themselves, a thousand times more than that.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import boolean, complex128, float64, int64, types

from attnlab.engine.callers import is_set
from attnlab.engine.cells import CELL, cell_order
from attnlab.engine.compile import compiled
from attnlab.engine.contacts import is_open_for_ever

SPARE = 1e-12


def gap_cells(
    leader: np.ndarray, D: np.ndarray, is_alive: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(begin (m + 1,), order): cell c are the tokens order[begin[c] : begin[c + 1]].

    Tokens that follow a root, which leads itself, are in cells with others that do. Roots are
    alone, and so are tokens further down a chain of leaders, whose D changes. Tokens that are not
    alive are in no cell.
    """
    points = np.hstack([D.real, D.imag]) if np.iscomplexobj(D) else D
    is_root = leader == np.arange(len(leader))
    follows = is_alive & ~is_root & is_root[leader]
    parts = list(np.flatnonzero(is_alive & ~follows)[:, None])
    members = np.flatnonzero(follows)
    members = members[np.argsort(leader[members], kind="stable")]
    for followers in np.split(members, np.flatnonzero(np.diff(leader[members])) + 1):
        near = followers[cell_order(points[followers])]
        parts += [near[first : first + CELL] for first in range(0, len(near), CELL)]
    sizes = [len(part) for part in parts]
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), np.concatenate(parts).astype(
        np.int64
    )


def with_stand_ins(
    begin: np.ndarray,
    order: np.ndarray,
    leader: np.ndarray,
    root: np.ndarray,
    D: np.ndarray,
    D_error: np.ndarray,
    bonus: np.ndarray,
) -> tuple[np.ndarray, ...]:
    """(leader, root, D, D_error, bonus) of the tokens, and behind them of their stand-ins."""
    first, starts = order[begin[:-1]], begin[:-1]
    number = np.repeat(np.arange(len(first)), np.diff(begin))

    def middle(values: np.ndarray) -> np.ndarray:
        return 0.5 * np.minimum.reduceat(values, starts) + 0.5 * np.maximum.reduceat(values, starts)

    inside = D[order]
    centre = (
        middle(inside.real) + 1j * middle(inside.imag) if np.iscomplexobj(D) else middle(inside)
    )
    distance = np.maximum.reduceat(np.abs(inside - centre[number]), starts) * (1.0 + SPARE)
    error = (np.maximum.reduceat(D_error[order], starts) + distance) * (1.0 + SPARE)
    return (
        np.concatenate([leader, leader[first]]),
        np.concatenate([root, root[first]]),
        np.vstack([D, centre]),
        np.vstack([D_error, error]),
        np.concatenate([bonus, np.maximum.reduceat(bonus[order], starts)]),
    )


class CellKernels(NamedTuple):
    """The two kernels for one kind of numbers."""

    find_doubt_in_cells: Any
    list_doubts: Any


@cache
def cell_kernels(is_complex: bool) -> CellKernels:
    """The kernels for real or complex eigen-coordinates, compiled when first asked for."""
    number: Any = complex128 if is_complex else float64
    variant = "complex" if is_complex else "real"
    matrix, whole, real_matrix = number[:, ::1], int64[::1], float64[:, ::1]

    @compiled(
        types.Tuple((int64, int64))(
            matrix,
            real_matrix,
            whole,
            whole,
            whole,
            matrix,
            matrix,
            matrix,
            real_matrix,
            real_matrix,
            real_matrix,
            float64[::1],
            int64[:, ::1],
            whole,
            boolean[:, ::1],
            boolean[::1],
            float64,
            int64,
            float64,
            int64,
            whole,
            whole,
            int64,
            whole,
            whole,
        ),
        variant,
        allocates=True,
    )
    def find_doubt_in_cells(
        M,
        M_error,
        leader,
        root,
        base,
        Y,
        E,
        D,
        Y_error,
        E_error,
        D_error,
        bonus,
        pair_rank,
        single_rank,
        pair_turns,
        single_turns,
        margin,
        margin_rank,
        rounding,
        ranks,
        begin,
        order,
        first,
        flag,
        counted,
    ):
        """A (row, column) whose gap is not shown to stay open, or (-1, -1). `first` goes first.

        leader, root, D, D_error and bonus have the stand-ins behind the tokens. counted (1,): the
        tests made are added to it. The flag ends it, with the row at which it stood.
        """
        cells = len(begin) - 1
        n = len(leader) - cells
        sums = np.empty(ranks)
        state = (
            M,
            M_error,
            leader,
            root,
            base,
            Y,
            E,
            D,
            Y_error,
            E_error,
            D_error,
            bonus,
            pair_rank,
            single_rank,
            pair_turns,
            single_turns,
            margin,
            margin_rank,
            rounding,
            sums,
        )
        is_there = False
        for p in range(len(order)):
            is_there = is_there or order[p] == first
        for turn in range(-1 if is_there else 0, cells):
            for b in range(cells):
                row, column = n + turn, n + b
                if turn < 0:
                    row = first
                if is_set(flag):
                    return order[begin[max(turn, 0)]], order[begin[b]]
                if order[begin[b]] == leader[row]:
                    continue  # a leader is alone in its cell
                counted[0] += 1
                if is_open_for_ever(row, column, *state):
                    continue
                for p in range(1 if turn < 0 else begin[turn + 1] - begin[turn]):
                    i = first
                    if turn >= 0:
                        i = order[begin[turn] + p]
                        counted[0] += 1
                        if is_open_for_ever(i, column, *state):
                            continue
                    for r in range(begin[b], begin[b + 1]):
                        k = order[r]
                        counted[0] += 1
                        if not is_open_for_ever(i, k, *state):
                            return i, k
        return -1, -1

    @compiled(
        int64(
            matrix,
            whole,
            whole,
            whole,
            matrix,
            matrix,
            matrix,
            real_matrix,
            float64[::1],
            int64[:, ::1],
            whole,
            boolean[:, ::1],
            boolean[::1],
            int64,
            whole,
            whole,
            whole,
            whole,
            whole,
            whole,
        ),
        variant,
        allocates=True,
    )
    def list_doubts(
        M,
        leader,
        root,
        base,
        Y,
        E,
        D,
        D_error,
        bonus,
        pair_rank,
        single_rank,
        pair_turns,
        single_turns,
        ranks,
        begin,
        order,
        rows,
        columns,
        flag,
        counted,
    ):
        """How many gaps are not shown to stay open; the first of these pairs in rows, columns.

        The state is taken as exact and the margin is 0, as in find_contact: D_error has only the
        distances in cells. Pairs with a token whose D changes are always listed: it follows a token
        that follows another. leader, ..., counted: as in find_doubt_in_cells. The flag ends it.
        """
        cells = len(begin) - 1
        n = len(leader) - cells
        sums, none, none_of_M = np.empty(ranks), np.zeros(Y.shape), np.zeros(M.shape)
        state = (
            M,
            none_of_M,
            leader,
            root,
            base,
            Y,
            E,
            D,
            none,
            none,
            D_error,
            bonus,
            pair_rank,
            single_rank,
            pair_turns,
            single_turns,
            0.0,
            ranks - 1,
            0.0,
            sums,
        )
        found = 0
        for a in range(cells):
            for b in range(cells):
                if is_set(flag):
                    return found
                l, q = leader[n + a], leader[n + b]
                is_steady = leader[l] == l and leader[q] == q
                if order[begin[b]] == l and begin[b + 1] - begin[b] == 1:
                    continue
                if is_steady:
                    counted[0] += 1
                    if is_open_for_ever(n + a, n + b, *state):
                        continue
                for p in range(begin[a], begin[a + 1]):
                    i = order[p]
                    if is_steady:
                        counted[0] += 1
                        if is_open_for_ever(i, n + b, *state):
                            continue
                    for r in range(begin[b], begin[b + 1]):
                        k = order[r]
                        if is_steady:
                            counted[0] += 1
                            if is_open_for_ever(i, k, *state):
                                continue
                        if found < len(rows):
                            rows[found], columns[found] = i, k
                        found += 1
        return found

    return CellKernels(find_doubt_in_cells, list_doubts)
