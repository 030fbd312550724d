"""Flows with powers of the time in closed form: diagonal V_h, causal masks, Jordan blocks.

Written apart from limits/closed/. With all leaders fixed x' = N x, N a matrix over all coordinates of
all tokens, in rational numbers. A product of (N - mu) that is exactly 0 shows which s^p e^{mu s}
occur, and the powers of N then give their matrices: N^k is the k-th derivative of e^{sN} at 0. So no
formula of a class or of a chain of leaders is used. Errors of the tokens are carried by the moduli of
these matrices, and each gap is compared with G e^{mu s} in the order

    e^{mu_1 s} >= p_k(y) e^{mu_2 s} >= .. >= p_1(y) e^{mu_2 s} >= e^{mu_2 s} >= ..,    y = (mu_1 - mu_2) s.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import factorial, perm

import numpy as np

from attnlab.limits.certificate import LEAST_MARGIN, ROUNDING
from attnlab.limits.verification import ways
from attnlab.limits.verification.record import Failed, require
from attnlab.limits.verification.several import NAMES, ROUNDED, Head, SeveralHeads, lowest_products
from attnlab.limits.verification.steps import Step
from attnlab.types import Limit

LEAK = 6.0 * float(np.exp(-LEAST_MARGIN))
MOST_POWER = 8
"""Powers of the time up to which a rate is tried."""

Sparse = list[dict[int, Fraction]]
"""The rows of a matrix: column -> number."""


@dataclass(frozen=True, eq=False)
class Motion:
    """e^{sN} = sum of s^p e^{mu s} T, for one map of leaders."""

    keys: list[tuple[Fraction, int]]
    T: list[np.ndarray]  # (m, d, m, d) each
    column: list[np.ndarray]  # (m, d, d) each: T added up over the tokens that it takes, exactly
    kinds: list[tuple[object, ...]]  # equal where two tokens have the same limit


@dataclass(frozen=True, eq=False)
class State:
    """One attempt: what the steps need."""

    t: float
    leader: np.ndarray  # (H, m)
    x: tuple[np.ndarray, np.ndarray]  # hi, lo
    motion: Motion
    of_token: np.ndarray  # (d,)
    inside: np.ndarray  # (m, d)

    @property
    def kinds(self) -> list[tuple[object, ...]]:
        """Equal where two tokens have the same limit."""
        return self.motion.kinds

    @property
    def value(self) -> np.ndarray:
        """The tokens, (m, d)."""
        return np.asarray(self.x[0] + self.x[1])


class Closed(SeveralHeads[State]):
    """The state of a Limit, read and checked piece by piece."""

    def require_covered(self, heads: list[Head]) -> None:
        """Raise Failed unless all V_h are diagonal, or their sum is, or there are Jordan blocks."""
        require(
            self.limit.dynamics.dt is None,
            "The proof is about softmax attention in R^d in continuous time, and this is another"
            " equation.",
        )
        require(len(heads) > 0, "No head does anything.")
        diagonal = all(np.array_equal(V, np.diag(np.diagonal(V))) for _, V, *_ in heads)
        if not diagonal and len(heads) > 1:
            sums = [[sum(map(Fraction, row)) for row in rows] for rows in _entries(heads)]
            is_one = not any(
                sums[a][b] for a in range(len(sums)) for b in range(len(sums)) if a != b
            )
            require(is_one, "The V of a head is not diagonal, nor is the sum of all of them.")
            return
        total = np.asarray(np.array([V for _, V, *_ in heads]).sum(axis=0))
        D = np.diagonal(total)
        N = total - np.diag(D)
        require(
            not np.linalg.matrix_power((N != 0).astype(float), len(N)).any()
            and not N[D[:, None] != D[None, :]].any(),
            "V is not made of Jordan blocks D + N.",
        )

    @property
    def is_mixing(self) -> bool:
        """Whether several heads mix coordinates."""
        return len(self.heads) > 1 and any(
            np.count_nonzero(V) > np.count_nonzero(np.diagonal(V)) for _, V, *_ in self.heads
        )

    @cached_property
    def W(self) -> np.ndarray:
        """The sum of all V_h; its entries are rounded once."""
        return np.array(
            [[float(sum(map(Fraction, row))) for row in rows] for rows in _entries(self.heads)]
        )

    @cached_property
    def growth(self) -> np.ndarray:
        """The rates of the coordinates: sums that are rounded once."""
        diagonals = np.array([np.diagonal(V) for _, V, *_ in self.heads]).T.tolist()
        return np.array([float(sum(map(Fraction, one))) for one in diagonals])

    @property
    def rate(self) -> float:
        """The largest rate."""
        return float(self.growth.max())

    @property
    def basis(self) -> np.ndarray:
        """The growing directions, (d, k)."""
        return np.eye(len(self.growth))[:, self.growth > 0]

    def flown(self, t: float) -> np.ndarray:
        """e^{tW}, (d, d), from its own series in the nilpotent part."""
        N = self.W - np.diag(self.growth)
        terms = [np.linalg.matrix_power(N, k) * t**k / factorial(k) for k in range(len(N))]
        return np.asarray(np.diag(np.exp(self.growth * t)) @ sum(terms))

    @property
    def shrunk(self) -> float:
        """What errors are multiplied by when limits are unwound to the time 0."""
        rows = np.abs(self.flown(-self.begin))[self.growth > 0]
        return float(rows.sum(axis=1).max())

    def unwound(self, points: np.ndarray) -> np.ndarray:
        """Limits (m, k) unwound to the time 0."""
        return points @ self.basis.T @ self.flown(-self.begin).T @ self.basis

    def by_rate(self, size: np.ndarray) -> np.ndarray:
        """For each coordinate the largest size of those that share its tolerance, (d,)."""
        growth = self.growth
        if self.is_mixing:
            return np.full_like(size, size.max())
        order = np.argsort(growth)
        groups: list[list[int]] = [[]]
        least = 1e-6 * max(float(np.abs(growth).max()), 1e-300)
        for before, now in pairwise([int(order[0]), *map(int, order)]):
            if growth[now] - growth[before] > least:
                groups.append([])
            groups[-1].append(now)
        out = np.zeros_like(size)
        for group in groups:
            out[group] = size[group].max()
        return out

    def least_size(self) -> np.ndarray:
        """The size that the first tokens of the state have at least, (d,)."""
        start = self.limit.x0 @ self.flown(self.begin).T
        return self.by_rate(np.abs(start).max(axis=0))

    @cached_property
    def same_as(self) -> np.ndarray:
        """For each token the first one that stays equal to it, (n,)."""
        same = super().same_as
        if self.limit.dynamics.mask.is_causal and (same != 0).any():
            block = int(np.argmax(same != 0))
            require(
                np.array_equal(same[block:], np.arange(block, len(same))),
                "Under the causal mask only the first tokens can stay equal.",
            )
        return same

    @cached_property
    def motions(self) -> dict[bytes, Motion]:
        """What was found for each map of leaders."""
        return {}

    def read_attempt(self, number: int) -> State:
        """One of the three attempts, with its closed form."""
        leader = self.values["leader"][number]
        if self.limit.dynamics.mask.is_causal:
            require(
                leader <= np.arange(leader.shape[1]),
                f"In the state of {NAMES[number]} a token follows one that it does not see.",
            )
        key = leader.tobytes()
        if key not in self.motions:
            self.motions[key] = self._motion(leader)
        motion = self.motions[key]
        x = tuple(part.astype(np.longdouble) for part in self.values["tokens"][number])
        tolerance = float(self.values["tolerance"][number])
        value = x[0] + x[1]
        size = self.by_rate(np.abs(value).max(axis=0))
        sizes = np.maximum(self.values["start_size"][number], self.values["mixed_size"][number])
        steady = (leader[:, leader] == leader[:, None]).all(axis=(0, 1))
        extent = np.zeros_like(value)
        for kind in set(motion.kinds):
            members = [i for i, one in enumerate(motion.kinds) if one == kind]
            extent[members] = self.by_rate(np.abs(value[members] - value[members[0]]).max(axis=0))
        inside = tolerance * sizes + 2.0**-96 * size + tolerance * extent
        inside = inside + np.where(steady[:, None], 0.0, 2.0**-50 * size)
        t = float(self.values["t"][number])
        return State(t, leader, (x[0], x[1]), motion, tolerance * size + LEAK, inside + LEAK)

    def _motion(self, leader: np.ndarray) -> Motion:
        """e^{sN} in rational numbers."""
        H, m = leader.shape
        d = len(self.W)
        V = [[[Fraction(c) for c in row] for row in one.tolist()] for _, one, *_ in self.heads]
        W = [[sum((V[h][a][b] for h in range(H)), Fraction(0)) for b in range(d)] for a in range(d)]
        N: Sparse = [{} for _ in range(m * d)]
        rates = {Fraction(0)} | {W[a][a] for a in range(d)}
        for i in range(m):
            for a in range(d):
                row = N[i * d + a]
                for h in range(H):
                    for b in range(d):
                        at = int(leader[h, i]) * d + b
                        row[at] = row.get(at, Fraction(0)) + V[h][a][b]
                rates.add(sum((V[h][a][a] for h in range(H) if leader[h, i] == i), Fraction(0)))
        ordered, order = sorted(rates, reverse=True), 0
        one: Sparse = [{i: Fraction(1)} for i in range(m * d)]
        left = one
        while any(left):
            order += 1
            if order > MOST_POWER:
                raise Failed("Its leaders have no closed form with the rates of its tokens.")
            for mu in ordered:
                left = _difference(_product(N, left), left, mu)
        keys = [(mu, p) for mu in ordered for p in range(order)]
        powers = [one]
        for _ in keys[1:]:
            powers.append(_product(N, powers[-1]))
        # the k-th derivative of s^p e^{mu s} at 0 is k! / (k - p)! mu^{k - p}
        table = [
            [perm(k, p) * mu ** (k - p) if k >= p else Fraction(0) for mu, p in keys]
            for k in range(len(keys))
        ]
        found = _solved(table, powers)
        kept = [number for number, rows in enumerate(found) if any(rows)]
        exact = {keys[number]: found[number] for number in kept}
        kinds = [self._ends(exact, W, i) for i in range(m)]
        T, column = [], []
        for number in kept:
            dense, total = np.zeros((m * d, m * d)), np.zeros((m * d, d))
            for place, row in enumerate(found[number]):
                sums = [Fraction(0)] * d
                for at, value in row.items():
                    dense[place, at] = float(value)
                    sums[at % d] += value
                total[place] = [float(value) for value in sums]
            T.append(dense.reshape(m, d, m, d))
            column.append(total.reshape(m, d, d))
        return Motion([keys[number] for number in kept], T, column, kinds)

    def _ends(
        self, exact: dict[tuple[Fraction, int], Sparse], W: list[list[Fraction]], i: int
    ) -> tuple[object, ...]:
        """Where z of a token ends along the growing coordinates, as combinations of all
        coordinates; Failed where it does not converge.
        """
        d = len(W)
        grows = [a for a in range(d) if W[a][a] > 0]
        ends = {a: exact.get((W[a][a], 0), [{}] * (i * d + d))[i * d + a] for a in grows}
        N = [[Fraction(0) if a == b else W[a][b] for b in range(d)] for a in range(d)]
        power = [[Fraction(int(a == b)) for b in range(d)] for a in range(d)]
        for p in range(MOST_POWER):
            for a in grows:
                wanted: dict[int, Fraction] = {}
                for b in grows:
                    for at, value in ends[b].items():
                        wanted[at] = wanted.get(at, Fraction(0)) + power[a][b] * value
                wanted = {at: value for at, value in wanted.items() if value}
                found = exact.get((W[a][a], p), [{}] * (i * d + d))[i * d + a]
                is_larger = any(mu > W[a][a] and rows[i * d + a] for (mu, _), rows in exact.items())
                require(
                    found == wanted and not is_larger, f"z of token {i} has no limit in this state."
                )
            power = [
                [
                    sum((power[a][c] * N[c][b] for c in range(d)), Fraction(0)) / (p + 1)
                    for b in range(d)
                ]
                for a in range(d)
            ]
        return tuple(frozenset(ends[a].items()) for a in grows)

    # ----------------------------------------------------------------------------------------------
    # the steps

    def check_equation(self) -> str:
        """V_h are diagonal, or their sum is, or V has Jordan blocks."""
        require((self.growth > 0).any(), "Nothing grows.")
        one = "one head" if len(self.heads) == 1 else f"{len(self.heads)} heads"
        rates = ", ".join(f"{rate:.6g}" for rate in -np.sort(-self.growth)[:6])
        return f"{one} with different scores; rates {rates}."

    def check_form(self) -> str:
        """The closed form, in all three attempts."""
        motion = self.attempts[0].motion
        return (
            f"{len(motion.kinds)} different tokens, {len(motion.keys)} terms s^p e^(mu s), found"
            " exactly; z converges."
        )

    def points(self, one: State) -> tuple[np.ndarray, np.ndarray]:
        """The limits of an attempt and their errors, (m, k), as if it started at the time 0."""
        value, ends, errors = one.value, np.zeros(one.value.shape), np.zeros(one.value.shape)
        diagonals = np.array([np.diagonal(V) for _, V, *_ in self.heads]).T.tolist()
        rates = [
            sum(map(Fraction, one)) for one in diagonals
        ]  # exact: different ones may round to one
        for (mu, p), T in zip(one.motion.keys, one.motion.T, strict=True):
            chosen = np.array([p == 0 and rate == mu > 0 for rate in rates])
            whole = np.einsum("iajb,jb->ia", T, value)
            error = np.einsum("iajb,b->ia", np.abs(T), one.of_token)
            ends[:, chosen], errors[:, chosen] = whole[:, chosen], error[:, chosen]
        back = self.flown(-one.t)
        return ends @ back.T @ self.basis, errors @ np.abs(back).T @ self.basis

    def later(self, one: State, s: float) -> np.ndarray:
        """z (m, d) a time s after the attempt's."""
        out = np.zeros(one.value.shape, dtype=np.longdouble)
        t = self.limit.t + s
        N, growth = self.W - np.diag(self.growth), self.growth.astype(np.longdouble)
        back = sum(np.linalg.matrix_power(N, k) * (-t) ** k / factorial(k) for k in range(len(N)))
        for (mu, p), T in zip(one.motion.keys, one.motion.T, strict=True):
            whole = np.einsum("iajb,jb->ia", T, one.value) * np.longdouble(s) ** p
            out += np.exp(float(mu) * s - growth * t) * (whole @ np.asarray(back).T)
        return np.asarray(out, dtype=float)

    def later_error(self, one: State, s: float) -> np.ndarray:
        """What the errors of the tokens do to z along coordinates that do not grow, (m, d)."""
        out, back = np.zeros(one.value.shape), np.abs(self.flown(-self.limit.t - s)).T
        for (mu, p), T in zip(one.motion.keys, one.motion.T, strict=True):
            whole = np.einsum("iajb,b->ia", np.abs(T), one.of_token) * s**p * np.exp(float(mu) * s)
            out += np.asarray(whole @ back, dtype=float)
        return np.where(self.growth > 0, 0.0, out)

    def check_range(self) -> str:
        """z stays inside of what the first tokens span along each growing coordinate that no head
        turns around and no other one moves; so must its limit.
        """
        diagonals = np.array([np.diagonal(V) for _, V, *_ in self.heads])
        off = np.array([V - np.diag(np.diagonal(V)) for _, V, *_ in self.heads])
        alone = ~off.any(axis=(0, 2))
        tested = alone & (diagonals >= 0).all(axis=0) & (self.growth > 0)
        x0, points = self.limit.x0[:, tested], self.limit.points[:, tested[self.growth > 0]]
        slack = self.limit.error + 1e-9 * np.abs(self.limit.x0).max(initial=1e-300)
        require(
            (points >= x0.min(axis=0) - slack) & (points <= x0.max(axis=0) + slack),
            "A limit lies outside of what the first tokens span: the state belongs to another"
            " start.",
        )
        return (
            f"the limits lie inside of what the first tokens span, in {tested.sum()} coordinates."
        )

    def check_gaps(self) -> str:
        """Abel's test of all pairs of all heads."""
        strength = max(
            float(np.abs(np.array([V[a] for _, V, *_ in self.heads])).sum())
            for a in range(len(self.W))
        )
        mu = 0.5 * float(self.growth[self.growth > 0].min())
        smallest = np.inf
        for name, one in zip(NAMES, self.attempts, strict=True):
            size = float(np.log(np.abs(one.value).max()))
            large = LEAST_MARGIN + float(np.log(max(len(self.same_as), 2))) + max(size, 0.0)
            margin = max(large, 1.0 + 3.0 * strength / mu)
            row = self._rows(one)
            for leader in np.unique(one.leader):
                apart = self._apart(one, int(leader))
                for h in range(len(self.heads)):
                    followers = np.flatnonzero(one.leader[h] == leader)
                    slack = self._partial_sums(
                        h, one.motion.keys, followers, int(leader), row, apart, margin, mu
                    )
                    worst = float(slack.min(initial=np.inf))
                    require(
                        worst >= -ROUNDED * margin,
                        f"In the state of {name} a gap of the followers of token {int(leader)} in"
                        f" the scores {h} is not shown to stay open.",
                    )
                    smallest = min(smallest, worst / margin)
            if one is self.attempts[0]:
                self.numbers |= {"margin": margin, "mu": mu}
        m = len(self.copies)
        pairs = len(self.heads) * m * (m - 1)
        pairs //= 2 if self.limit.dynamics.mask.is_causal else 1
        self.numbers |= {"pairs": pairs, "slack": smallest}
        return (
            f"all {pairs} gaps stay above G e^(mu s) for ever, G = {self.numbers['margin']:.4g}, mu"
            f" = {mu:.4g}."
        )

    def _beside(self, one: State, i: int) -> tuple[np.ndarray, np.ndarray]:
        """(x_j - x_i, their errors), (m, d)."""
        high, low = one.x
        same = np.array([kind == one.kinds[i] for kind in one.kinds])[:, None]
        error = np.where(same, one.inside + one.inside[i], 2.0 * one.of_token)
        error[i] = 0.0
        return (high - high[i]) + (low - low[i]), error

    def _rows(self, one: State) -> list[tuple[np.ndarray, np.ndarray]]:
        """The tokens, and their errors, term by term: (m, d) each."""
        m = len(one.kinds)
        out = []
        for T, column in zip(one.motion.T, one.motion.column, strict=True):
            u, du = np.zeros(one.value.shape, np.longdouble), np.zeros(one.value.shape)
            for i in range(m):
                value, error = self._beside(one, i)
                u[i] = np.einsum("ajb,jb->a", T[i], value) + column[i] @ one.value[i]
                size = np.abs(T[i])
                du[i] = np.einsum("ajb,jb->a", size, error + ROUNDING * np.abs(value))
                du[i] += np.abs(column[i]) @ (one.of_token + ROUNDING * np.abs(one.value[i]))
            out.append((u, du))
        return out

    def _apart(self, one: State, leader: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """The leader minus each token, and the errors, term by term: (m, d) each."""
        value, error = self._beside(one, leader)
        x, out = one.value[leader], []
        for T, column in zip(one.motion.T, one.motion.column, strict=True):
            rows, rest = T[leader] - T, column[leader] - column
            blur = 2.0**-52 * (np.abs(T[leader]) + np.abs(T)) * (rows != 0)
            w = np.einsum("kajb,jb->ka", rows, value) + rest @ x
            dw = np.einsum("kajb,jb->ka", np.abs(rows), error + ROUNDING * np.abs(value))
            dw += np.einsum("kajb,jb->ka", blur, np.abs(value) + error)
            dw += np.abs(rest) @ (one.of_token + 2.0 * ROUNDING * np.abs(x))
            out.append((w, dw))
        return out

    def _partial_sums(
        self,
        h: int,
        keys: list[tuple[Fraction, int]],
        followers: np.ndarray,
        leader: int,
        row: list[tuple[np.ndarray, np.ndarray]],
        apart: list[tuple[np.ndarray, np.ndarray]],
        margin: float,
        mu: float,
    ) -> np.ndarray:
        """The smallest partial sum of each gap, (followers, m); infinite where there is no gap."""
        m = len(self.copies)
        low, shape = dict[tuple[Fraction, int], np.ndarray](), (len(followers), m)
        for (rate, p), (u, du) in zip(keys, row, strict=True):
            for (other, q), (w, dw) in zip(keys, apart, strict=True):
                least = lowest_products(
                    (u[followers], du[followers]), self.heads[h], (w[None], dw[None])
                )
                key = (rate + other, p + q)
                low[key] = low.get(key, 0.0) + least
        bonus = np.log(self.copies)
        low[Fraction(0), 0] = low.get((Fraction(0), 0), 0.0) + (bonus[leader] - bonus)[None, :]
        at = (Fraction(mu), 0)
        low[at] = low.get(at, np.zeros((1, 1))) - margin
        found = _least_partial_sum(low, shape)
        found[:, leader] = np.inf
        if self.limit.dynamics.mask.is_causal:
            found[np.arange(m)[None, :] > followers[:, None]] = np.inf
        return found


def _least_partial_sum(
    low: dict[tuple[Fraction, int], np.ndarray], shape: tuple[int, ...]
) -> np.ndarray:
    """The smallest partial sum of coefficients in the falling chain of functions, for each gap."""
    rates = sorted({rate for rate, _ in low}, reverse=True)
    parts: list[np.ndarray] = []
    for place, rate in enumerate(rates):
        step = rates[place - 1] - rate if place else Fraction(1)
        most = max(p for one, p in low if one == rate)
        # s^p = p! / step^p (p_p - p_{p-1})
        own = [low.get((rate, p), 0.0) * float(factorial(p) / step**p) for p in range(most + 1)]
        for p in range(most, -1, -1):
            above = own[p + 1] if p < most else 0.0
            parts.append(np.broadcast_to(np.asarray(own[p] - above), shape))
    return np.array(np.cumsum(np.array(parts), axis=0).min(axis=0))


def _entries(heads: list[Head]) -> list[list[list[float]]]:
    """For each place of a matrix the entries of all V_h there."""
    found: list[list[list[float]]] = np.array([V for _, V, *_ in heads]).transpose(1, 2, 0).tolist()
    return found


def _product(N: Sparse, rows: Sparse) -> Sparse:
    out: Sparse = []
    for row in N:
        total: dict[int, Fraction] = {}
        for at, factor in row.items():
            if factor:
                for column, value in rows[at].items():
                    total[column] = total.get(column, Fraction(0)) + factor * value
        out.append({column: value for column, value in total.items() if value})
    return out


def _difference(one: Sparse, other: Sparse, factor: Fraction) -> Sparse:
    """One minus factor times other."""
    out: Sparse = []
    for p, q in zip(one, other, strict=True):
        total = {at: p.get(at, Fraction(0)) - factor * q.get(at, Fraction(0)) for at in {**p, **q}}
        out.append({at: value for at, value in total.items() if value})
    return out


def _solved(table: list[list[Fraction]], powers: list[Sparse]) -> list[Sparse]:
    """The matrices T with sum_c table[k][c] T_c = powers[k], by elimination."""
    size = len(table)
    table, right = [row[:] for row in table], list(powers)
    for c in range(size):
        pivot = next(k for k in range(c, size) if table[k][c])
        table[c], table[pivot] = table[pivot], table[c]
        right[c], right[pivot] = right[pivot], right[c]
        scale = 1 / table[c][c]
        table[c] = [value * scale for value in table[c]]
        right[c] = [{at: value * scale for at, value in row.items()} for row in right[c]]
        for k in range(size):
            if k != c and table[k][c]:
                factor = table[k][c]
                table[k] = [p - factor * q for p, q in zip(table[k], table[c], strict=True)]
                right[k] = _difference(right[k], right[c], factor)
    return right


@ways.register("closed")
def verify(limit: Limit) -> Iterator[Step]:
    """The steps of the check of a flow with powers of the time."""
    return Closed(limit).steps("closed form")
