"""Limits on the sphere for V with a simple dominant eigenvalue: once all tokens lie on one side,
all end in its eigenvector.

Let lambda > 0 be a simple eigenvalue of V that is larger than the modulus of every other one, psi
its left and phi its right eigenvector. If psi^T x_i > 0 for all tokens, this remains so, and all
tokens converge to phi / |phi| with psi^T phi > 0, whatever the positive weights (docs/limits.md).
Nothing is integrated if the first tokens lie on one side.
"""

from __future__ import annotations

import contextlib
import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from attnlab.limits.allowance import Allowance
from attnlab.limits.problem import Refused
from attnlab.limits.sphere_tokens import (
    CLEAR,
    FIRST_PIECE,
    LAST_END,
    PUSH,
    RTOL,
    WORK_OF_PIECE,
    Open,
    SphereTokens,
)
from attnlab.limits.state import State, start_digest
from attnlab.limits.undecided import undecided
from attnlab.types import Dynamics, Limit

MOST_COORDINATES = 128
UP = 1.0 + 1e-9
NEEDS = (
    "On the sphere limits are computed for V = c I, c > 0, and for one head whose V has a simple,"
    " real and positive eigenvalue that is larger than the modulus of all others"
)
TOGETHER = 1e-9
"""Tokens that are this near to the end are there."""


