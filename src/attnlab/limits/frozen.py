"""The flow once every row listens to one token: linear, in closed form, stored as offsets so that
nothing drowns in rounding.

    x_i = Y_base + E_root + D_i
    Y   reference of a group of leaders     times e^{rates s}
    E   leader (root) minus its reference   times e^{rates s}
    D   token minus its root                constant; along a chain of leaders D_i' = rates D_leader(i), a polynomial

Every part carries a bound of its error. Everything is scaled by 2^-shift, so that products never
overflow.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from attnlab.limits.problem import Problem

SAME_REFERENCE = 1e-2
"""Leaders closer than this, relative to the largest token, share a reference."""

SMALLEST = 1e-290
LARGEST_EXPONENT = 64
"""Everything is divided by a power of two when the largest token exceeds 2^64."""


@dataclass(eq=False)
class Frozen:
    """The tokens (one for each set of equal ones) at time t, and whom each listens to. x = 2^shift
    times what is stored.
    """

    problem: Problem
    t: float
    leader: np.ndarray  # (n,)
    root: np.ndarray  # (n,): the token at the end of the chain of leaders
    base: np.ndarray  # (n,): of a root, the number of its reference in Y
    Y: np.ndarray  # (n, d), by reference
    E: np.ndarray  # (n, d), by root
    D: np.ndarray  # (n, d), by token
    Y_error: np.ndarray
    E_error: np.ndarray
    D_error: np.ndarray
    bonus: np.ndarray  # (n,): ln of how many equal tokens each stands for, not scaled
    shift: int = 0
    is_alive: np.ndarray = field(
        default_factory=lambda: np.ones(0, bool)
    )  # (n,): False where glued to its root

    @property
    def n(self) -> int:
        """How many different tokens there are."""
        return len(self.leader)

    @property
    def is_idempotent(self) -> bool:
        """Whether all leaders lead themselves."""
        return bool((self.leader[self.leader] == self.leader)[self.is_alive].all())

    @property
    def scaled_bonus(self) -> np.ndarray:
        """The bonus in the units of scores of what is stored."""
        return np.ldexp(self.bonus, -2 * self.shift)

    @property
    def log_size(self) -> float:
        """log max |x|."""
        size = np.abs(self.positions()).max()
        return (math.log(size) if size > 0 else -math.inf) + self.shift * math.log(2.0)

    def positions(self) -> np.ndarray:
        """What is stored, added up: (n, d)."""
        return self.Y[self.base[self.root]] + self.E[self.root] + self.D

    def apart(self, i: int, k: int) -> np.ndarray:
        """x_i - x_k, formed part by part."""
        r, q = self.root[i], self.root[k]
        difference = self.D[i] - self.D[k]
        if r != q:
            difference = difference + (self.E[r] - self.E[q])
            if self.base[r] != self.base[q]:
                difference = difference + (self.Y[self.base[r]] - self.Y[self.base[q]])
        return difference

    def apart_from(self, i: int) -> np.ndarray:
        """x_i - x_k for all k, (n, d), formed part by part."""
        r, roots = self.root[i], self.root
        is_near = (self.base[roots] == self.base[r])[:, None]
        differences = (
            self.D[i] - self.D + np.where((roots != r)[:, None], self.E[r] - self.E[roots], 0.0)
        )
        return differences + np.where(is_near, 0.0, self.Y[self.base[r]] - self.Y[self.base[roots]])

    def roots_apart(self, r: int, q: int) -> tuple[np.ndarray, np.ndarray]:
        """(x_r - x_q, its error) for two roots."""
        difference, error = self.E[r] - self.E[q], self.E_error[r] + self.E_error[q]
        if self.base[r] != self.base[q]:
            difference = difference + (self.Y[self.base[r]] - self.Y[self.base[q]])
            error = error + self.Y_error[self.base[r]] + self.Y_error[self.base[q]]
        return difference, error

    def subtree(self, i: int) -> np.ndarray:
        """(n,) bool: i and all whose chain of leaders leads through i."""
        inside, at = np.arange(self.n) == i, np.arange(self.n)
        for _ in range(self.n):
            at = self.leader[at]
            reached = inside | (at == i)
            if (reached == inside).all() and (self.leader[at] == at).all():
                break
            inside = reached
        return inside

    def along_chains(self, offsets: np.ndarray, powers: np.ndarray) -> np.ndarray:
        """sum_k powers^k / k! offsets[leader^k(i)], (n, d): what D_i' = rates D_leader(i) adds up
        to, powers = rates s.
        """
        out, factor, at, count = offsets.copy(), np.ones_like(powers), self.leader, 0
        while offsets[at].any():  # roots have offset 0, so this ends with the longest chain
            count += 1
            factor = factor * powers / count
            out += factor * offsets[at]
            at = self.leader[at]
        return out

    def offsets_at(self, s: float) -> np.ndarray:
        """D a time s later, (n, d)."""
        return self.along_chains(self.D, self.problem.rates * s)

    def advance(self, s: float) -> None:
        """Go on by the time s."""
        rates = self.problem.rates
        growth, size = np.exp(rates * s), np.exp(rates.real * s)
        self.D = self.offsets_at(s)
        self.D_error = self.along_chains(self.D_error, np.abs(rates) * s)
        self._grow(growth, size, s)

    def advance_layer(self, dt: float) -> None:
        """Go on by one residual layer: as `advance`, but offsets along a chain add up once instead
        of continuously.
        """
        growth = np.exp(self.problem.rates * dt)
        self.D = self.D + (growth - 1.0) * self.D[self.leader]
        self.D_error = self.D_error + np.abs(growth - 1.0) * self.D_error[self.leader]
        self._grow(growth, np.abs(growth), dt)

    def _grow(self, growth: np.ndarray, size: np.ndarray, s: float) -> None:
        self.Y, self.E = self.Y * growth, self.E * growth
        self.Y_error, self.E_error = self.Y_error * size, self.E_error * size
        self.t += s
        for name in ("Y", "E", "D"):
            # decayed coordinates must not become denormal numbers: those are a hundred times
            # slower, and no digit of them is seen
            values = getattr(self, name)
            values[np.abs(values) < SMALLEST] = 0.0
        exponent = int(np.frexp(np.abs(self.positions()).max())[1])
        if exponent > LARGEST_EXPONENT:
            for name in ("Y", "E", "D", "Y_error", "E_error", "D_error"):
                setattr(self, name, getattr(self, name) * 2.0**-exponent)
            self.shift += exponent

    def glued_moves(self) -> np.ndarray:
        """|D| e^{-rate t}, (n, k): how far a group's limit moves along each growing coordinate if this token takes the
        lead.
        """
        rates, grows = self.problem.rates.real, self.problem.is_unstable
        return (
            math.ldexp(1.0, self.shift) * np.abs(self.D[:, grows]) * np.exp(-rates[grows] * self.t)
        )

    def limit_size(self) -> np.ndarray:
        """The largest limit along each growing coordinate, (k,)."""
        rates, grows = self.problem.rates.real, self.problem.is_unstable
        values = np.abs(self.positions()[:, grows]).max(axis=0)
        return math.ldexp(1.0, self.shift) * values * np.exp(-rates[grows] * self.t)

    def rescaled(self, s: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
        """(c e^{-rates t}, its error) of all tokens a time s later, (n, d): z in
        eigen-coordinates.
        """
        rates, scale = self.problem.rates, 2.0**self.shift
        unwound, size = np.exp(-rates * self.t), np.exp(-rates.real * self.t)
        later = np.exp(-rates * (self.t + s))
        base = self.base[self.root]
        z = scale * ((self.Y[base] + self.E[self.root]) * unwound + self.offsets_at(s) * later)
        error = scale * (
            (self.Y_error[base] + self.E_error[self.root]) * size + self.D_error * np.abs(later)
        )
        return z, error


class Tokens(Protocol):
    """What the frozen flow begins from."""

    tolerance: float  # relative error of each coordinate of the tokens
    start_size: np.ndarray  # (d,): the largest |coordinate| at time 0
    start_noise: np.ndarray  # (d,): what rounding may have done to them

    @property
    def t(self) -> float:
        """The time."""

    def values(self) -> np.ndarray:
        """The tokens in the coordinates c, (n, d)."""

    def apart(self, i: np.ndarray, k: np.ndarray) -> np.ndarray:
        """x_i - x_k without the rounding of x."""


def make_frozen(problem: Problem, flow: Tokens, leader: np.ndarray) -> Frozen:
    """The frozen flow from where `flow` is, with an acyclic map of leaders.

    Errors: of a token relative to the largest one, in each coordinate; inside a group relative to
    the group's own extent, since its tokens received equal increments from the time on when they
    came together.
    """
    values, tolerance = flow.values(), flow.tolerance
    n = len(values)
    root = leader.copy()
    while (leader[root] != root).any():
        root = leader[root]
    D = flow.apart(np.arange(n), root)
    Y, E, base = np.zeros_like(D), np.zeros_like(D), np.zeros(n, np.int64)
    references: list[int] = []
    largest = np.abs(values).max()
    for r in map(int, np.unique(root)):
        offsets = flow.apart(np.full(len(references), r), np.array(references, dtype=int))
        is_near = np.abs(offsets).max(axis=1) <= SAME_REFERENCE * largest
        if is_near.any():
            base[r] = int(np.argmax(is_near))
            E[r] = offsets[base[r]]
        else:
            base[r] = len(references)
            Y[base[r]] = values[r]
            references.append(r)
    scale = np.abs(values).max(axis=0)  # (d,)
    # what the start's coordinates are off by has grown with them
    blur = flow.start_noise * np.exp(problem.rates.real * flow.t)
    floor = tolerance * flow.start_size + 2.0**-96 * scale + blur
    Y_error = np.tile(tolerance * scale + blur, (n, 1))
    E_error, D_error = np.tile(floor, (n, 1)), np.tile(floor, (n, 1))
    roots = np.unique(root)
    for r in roots:
        E_error[r] += tolerance * np.abs(E[roots[base[roots] == base[r]]]).max(axis=0)
        D_error[root == r] += tolerance * np.abs(D[root == r]).max(axis=0)
    E_error[references], D_error[roots] = 0.0, 0.0  # these offsets are 0 by definition
    return Frozen(
        problem,
        flow.t,
        leader.astype(np.int64),
        root.astype(np.int64),
        base,
        Y,
        E,
        D,
        Y_error,
        E_error,
        D_error,
        problem.bonus,
        is_alive=np.ones(n, bool),
    )
