"""The set in which the difference of the true tokens to the polynomial lies, and how a step moves
it.

The set is {G r : |r_a| <= sizes_a}, G a matrix over all coordinates of all tokens. During a step
the linearised flow moves it: on a piece, y' = J y with a known J(s). What is left, E = x - p - y,
begins at 0 in each step and is bounded by the comparison system. So errors of before are turned and
stretched with their signs, and cancel where they cancel; only errors made within the step are
bounded by norms. At its end the set is enclosed in a new one, whose G is nearly orthogonal
(Lohner).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attnlab.limits.proof.comparison import comparison_matrices, find_bounds, propagate
from attnlab.limits.proof.equation import UP, Equation, NotProved
from attnlab.limits.proof.exponentials import UNIT
from attnlab.limits.proof.jacobian import ORDER, Linearised, differences, jacobian, linearise
from attnlab.limits.proof.pairs import Pairs
from attnlab.limits.proof.ranges import Ranges

TERMS = 5
"""Of y on a piece: its order in the time."""

SLACK = 1.1
"""So that a check with other discs and bases finds no larger bound."""

TUBE_ROOM = 2.0
"""The tube above what it must be, for the same reason."""


@dataclass(frozen=True, eq=False)
class Spread:
    """{G r : |r| <= sizes}: G (n d, n d), sizes (n d,)."""

    G: np.ndarray
    sizes: np.ndarray

    @classmethod
    def point(cls, n: int, d: int) -> Spread:
        """No difference at all."""
        return cls(np.eye(n * d), np.zeros(n * d))

    def norms(self, n: int) -> np.ndarray:
        """Bounds (n,) of the norm of each token's part."""
        return token_norms(np.abs(self.G) @ self.sizes, n)


def token_norms(values: np.ndarray, n: int) -> np.ndarray:
    """Bounds (n,) of the norms of n tokens with coordinates of these moduli."""
    return np.asarray(np.sqrt((values.reshape(n, -1) ** 2).sum(axis=1)) * UP)


def pair_norms(G: np.ndarray, sizes: np.ndarray, pairs: Pairs, n: int) -> np.ndarray:
    """Bounds of the norms of y_j - y_l, (pairs,), for y = G r with |r| <= sizes."""
    parts = G.reshape(n, -1, len(sizes))
    apart = np.abs(parts[pairs.column] - parts[pairs.leader]) @ sizes
    return np.asarray(np.sqrt((apart**2).sum(axis=1)) * UP)


@dataclass(frozen=True, eq=False)
class Moved:
    """A Spread moved by the linearised flow of a step."""

    G: np.ndarray
    during: np.ndarray  # (pieces, n): bounds of |y| on each piece
    apart: np.ndarray  # (pieces, pairs): bounds of |y_j - y_l|
    defect: np.ndarray  # (pieces, n): by how much y' = J y fails, per unit of s
    jumps: np.ndarray  # (pieces, n): the rounding of G at the end of each piece


def move(
    equation: Equation,
    ranges: Ranges,
    found: Linearised,
    h: float,
    leader: np.ndarray,
    spread: Spread,
) -> Moved:
    """The Spread at the end of a step if y' = J(s) y on each piece."""
    n, d, length = len(leader), len(equation.V), 1.0 / ranges.pieces
    G, sizes, others = spread.G, spread.sizes, np.setdiff1d(np.arange(n), found.rows)
    rows = (found.rows[:, None] * d + np.arange(d)).ravel()
    V = equation.V * (h * length)  # the rows that only attend to their leaders
    V_size = np.abs(V)
    during, defect, jumps = (np.zeros((ranges.pieces, n)) for _ in range(3))
    apart = np.zeros((ranges.pieces, len(found.kept)))
    for number in range(ranges.pieces):
        J = _from_start(jacobian(equation, found, number, leader)) * (
            h * length
        )  # the matrix that y obeys, rounded
        J_size = np.abs(J)

        def slope(parts: list[np.ndarray], k: int, J: np.ndarray, V: np.ndarray) -> np.ndarray:
            """The coefficient k of J y, if parts has those of y."""
            value = np.zeros_like(parts[0])
            for b in range(max(0, k - len(parts) + 1), min(k, ORDER) + 1):
                value[rows] += J[b] @ parts[k - b]
            if k < len(parts):
                of_tokens = parts[k].reshape(n, d, -1)[leader[others]]
                value.reshape(n, d, -1)[others] = V @ of_tokens
            return value

        parts, bounds = [G], [np.abs(G) @ sizes]
        for k in range(TERMS):
            parts.append(slope(parts, k, J, V) / (k + 1))
            bounds.append(slope(bounds, k, J_size, V_size) / (k + 1))
        G, total = np.add.reduce(parts), np.add.reduce(bounds)
        left_out = np.add.reduce(
            [slope(bounds, k, J_size, V_size) for k in range(TERMS, TERMS + ORDER + 1)]
        )
        during[number] = token_norms(total, n)
        apart[number] = sum(pair_norms(part, sizes, found.pairs, n) for part in parts)
        defect[number] = token_norms(left_out, n) / length
        jumps[number] = token_norms(4.0 * (n * d + 10 * TERMS) * UNIT * total, n)
    row, column = ranges.pairs.leader, ranges.pairs.column
    of_pairs = (during[:, row] + during[:, column]) * UP
    rounding = 2.0 * jumps[:, row] + 2.0 * jumps[:, column]
    of_pairs[:, found.kept] = np.minimum(
        of_pairs[:, found.kept], (apart + rounding[:, found.kept]) * UP
    )
    return Moved(G, during, of_pairs, defect, jumps)