@dataclass(frozen=True, eq=False)
class Dominant:
    """A simple dominant eigenvalue, enclosed. Coordinates y = X^-1 x: the first belongs to it."""

    basis: np.ndarray  # X (d, d), nearly eigenvectors
    inverse: np.ndarray  # Y (d, d), nearly X^-1
    low: float  # the eigenvalue is larger than this,
    others: float  # and the moduli of all others are smaller than this
    inverse_off: float  # |X^-1 v - Y v| in the largest coordinate, relative to that of Y v
    left_off: float  # psi is (1, eta) in these coordinates, |eta| <= left_off
    point: np.ndarray  # (d,): phi / |phi|
    point_off: float  # a bound of its error

    def sides(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """psi^T x for tokens x (n, d), and bounds of their errors, (n,) each."""
        y, d = x @ self.inverse.T, len(self.point)
        off = 4.0 * (d + 4) * 2.0**-53 * (np.abs(x) @ np.abs(self.inverse.T))
        off = (off + self.inverse_off * (np.abs(y) + off).max(axis=1, keepdims=True)) * UP
        rest = np.sqrt(((np.abs(y[:, 1:]) + off[:, 1:]) ** 2).sum(axis=1)) * UP
        return y[:, 0], (off[:, 0] + self.left_off * rest) * UP


def find_dominant(V: np.ndarray) -> Dominant:
    """The Dominant of V (d, d), from bounds of every rounding; or Refused."""
    d = len(V)
    if not 1 < d <= MOST_COORDINATES:
        raise Refused(
            f"{NEEDS}. This is done in 2 to {MOST_COORDINATES} coordinates, and here are {d}."
        )
    rates, vectors = np.linalg.eig(V)
    order = np.argsort(-np.abs(rates), kind="stable")
    rates, vectors = rates[order], vectors[:, order]
    if abs(rates[0].imag) > 0.0:
        raise Refused(f"{NEEDS}. Here a complex pair leads: {complex(rates[0]):.4g}.")
    if rates[0].real <= 0.0:
        raise Refused(f"{NEEDS}. Here the largest modulus belongs to {rates[0].real:.4g}.")
    columns = [vectors[:, 0].real]
    for rate, vector in zip(rates[1:], vectors.T[1:], strict=True):
        if rate.imag >= 0.0:
            columns += [vector.real] if rate.imag == 0.0 else [vector.real, vector.imag]
    X = np.stack(columns, axis=1)
    try:
        Y = np.linalg.inv(X)
    except np.linalg.LinAlgError:
        raise Refused(f"{NEEDS}. Here the eigenvectors are not independent.") from None
    rounding = 4.0 * (d + 4) * 2.0**-53
    R = np.abs(np.eye(d) - Y @ X) + rounding * (np.abs(Y) @ np.abs(X) + np.eye(d))
    r = float(R.sum(axis=1).max()) * UP
    if not r < 0.01:
        raise Refused(f"{NEEDS}. Here the eigenvectors are nearly dependent.")
    T = Y @ V @ X  # V in the coordinates y, but for `off`
    off = 2.0 * rounding * (np.abs(Y) @ np.abs(V) @ np.abs(X))
    off = (off + r / (1.0 - r) * (np.abs(T) + off).max(axis=0)) * UP
    row, column = (
        math.sqrt(((np.abs(part) + error) ** 2).sum()) * UP
        for part, error in ((T[0, 1:], off[0, 1:]), (T[1:, 0], off[1:, 0]))
    )
    block = T[1:, 1:]
    square = np.abs(block.T @ block) + rounding * (np.abs(block.T) @ np.abs(block))
    norm = (
        math.sqrt(float(square.sum(axis=1).max())) + math.sqrt(float((off[1:, 1:] ** 2).sum()))
    ) * UP
    low, others = (float(T[0, 0]) - float(off[0, 0]) - row) / UP, (norm + column) * UP
    if not low > others or not low > norm:
        raise Refused(
            f"{NEEDS}. Here it is {float(T[0, 0]):.6g}, and another has a modulus of up to"
            f" {others:.6g}."
        )
    length = float(np.linalg.norm(X[:, 0]))
    moved = float(np.sqrt((X[:, 1:] ** 2).sum())) * column / (low - norm) * UP
    return Dominant(
        X,
        Y,
        low,
        others,
        r / (1.0 - r) * UP,
        row / (low - norm) * UP,
        X[:, 0] / length,
        2.0 * moved / length * UP + 16.0 * 2.0**-53,
    )


def side_of(dominant: Dominant, x: np.ndarray, clear: float = 0.0) -> int:
    """1 or -1 where all tokens are on this side, by more than `clear` of their largest possible
    height; else 0.
    """
    height, off = dominant.sides(x)
    room = off + clear * float(np.linalg.norm(dominant.inverse[0]))
    return int((height > room).all()) - int((height < -room).all())


def half_space_limit(
    dynamics: Dynamics,
    x0: np.ndarray,
    begin: float,
    allowance: Allowance,
    times: np.ndarray,
    common: dict[str, Any],
) -> Limit:
    """The Limit of tokens that are x0 (n, d) on the sphere at the time `begin`, or Refused."""
    began, (n, d) = time.perf_counter(), x0.shape
    dominant = find_dominant(np.asarray(dynamics.weights.full_V[0]))
    z = np.full((len(times), n, d), np.nan)
    tokens = SphereTokens(dynamics, x0, RTOL, allowance, begin)
    shared = {**common, "times": times, "z": z, "path": z}
    side, why, kind = side_of(dominant, tokens.x), "", "certified"
    pieces: list[float] = []
    decided, ends = (tokens.t, tokens.x), np.zeros((2, n, d))
    try:
        if not side:
            side, pieces = _find_side(dominant, tokens)
            decided = tokens.t, tokens.x
            ends = _replicas(dynamics, dominant, x0, side, pieces, allowance)
    except Open as open_one:
        why, kind = open_one.why, open_one.kind
    if not why:
        with contextlib.suppress(Open):  # the limit stands; what was not reached stays NaN
            _fill(dominant.point * side, dynamics, x0, begin, allowance, times, z)
    shared |= {
        "t": decided[0],
        "stats": {"seconds": time.perf_counter() - began, "kind": kind, "work": allowance.used},
    }
    if why:
        return undecided(
            {**shared, "t": tokens.t},
            n,
            np.eye(d),
            f"Undecided ({kind}) at t = {tokens.t:.4g}: on the sphere {why}.",
        )
    height, _ = dominant.sides(decided[1])
    lowest = float(np.abs(height).min()) / float(np.linalg.norm(dominant.inverse[0]))
    where = "The first tokens" if not pieces else f"At t = {decided[0]:.4g} the tokens"
    reason = (
        f"Certified: {where} lie on one side of the hyperplane in which V has its other"
        f" eigenvectors, {lowest:.2g} from it at least. V has the simple dominant eigenvalue"
        f" {dominant.low:.4g}, and all others are at most {dominant.others:.4g}. So all tokens"
        " converge to its eigenvector, whatever they attend to. On the sphere nobody leads."
    )
    values = {
        "basis": dominant.basis,
        "inverse": dominant.inverse,
        "tokens": decided[1],
        "ends": ends,
        "t": np.array(decided[0]),
        "begin": np.array(begin),
        "start_digest": start_digest(dynamics, x0),
    }
    return Limit(
        labels=np.zeros(n, np.int64),
        leaders=np.full(n, -1),
        basis=np.eye(d),
        points=np.tile(dominant.point * side, (n, 1)),
        error=dominant.point_off,
        grade="group",
        reason=reason,
        certificate=reason,
        state=State("half space", values),
        **shared,
    )


def _find_side(dominant: Dominant, tokens: SphereTokens) -> tuple[int, list[float]]:
    """Integrate until all tokens are on one side; that side, and the lengths of the pieces. Open
    if they settle on two.
    """
    pieces: list[float] = []
    longest = FIRST_PIECE / dominant.low
    while True:
        before = tokens.allowance.used
        tokens.advance(longest, np.zeros(0))
        pieces.append(longest)
        side = side_of(dominant, tokens.x, CLEAR)
        if side:
            return side, pieces
        if (1.0 - np.abs(tokens.x @ dominant.point)).max() < 0.5 * TOGETHER**2 + 1e-14:
            raise Open(
                "two sides",
                "the tokens have settled on both sides, at the eigenvector of the dominant"
                " eigenvalue and opposite to it; the lemma is about one side, and such a state may"
                " last for ever or not",
            )
        if (tokens.t - tokens.begin) * dominant.low > LAST_END:
            raise Open(
                "apart", "the tokens had not come to one side by then, where the search ends"
            )
        longest *= min(2.0, WORK_OF_PIECE / (tokens.allowance.used - before))


def _replicas(
    dynamics: Dynamics,
    dominant: Dominant,
    x0: np.ndarray,
    side: int,
    pieces: list[float],
    allowance: Allowance,
) -> np.ndarray:
    """Where two perturbed replicas are at the same time, (2, n, d); Open if they are not on the
    same side.
    """
    push, ends = PUSH * np.random.default_rng(20230515).uniform(-1.0, 1.0, x0.shape), []
    for start in (x0 + push, x0 - push):
        replica = SphereTokens(dynamics, start, 10.0 * RTOL, allowance)
        for piece in pieces:
            replica.advance(piece, np.zeros(0))
        if side_of(dominant, replica.x, CLEAR) != side:
            raise Open("replicas disagree", f"starts perturbed by {PUSH:g} come to different sides")
        ends.append(replica.x)
    return np.stack(ends)


def _fill(
    point: np.ndarray,
    dynamics: Dynamics,
    x0: np.ndarray,
    begin: float,
    allowance: Allowance,
    times: np.ndarray,
    z: np.ndarray,
) -> None:
    """Tokens at the times asked for, z (T, n, d): integrated until they have come to the point."""
    tokens, longest = SphereTokens(dynamics, x0, RTOL, allowance, begin), FIRST_PIECE
    while (times >= tokens.t).any():
        if np.abs(tokens.x - point).max() < TOGETHER:
            z[times >= tokens.t] = point
            return
        before, at = allowance.used, tokens.t
        inside = (times >= at) & (times < at + longest)
        z[inside] = tokens.advance(longest, times[inside] - at)
        longest *= min(2.0, WORK_OF_PIECE / (allowance.used - before))
