"""The frozen flow's gaps: when the next one closes (`find_contact`), and whether none ever will
(`find_doubt`).

Every row i attends to one token, its leader l. Tokens are stored as offsets, x_i = Y_base + E_root
+ D_i (limits/frozen.py): Y and E multiply by e^{lambda s}, D_i is constant, or a polynomial in s
where i's leader follows somebody itself. A gap

    f_ik(s) = x_i^T M (x_l - x_k) + bonus_l - bonus_k

is then a sum of exponentials, and differences are formed part by part, so nothing large is
subtracted inside a group. Kernels exist for real and for complex eigen-coordinates; gaps are real
in both.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import boolean, complex128, float64, int64, types

from attnlab.engine.callers import is_set
from attnlab.engine.compile import OPTIONS, compiled

NOTHING, CONTACT, TANGENT, STOPPED, SPENT, OVERFLOW = range(6)
"""What find_contact returns first."""

CLOSED = 1e-13
"""A gap below this part of the sum of its absolute terms is closed."""

FLAT = 1e-10
"""A slope below this part of the sum of its absolute terms counts as 0."""

SHORTEST = 1e-12
"""Events closer than this part of the horizon count as simultaneous."""

MOST_PASSES = 5_000
"""In one call. Where tokens have merged below rounding, gaps are noise, and steps could become
arbitrarily small.
"""

FEW = 8


class Kernels(NamedTuple):
    """The two kernels for one kind of numbers."""

    find_contact: Any
    find_doubt: Any


@numba.njit(**OPTIONS)
def is_open_for_ever(
    i,
    k,
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
):
    """Whether Abel's partial sums keep the gap f_ik above margin e^{mu s} for all s >= 0; a sound,
    cheap sufficient test.

    Terms C e^{mu s} are added up by falling mu (ranks), each lowered by its error; oscillating ones
    count as -|C|. Only for tokens whose D is constant. Without a signature and a cache of its own:
    it becomes part of the two kernels.
    """
    d, l = M.shape[0], leader[i]
    for rank in range(len(sums)):
        sums[rank] = 0.0
    sums[margin_rank] = -margin
    last = single_rank[d]  # of the constants
    sums[last] += bonus[l] - bonus[k]
    other_root, other_base = root[l] != root[k], base[root[l]] != base[root[k]]
    for a in range(d):
        grown = Y[base[root[i]], a] + E[root[i], a]
        grown_error = Y_error[base[root[i]], a] + E_error[root[i], a]
        for b in range(d):
            weight, blur = M[a, b], M_error[a, b]
            if weight == 0.0 and blur == 0.0:
                continue
            size, own = abs(weight) + blur, abs(D[i, a])
            if other_root:
                apart, apart_error = (
                    E[root[l], b] - E[root[k], b],
                    E_error[root[l], b] + E_error[root[k], b],
                )
                if other_base:
                    apart += Y[base[root[l]], b] - Y[base[root[k]], b]
                    apart_error += Y_error[base[root[l]], b] + Y_error[base[root[k]], b]
                far = abs(apart)
                term = grown * weight * apart
                value = -abs(term) if pair_turns[a, b] else term.real
                doubt = (
                    size * (grown_error * (far + apart_error) + abs(grown) * apart_error)
                    + blur * abs(grown) * far
                )
                sums[pair_rank[a, b]] += value - doubt - rounding * abs(term)
                term = D[i, a] * weight * apart
                value = -abs(term) if single_turns[b] else term.real
                doubt = (
                    size * (D_error[i, a] * (far + apart_error) + own * apart_error)
                    + blur * own * far
                )
                sums[single_rank[b]] += value - doubt - rounding * abs(term)
            offset, offset_error = D[l, b] - D[k, b], D_error[l, b] + D_error[k, b]
            far = abs(offset)
            term = grown * weight * offset
            value = -abs(term) if single_turns[a] else term.real
            doubt = (
                size * (grown_error * (far + offset_error) + abs(grown) * offset_error)
                + blur * abs(grown) * far
            )
            sums[single_rank[a]] += value - doubt - rounding * abs(term)
            term = D[i, a] * weight * offset
            doubt = (
                size * (D_error[i, a] * (far + offset_error) + own * offset_error)
                + blur * own * far
            )
            sums[last] += term.real - doubt - rounding * abs(term)
    total = 0.0
    for rank in range(len(sums)):
        total += sums[rank]
        if not total >= 0.0:
            return False
    return True


@cache
def kernels(is_complex: bool) -> Kernels:
    """Return the kernels for real or complex eigen-coordinates. They are compiled, or read from the
    cache, on first use.

    They close over nothing: Numba's cache identifies a function by its closure too, and a compiled
    function in a closure is new in every process, so the cache would grow and never be used.
    """
    number: Any = complex128 if is_complex else float64
    variant = "complex" if is_complex else "real"
    vector, matrix, whole, real_matrix = number[::1], number[:, ::1], int64[::1], float64[:, ::1]

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
            boolean[::1],
            boolean,
            int64,
            whole,
        ),
        variant,
        allocates=True,
    )
    def find_doubt(
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
        is_alive,
        is_causal,
        first,
        flag,
    ):
        """The first (row, column) whose gap is not shown to stay open, beginning with row `first`;
        (-1, -1): all are.

        The flag ends it, with the row at which it stood.
        """
        n = len(leader)
        sums = np.empty(ranks)
        for shift in range(n):
            i = (first + shift) % n
            if not is_alive[i]:
                continue
            for k in range(i + 1 if is_causal else n):
                if is_set(flag):
                    return i, i
                if (
                    k != leader[i]
                    and is_alive[k]
                    and not is_open_for_ever(
                        i,
                        k,
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
                ):
                    return i, k
        return -1, -1

    @compiled(
        types.Tuple((int64, int64, int64, float64))(
            vector,
            matrix,
            real_matrix,
            whole,
            whole,
            whole,
            matrix,
            matrix,
            matrix,
            float64[::1],
            int64[:, ::1],
            whole,
            boolean[:, ::1],
            boolean[::1],
            int64,
            boolean[::1],
            float64[::1],
            whole,
            whole,
            float64,
            float64,
            whole,
            whole,
        ),
        variant,
        allocates=True,
    )
    def find_contact(
        rates,
        M,
        size_of_M,
        leader,
        root,
        base,
        Y,
        E,
        D,
        bonus,
        pair_rank,
        single_rank,
        pair_turns,
        single_turns,
        ranks,
        is_alive,
        safe,
        start,
        column,
        limit,
        horizon,
        flag,
        counted,
    ):
        """(what, row, column, s): the first gap that closes within s <= limit, or NOTHING.

        counted (2,): how many terms were computed, which is added to, and how many may be: beyond,
        SPENT. A pair has d terms, a row d^2, Abel's test of a pair d^2. They and the flag are
        looked at before each row, and before each test of many terms.

        Row i is watched against column[start[i]] to column[start[i + 1] - 1], in rising order:
        tokens that it sees (limits/watched.py). For each of these pairs safe holds the s up to
        which its gap is known to be open, and is kept up to date: a pair is looked at again only
        when that time has come. From f, f' and a bound K of |f''| on [s, s + horizon] follows the
        next such time, the root of f + f' h - K h^2 / 2: no zero can be jumped, not even a double
        one, and simple ones are approached quadratically. A pair that stays open for ever by Abel's
        test is not looked at again.
        """
        n, d = D.shape
        none, none_of_M, sums = np.zeros((n, d)), np.zeros((d, d)), np.empty(ranks)
        grown, offset, drift = np.empty_like(D), np.empty_like(D), np.empty_like(D)
        Y_now, E_now = np.empty_like(D), np.empty_like(D)
        reach, reach_drift, reach_bend = np.empty((n, d)), np.empty((n, d)), np.empty((n, d))
        query, query_drift = np.empty_like(rates), np.empty_like(rates)
        bound, bound_drift, bound_bend = np.empty(d), np.empty(d), np.empty(d)
        earliest, growth, stretch = np.empty(n), np.empty_like(rates), np.empty(d)
        for a in range(d):
            stretch[a] = math.exp(max(rates[a].real, 0.0) * horizon)
        for i in range(n):
            earliest[i] = math.inf
            for e in range(start[i], start[i + 1]):
                k = column[e]
                if is_alive[i] and is_alive[k] and k != leader[i]:
                    earliest[i] = min(earliest[i], safe[e])
        passes = 0
        while True:
            passes += 1
            s = math.inf
            for i in range(n):
                s = min(s, earliest[i])
            if s >= limit:
                return NOTHING, -1, -1, limit
            if is_set(flag):
                return STOPPED, -1, -1, s
            counted[0] += n * (d + 8)  # the cost of the tokens at s, below
            together = (
                s + 0.1 * horizon
            )  # pairs that are due soon are looked at now, with the same exponentials
            # ---- the tokens at s, and bounds of their parts on [s, s + horizon]
            for a in range(d):
                growth[a] = np.exp(rates[a] * s)
            for i in range(n):
                for a in range(d):
                    Y_now[i, a], E_now[i, a] = Y[i, a] * growth[a], E[i, a] * growth[a]
                    grown[i, a] = (Y[base[root[i]], a] + E[root[i], a]) * growth[a]
                    value, power, j = D[i, a], rates[a] * s, leader[i]
                    factor, count = power, 1
                    while j != leader[j]:
                        value += factor * D[j, a]
                        count += 1
                        factor *= power / count
                        j = leader[j]
                    offset[i, a] = value
            for i in range(n):
                for a in range(d):
                    drift[i, a] = rates[a] * offset[leader[i], a]
                    value, power, j = abs(offset[i, a]), abs(rates[a]) * horizon, leader[i]
                    factor, count = power, 1
                    while j != leader[j]:
                        value += factor * abs(offset[j, a])
                        count += 1
                        factor *= power / count
                        j = leader[j]
                    reach[i, a] = value
            for i in range(n):
                for a in range(d):
                    reach_drift[i, a] = abs(rates[a]) * reach[leader[i], a]
                    reach_bend[i, a] = abs(rates[a]) ** 2 * reach[leader[leader[i]], a]
            for i in range(n):
                if earliest[i] > together:
                    continue
                if is_set(flag):
                    return STOPPED, i, -1, s
                if counted[0] > counted[1]:
                    return SPENT, i, -1, s
                counted[0] += d * d
                l, latest = leader[i], math.inf
                for b in range(d):
                    query[b], query_drift[b], bound[b], bound_drift[b], bound_bend[b] = (
                        0.0,
                        0.0,
                        0.0,
                        0.0,
                        0.0,
                    )
                    for a in range(d):
                        rate, size = abs(rates[a]), abs(grown[i, a]) * stretch[a]
                        query[b] += (grown[i, a] + offset[i, a]) * M[a, b]
                        query_drift[b] += (rates[a] * grown[i, a] + drift[i, a]) * M[a, b]
                        bound[b] += (size + reach[i, a]) * size_of_M[a, b]
                        bound_drift[b] += (rate * size + reach_drift[i, a]) * size_of_M[a, b]
                        bound_bend[b] += (rate * rate * size + reach_bend[i, a]) * size_of_M[a, b]
                for e in range(start[i], start[i + 1]):
                    k = column[e]
                    if k == l or not is_alive[k]:
                        continue
                    if safe[e] > together:
                        latest = min(latest, safe[e])
                        continue
                    counted[0] += d + 8
                    gap = bonus[l] - bonus[k]
                    slope, bend = 0.0, 0.0
                    terms, slope_terms = abs(gap), 0.0
                    other_root, other_base = root[l] != root[k], base[root[l]] != base[root[k]]
                    for b in range(d):
                        apart = growth[b] * 0.0
                        if other_root:
                            apart = E[root[l], b] - E[root[k], b]
                            if other_base:
                                apart += Y[base[root[l]], b] - Y[base[root[k]], b]
                            apart *= growth[b]
                        rate, size = abs(rates[b]), abs(apart) * stretch[b]
                        part = apart + (offset[l, b] - offset[k, b])
                        part_drift = rates[b] * apart + (drift[l, b] - drift[k, b])
                        gap += (query[b] * part).real
                        terms += abs(query[b] * part)
                        slope += (query_drift[b] * part + query[b] * part_drift).real
                        slope_terms += abs(query_drift[b] * part) + abs(query[b] * part_drift)
                        # offsets along the two chains: what they have in common cancels, and so it
                        # must in the bounds, or the steps of tokens that follow one another closely
                        # would shrink to nothing
                        far, far_drift, far_bend = size, rate * size, rate * rate * size
                        p, q, count = l, k, 0
                        now, before, earlier = (
                            1.0,
                            0.0,
                            0.0,
                        )  # (rate horizon)^j / j! for j = count, count - 1, count - 2
                        while p != q:
                            apart_here = abs(offset[p, b] - offset[q, b])
                            far += now * apart_here
                            far_drift += rate * before * apart_here
                            far_bend += rate * rate * earlier * apart_here
                            if leader[p] == p and leader[q] == q:
                                break
                            count += 1
                            now, before, earlier = now * rate * horizon / count, now, before
                            p, q = leader[p], leader[q]
                        bend += (
                            bound_bend[b] * far
                            + 2.0 * bound_drift[b] * far_drift
                            + bound[b] * far_bend
                        )
                    if not abs(gap) < math.inf:
                        return OVERFLOW, i, k, s
                    if gap <= CLOSED * terms:
                        if slope < -FLAT * slope_terms:
                            return CONTACT, i, k, s
                        if slope <= FLAT * slope_terms:
                            return TANGENT, i, k, s
                        gap = max(gap, 0.0)
                    step = horizon
                    if bend > 0.0:
                        square = math.sqrt(slope * slope + 2.0 * bend * gap)
                        step = (
                            2.0 * gap / (square - slope) if slope < 0.0 else (slope + square) / bend
                        )
                    elif slope < 0.0:
                        step = gap / -slope
                    safe[e] = s + min(max(step, SHORTEST * horizon), horizon)
                    if passes > MOST_PASSES:
                        return TANGENT, i, k, s
                    is_due = (
                        s == 0.0 or d <= FEW
                    )  # d^2 terms: with many, only where a pair has just changed
                    if is_due and leader[l] == l and leader[leader[k]] == leader[k]:
                        counted[0] += d * d
                        if d > FEW and is_set(flag):
                            return STOPPED, i, k, s
                        if d > FEW and counted[0] > counted[1]:
                            return SPENT, i, k, s
                        if is_open_for_ever(
                            i,
                            k,
                            M,
                            none_of_M,
                            leader,
                            root,
                            base,
                            Y_now,
                            E_now,
                            offset,
                            none,
                            none,
                            none,
                            bonus,
                            pair_rank,
                            single_rank,
                            pair_turns,
                            single_turns,
                            0.0,
                            ranks - 1,
                            0.0,
                            sums,
                        ):
                            safe[e] = math.inf
                    latest = min(latest, safe[e])
                earliest[i] = latest

    return Kernels(find_contact, find_doubt)
