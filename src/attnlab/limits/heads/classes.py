"""Attention that is Boolean in every head: classes of leaders, and the flow in closed form.

L_h(i) is the token that i listens to in head h. The class condition: for every token a that leads
somebody,

    L_g(L_h(a)) = L_g(a)    for all heads g, h.

Then all tokens of a tuple (L_1(a) .. L_H(a)) have this tuple themselves. They are a class c. X_c =
sum_h (v_h / v) x_{L_h(a)} obeys X_c' = v X_c, and the differences inside the class are constant.
Every token is

    x_i(s) = Y_i e^{vs} + s K_i + D_i
    Y_i = sum_h (v_h / v) X_{c_h},     K_i = sum_h v_h (x_{L_h(i)} - X_{c_h}),     D_i = x_i - Y_i

with c_h the class of L_h(i). Tokens that give each class the same part of v have the same Y,
exactly, whatever the numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from attnlab.limits.heads.problem import HeadsProblem


@dataclass(frozen=True, eq=False)
class Map:
    """The leaders of all heads, where the class condition holds."""

    leader: np.ndarray  # (H, m)
    tuples: np.ndarray  # (C, H): the tokens of each class, head by head
    class_of: np.ndarray  # (m,): the class of a token that leads somebody, else -1
    kind: np.ndarray  # (m,): equal where each class has the same part of v
    is_steady: np.ndarray  # (m,) bool: the leaders are the tuple of one class, so that K = 0

    @property
    def is_mixed(self) -> np.ndarray:
        """(m,) bool: whether the heads of a token choose different classes."""
        chosen = self.class_of[self.leader]
        return np.asarray((chosen != chosen[0]).any(axis=0))


def in_classes(leader: np.ndarray) -> bool:
    """Whether the class condition holds: leader[g, leader[h, a]] = leader[g, a] for all heads g, h
    and every a that leads.
    """
    leading = np.unique(leader)
    return not (leader[:, leader[:, leading]] != leader[:, None, leading]).any()


def classes_of(leader: np.ndarray) -> np.ndarray:
    """The classes of leaders (H, m), tokens head by head, (C, H): tuples whose tokens all have this
    tuple.
    """
    tuples = np.unique(leader.T, axis=0)
    inside = (leader[:, tuples] == tuples.T[:, :, None]).all(axis=(0, 2))
    return np.asarray(tuples[inside])


def find_map(problem: HeadsProblem, leader: np.ndarray) -> Map | None:
    """The Map of leaders (H, m); None where the class condition fails."""
    if not in_classes(leader):
        return None
    m, leading = leader.shape[1], np.unique(leader)
    tuples, number = np.unique(leader[:, leading].T, axis=0, return_inverse=True)
    class_of = np.full(m, -1)
    class_of[leading] = number.ravel()
    kinds: dict[tuple[tuple[int, Fraction], ...], int] = {}
    kind = np.empty(m, np.int64)
    for i in range(m):
        shares: dict[int, Fraction] = {}
        for c, part in zip(class_of[leader[:, i]].tolist(), problem.parts, strict=True):
            shares[c] = shares.get(c, Fraction(0)) + part
        kind[i] = kinds.setdefault(tuple(sorted(shares.items())), len(kinds))
    first = class_of[leader[0]]
    return Map(leader, tuples, class_of, kind, (tuples[first].T == leader).all(axis=0))


@dataclass(frozen=True, eq=False)
class Frozen:
    """The tokens at time t in parts, x_i(s) = Y_i e^{vs} + s K_i + D_i, with bounds of the
    errors.
    """

    map: Map
    t: float
    log_size: float
    parts: np.ndarray  # (2, m, d): hi and lo
    Y: np.ndarray  # (m, d)
    K: np.ndarray
    D: np.ndarray
    Y_error: np.ndarray  # (d,): of every token
    D_error: np.ndarray  # (m, d): of the differences to tokens of the same kind
    K_error: np.ndarray  # (m, d): 0 where K is 0

    def at(self, rate: float, s: float) -> np.ndarray:
        """z = e^{-v (t + s)} x of all tokens a time s later, (m, d)."""
        return self.Y * np.exp(-rate * self.t) + (s * self.K + self.D) * np.exp(
            -rate * (self.t + s)
        )


def freeze(
    problem: HeadsProblem,
    map: Map,
    parts: np.ndarray,
    t: float,
    tolerance: float,
    start_size: np.ndarray,
    mixed_size: np.ndarray,
) -> Frozen:
    """The frozen flow from tokens hi + lo, parts (2, m, d).

    Errors: of a token relative to the largest one. Inside a class relative to its own extent and to
    the size that tokens had when rows were last mixed, or leaders not in classes: since then tokens
    with equal leaders have received equal increments. Tokens with other leaders in the same class
    receive increments that are rounded otherwise, 1e-16 of their size.
    """
    x, v, total = parts[0] + parts[1], problem.v, problem.total

    def apart(i: np.ndarray, k: np.ndarray) -> np.ndarray:
        return np.asarray((parts[0][i] - parts[0][k]) + (parts[1][i] - parts[1][k]))

    everyone, leading = np.arange(len(x)), np.flatnonzero(map.class_of >= 0)
    X = np.einsum("h,chd->cd", v / total, x[map.tuples])
    beside = np.zeros_like(x)  # of a leader: x_a - X of its class
    beside[leading] = sum(
        v[h] / total * apart(leading, map.leader[h, leading]) for h in range(len(v))
    )
    Y = sum(v[h] / total * X[map.class_of[map.leader[h]]] for h in range(len(v)))
    K = sum(v[h] * beside[map.leader[h]] for h in range(len(v)))
    D = sum(
        v[h] / total * (apart(everyone, map.leader[h]) + beside[map.leader[h]])
        for h in range(len(v))
    )
    K = np.where(map.is_steady[:, None], 0.0, K)
    scale = problem.size_of(x)
    extent = np.zeros_like(x)
    for number in np.unique(map.kind):
        extent[map.kind == number] = problem.size_of(D[map.kind == number])
    floor = tolerance * np.maximum(start_size, mixed_size) + 2.0**-96 * scale
    D_error = floor + tolerance * extent + np.where(map.is_steady[:, None], 0.0, 2.0**-50 * scale)
    widest = problem.size_of(beside[leading])
    K_error = np.where(
        map.is_steady[:, None],
        0.0,
        2.0 * total * (floor + tolerance * widest + 2.0**-52 * np.abs(K)),
    )
    return Frozen(
        map,
        t,
        float(np.log(scale.max())) if scale.any() else -np.inf,
        parts,
        np.asarray(Y),
        K,
        np.asarray(D),
        tolerance * scale,
        D_error,
        K_error,
    )
