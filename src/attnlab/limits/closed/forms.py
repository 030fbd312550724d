"""The tokens as functions of the time while leaders stay: terms s^p e^{mu s} sum A x B^T.

A (m, m) combines tokens, B (d, d) coordinates. `CoordinateForm` is for several heads with diagonal
V_h: each coordinate is an equation of its own. `OwnForm` is for several heads with any V_h whose sum
is diagonal. `JordanForm` is for one head with V = D + N, D
diagonal, N nilpotent and D N = N D, where e^{sV} = e^{sD} sum_k s^k N^k / k!.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import factorial
from typing import NamedTuple, Protocol

import numpy as np

from attnlab.limits.closed.solution import Key, Row, Solution, solve


class Piece(NamedTuple):
    """A x B^T. total (m,) are the sums of the rows of A, which are exact."""

    A: np.ndarray
    total: np.ndarray
    B: np.ndarray


class Form(Protocol):
    """A flow in closed form."""

    terms: dict[Key, list[Piece]]
    kind: np.ndarray  # (m,): equal where two tokens have the same limit
    is_steady: np.ndarray  # (m,): whether the token moves as its leader, or its class
    is_mixed: np.ndarray  # (m,): whether its heads choose leaders with different limits
    converges: bool  # whether z has limits along all growing coordinates

    def points(self, x: np.ndarray, t: float) -> np.ndarray:
        """The limits of z, (m, d), of tokens x at the time t; 0 along coordinates that do not
        grow.
        """

    def points_error(self, error: np.ndarray, t: float) -> np.ndarray:
        """What errors (d,) of all tokens do to the limits, (m, d)."""

    def rescaled(self, x: np.ndarray, t: float, s: float) -> np.ndarray:
        """z = e^{-(t + s) W} x(s) of the tokens x of the time t, (m, d)."""


class CoordinateForm:
    """Several heads, v_h of each coordinate: values (H, d)."""

    def __init__(self, values: np.ndarray, solutions: dict[tuple[float, ...], Solution], m: int):
        columns = [tuple(column) for column in values.T.tolist()]
        self.rates = np.array([float(sum(map(Fraction, one))) for one in columns])
        self.parts: list[tuple[np.ndarray, Fraction, Solution]] = []
        for one, solution in solutions.items():
            inside = np.array([column == one for column in columns])
            self.parts.append((inside, sum(map(Fraction, one), Fraction(0)), solution))
        self.terms: dict[Key, list[Piece]] = {}
        for inside, _, solution in self.parts:
            for key in sorted({key for one in solution for key in one}):
                rows = [one.get(key, {}) for one in solution]
                piece = Piece(*_dense(rows, m), np.diag(inside.astype(float)))
                self.terms.setdefault(key, []).append(piece)
        growing = [(rate, solution) for _, rate, solution in self.parts if rate > 0]
        self.converges = not any(
            mu > rate or (mu == rate and p > 0)
            for rate, solution in growing
            for one in solution
            for mu, p in one
        )
        numbers: dict[tuple[frozenset[tuple[int, Fraction]], ...], int] = {}
        self.kind = np.empty(m, np.int64)
        for i in range(m):
            ends = tuple(
                frozenset(solution[i].get((rate, 0), {}).items()) for rate, solution in growing
            )
            self.kind[i] = numbers.setdefault(ends, len(numbers))
        self.is_steady = np.zeros(m, bool)
        self.is_mixed = np.zeros(m, bool)

    def points(self, x: np.ndarray, t: float) -> np.ndarray:
        """The limits of z, (m, d)."""
        out = np.zeros_like(x)
        for inside, rate, A in self._leading():
            out[:, inside] = (A @ x[:, inside]) * np.exp(-rate * t)
        return out

    def points_error(self, error: np.ndarray, t: float) -> np.ndarray:
        """What errors (d,) of all tokens do to the limits, (m, d)."""
        out = np.zeros((len(self.kind), len(error)))
        for inside, rate, A in self._leading():
            whole = np.abs(A).sum(axis=1)[:, None] * error[inside]
            out[:, inside] = whole * np.exp(-rate * t)
        return out

    def _leading(self) -> Iterator[tuple[np.ndarray, float, np.ndarray]]:
        """(which coordinates, their rate, what of each token grows like the limits) where they
        grow.
        """
        for inside, rate, solution in self.parts:
            if rate > 0:
                rows = [one.get((rate, 0), {}) for one in solution]
                yield inside, float(rate), _dense(rows, len(rows))[0]

    def rescaled(self, x: np.ndarray, t: float, s: float) -> np.ndarray:
        """z at the time t + s, (m, d)."""
        out = np.zeros_like(x)
        for inside, rate, solution in self.parts:
            for mu, p in {key for one in solution for key in one}:
                A, _ = _dense([one.get((mu, p), {}) for one in solution], len(x))
                factor = s**p * np.exp(float(mu - rate) * s - float(rate) * t)
                out[:, inside] += factor * (A @ x[:, inside])
        return out


class JordanForm:
    """One head, V = D + N, all leaders lead themselves."""

    def __init__(self, V: np.ndarray, leader: np.ndarray):
        m = len(leader)
        self.V, self.leader = V, leader
        exact = [[Fraction(value) for value in row] for row in V.tolist()]
        d, follow, every = len(V), _map(leader), np.eye(m)
        self.terms: dict[Key, list[Piece]] = {}
        for rate, p, power in powers_of(exact):
            B = np.array([[float(value) for value in row] for row in power]) / factorial(p)
            self.terms.setdefault((rate, p), []).append(Piece(follow, np.ones(m), B))
        rest = Piece(every - follow, np.zeros(m), np.eye(d))
        self.terms.setdefault((Fraction(0), 0), []).append(rest)
        self.kind = np.unique(leader, return_inverse=True)[1].astype(np.int64)
        self.is_steady = np.ones(m, bool)
        self.is_mixed = np.zeros(m, bool)
        self.converges = True

    def points(self, x: np.ndarray, t: float) -> np.ndarray:
        """The limits of z, (m, d): leaders, unwound."""
        found = x[self.leader] @ exponential(self.V, -t).T
        return np.where(np.diagonal(self.V) > 0.0, found, 0.0)

    def points_error(self, error: np.ndarray, t: float) -> np.ndarray:
        """What errors (d,) of all tokens do to the limits, (m, d)."""
        found = np.where(np.diagonal(self.V) > 0.0, np.abs(exponential(self.V, -t)) @ error, 0.0)
        return np.broadcast_to(found, (len(self.leader), len(error)))

    def rescaled(self, x: np.ndarray, t: float, s: float) -> np.ndarray:
        """z at the time t + s, (m, d)."""
        leader = x[self.leader]
        rest = (x - leader) @ exponential(self.V, -t - s).T
        return np.asarray(leader @ exponential(self.V, -t).T + rest)


class OwnForm:
    """Several heads with any V_h whose sum W is diagonal, exactly; each token moves as a class.

    Leaders of one class all move by e^{sW} U, U = sum_h V_h x_{L_h}, and so do their followers: x(s) =
    x + W^{-1} (e^{sW} - 1) U.
    """

    def __init__(self, V: np.ndarray, leader: np.ndarray):
        H, m = leader.shape
        d, every = V.shape[1], np.eye(m)
        self.V, self.leader, self.rates = V, leader, exact_diagonal(V) or []
        zero, ones = (Fraction(0), 0), np.ones(m)
        self.terms: dict[Key, list[Piece]] = {zero: [Piece(every, ones, np.eye(d))]}
        for h in range(H):
            follow = _map(leader[h])
            for rate in sorted(set(self.rates)):
                inside = np.array([one == rate for one in self.rates])
                B = np.where(inside[:, None], V[h], 0.0) / (float(rate) or 1.0)
                key = (rate, 0) if rate else (Fraction(0), 1)
                self.terms.setdefault(key, []).append(Piece(follow, ones, B))
                if rate:
                    self.terms[zero].append(Piece(-follow, -ones, B))
        self.kind = np.unique(leader, axis=1, return_inverse=True)[1].ravel().astype(np.int64)
        self.is_steady, self.is_mixed = np.ones(m, bool), np.zeros(m, bool)
        self.converges = True

    def _scales(self, t: float) -> np.ndarray:
        """e^{-rate t} / rate where a coordinate grows, else 0, (d,)."""
        return np.array(
            [np.exp(-float(one) * t) / float(one) if one > 0 else 0.0 for one in self.rates]
        )

    def _moves(self, x: np.ndarray) -> np.ndarray:
        """U = sum_h V_h x_{L_h}, (m, d), as W x_l + sum_h V_h (x_{L_h} - x_l) with l the first leader:
        V_h x_l need not cancel, which would leave rounding of the largest coordinate in all others.
        """
        first = x[self.leader[0]]
        beside = np.einsum("hab,hib->ia", self.V, x[self.leader] - first)
        return np.asarray(first * np.array([float(one) for one in self.rates]) + beside)

    def points(self, x: np.ndarray, t: float) -> np.ndarray:
        """The limits of z, (m, d): W^{-1} e^{-tW} U."""
        return self._moves(x) * self._scales(t)

    def points_error(self, error: np.ndarray, t: float) -> np.ndarray:
        """What errors (d,) of all tokens do to the limits, (m, d)."""
        out = np.zeros((len(self.kind), len(error)))
        for kind in np.unique(self.kind):
            members = self.kind == kind
            own = self.leader[:, int(np.argmax(members))]
            # heads with one leader act on it together
            size = sum(np.abs(self.V[own == one].sum(axis=0)) for one in np.unique(own))
            out[members] = (size @ error) * self._scales(t)
        return out

    def rescaled(self, x: np.ndarray, t: float, s: float) -> np.ndarray:
        """z at the time t + s, (m, d)."""
        rates = np.array([float(one) for one in self.rates])
        U, safe = self._moves(x), np.where(rates == 0, 1, rates)
        moved = np.where(rates == 0.0, s, -np.expm1(-rates * s) / safe) * np.exp(-rates * t)
        return np.asarray(x * np.exp(-rates * (t + s)) + U * moved)


def exact_diagonal(V: np.ndarray) -> list[Fraction] | None:
    """The diagonal of the sum of V (H, d, d), exactly; None where the sum is not diagonal."""
    d = V.shape[1]
    total = [
        [sum((Fraction(float(one[a, b])) for one in V), Fraction(0)) for b in range(d)]
        for a in range(d)
    ]
    if any(total[a][b] for a in range(d) for b in range(d) if a != b):
        return None
    return [total[a][a] for a in range(d)]


def own_form(leader: np.ndarray, V: np.ndarray) -> OwnForm | None:
    """The form for leaders (H, m) and V (H, d, d); None where some token does not move as a
    class.
    """
    is_steady = all(_follows_class(leader, i) for i in range(leader.shape[1]))
    return OwnForm(V, leader) if is_steady else None


def coordinate_form(leader: np.ndarray, values: np.ndarray) -> CoordinateForm | None:
    """The form for leaders (H, m) and the diagonals of V_h, values (H, d); None where there is no
    solution.
    """
    solutions: dict[tuple[float, ...], Solution] = {}
    for column in values.T.tolist():
        if tuple(column) not in solutions:
            found = solve(leader, [Fraction(value) for value in column])
            if found is None:
                return None
            solutions[tuple(column)] = found
    m = leader.shape[1]
    form = CoordinateForm(values, solutions, m)
    form.is_steady = np.array([_follows_class(leader, i) for i in range(m)])
    ends = form.kind[leader]
    form.is_mixed = np.asarray((ends != ends[0]).any(axis=0))
    return form


def jordan_form(leader: np.ndarray, V: np.ndarray) -> JordanForm | None:
    """The form for one head with leaders (1, m); None where a leader follows another token."""
    own = leader[0]
    return JordanForm(V, own) if np.array_equal(own[own], own) else None


def _follows_class(leader: np.ndarray, i: int) -> bool:
    """Whether all leaders of i have the leaders that i has."""
    return bool((leader[:, leader[:, i]] == leader[:, i][:, None]).all())


def powers_of(V: Sequence[Sequence[Fraction]]) -> list[tuple[Fraction, int, list[list[Fraction]]]]:
    """(mu, p, N^p restricted to the coordinates with D_a = mu), as long as they are not 0, for each
    value mu of D, V = D + N.
    """
    d, found = len(V), []
    for rate in sorted({V[a][a] for a in range(d)}):
        inside = [a for a in range(d) if V[a][a] == rate]
        power = [[Fraction(int(a == b and a in inside)) for b in range(d)] for a in range(d)]
        p = 0
        while any(value for row in power for value in row) and p <= d:
            found.append((rate, p, power))
            power = [
                [
                    sum((power[a][c] * V[c][b] for c in inside if c != b), Fraction(0))
                    if b in inside
                    else Fraction(0)
                    for b in range(d)
                ]
                for a in range(d)
            ]
            p += 1
    return found


def exponential(V: np.ndarray, t: float) -> np.ndarray:
    """e^{tV} of V = D + N, (d, d)."""
    d = len(V)
    D = np.diagonal(V)
    N, power, total = V - np.diag(D), np.eye(d), np.eye(d)
    for k in range(1, d):
        power = power @ N * (t / k)
        total = total + power
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(np.exp(D * t)[:, None] * total)


def _map(leader: np.ndarray) -> np.ndarray:
    A = np.zeros((len(leader), len(leader)))
    A[np.arange(len(leader)), leader] = 1.0
    return A


def _dense(rows: Sequence[Row], m: int) -> tuple[np.ndarray, np.ndarray]:
    """(A (m, m), the sums of its rows), each rounded once."""
    A = np.zeros((m, m))
    for i, row in enumerate(rows):
        for j, value in row.items():
            A[i, j] = float(value)
    return A, np.array([float(sum(row.values(), Fraction(0))) for row in rows])