def _from_start(J: np.ndarray) -> np.ndarray:
    """Taylor coefficients at the middle of a piece, in half lengths, as those at its start, in
    lengths; J is of order 2.
    """
    return np.stack([J[0] - J[1] + J[2], 2.0 * J[1] - 4.0 * J[2], 4.0 * J[2]])


def follow(
    equation: Equation,
    ranges: Ranges,
    h: float,
    leader: np.ndarray,
    defect: np.ndarray,
    spread: Spread,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(G at the end of the step, the bound of E there, the tube in which E stays); or NotProved."""
    n, pairs = len(leader), ranges.pairs
    found = linearise(equation, ranges, leader)
    moved = move(equation, ranges, found, h, leader, spread)
    during, apart = SLACK * moved.during, SLACK * moved.apart
    of_pairs = np.zeros((ranges.pieces, n, n))
    of_pairs[:, pairs.row, pairs.column] = apart
    tube = 20.0 * h * defect + 1e-300
    for _ in range(8):
        around = (apart + tube[pairs.column] + tube[pairs.leader]) * UP
        bounds = find_bounds(equation, ranges, leader, during + tube, around)
        A = comparison_matrices(equation, ranges, h, leader, bounds)
        D = differences(equation, ranges, found, h, leader, bounds)
        made = (h * defect + moved.defect + D.applied(during, of_pairs)) * UP
        with np.errstate(over="ignore", invalid="ignore"):
            rest = propagate(A, made, np.zeros(n), moved.jumps)
        if rest is None:
            break
        E, largest = rest
        if (TUBE_ROOM * largest <= tube).all():
            return moved.G, E, tube
        tube = np.maximum(2.0 * tube, 4.0 * largest)
    raise NotProved("the error bound does not stay inside its tube")


def enclose_again(G: np.ndarray, sizes: np.ndarray, E: np.ndarray) -> Spread:
    """A Spread that holds {G r + E : |r| <= sizes, |E_i| <= E (n,)} for every token i."""
    n, count = len(E), len(G)
    order = np.argsort(-np.sqrt((G**2).sum(axis=0)) * sizes, kind="stable")
    Q = np.linalg.qr(G[:, order] * sizes[order] if sizes.any() else np.eye(count))[0]
    turned, parts = (
        np.abs(Q.T @ G) @ sizes,
        np.sqrt((Q.T.reshape(count, n, -1) ** 2).sum(axis=2)) @ E,
    )
    rounding = 4.0 * count * UNIT
    turned = turned + rounding * (np.abs(Q.T) @ (np.abs(G) @ sizes))
    found = (turned + parts) * UP
    # Q^-1 = (I - W)^-1 Q^T with W = I - Q^T Q
    W = np.abs(np.eye(count) - Q.T @ Q) + rounding * (np.abs(Q.T) @ np.abs(Q))
    off = float(W.sum(axis=1).max()) * UP
    if not off < 0.01:
        raise NotProved("the coordinates of the error set are not independent")
    return Spread(Q, (found + off / (1.0 - off) * float(found.max())) * UP)
