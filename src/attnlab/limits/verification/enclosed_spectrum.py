"""The eigenvalues and eigenvectors of V, enclosed again in exact rationals. No code of the prover is
used.

With R the stored vectors and C an approximate inverse, let S = I - C R and N = C V R. Then R^-1 V R
= (I - S)^-1 N differs from N by at most s / (1 - s) times the largest entry of each column, s the
largest row sum of |S|. If its Gershgorin discs are disjoint, each holds one eigenvalue; it is real,
and the eigenvectors are R (I + W) with the bounds of |W| in docs/limits.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import gmpy2
import numpy as np

from attnlab.limits.verification.enclosed_numbers import as_fraction
from attnlab.limits.verification.record import require


@dataclass(frozen=True, eq=False)
class Eigen:
    """V = right diag(rates) left, left = right^-1, each with a bound of what it is off by: arrays
    of exact fractions.
    """

    rates: np.ndarray  # (d,)
    rates_off: np.ndarray
    right: np.ndarray  # (d, d)
    right_off: np.ndarray
    left: np.ndarray
    left_off: np.ndarray

    def coordinates(self, x: np.ndarray, off: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(eigen-coordinates (m, d), what they are off by) of x (m, d), which is off by `off`."""
        return x @ self.left.T, off @ abs(self.left).T + (abs(x) + off) @ self.left_off.T

    def scores(self, M: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(right^T M right, what it is off by)."""
        size = abs(self.right)
        most = size + self.right_off
        off = most.T @ abs(M) @ most - size.T @ abs(M) @ size
        return self.right.T @ M @ self.right, off


def enclose_spectrum(
    V: np.ndarray, rates: np.ndarray, rates_off: np.ndarray, vectors: np.ndarray
) -> Eigen:
    """The Eigen of V (d, d), if the eigenvalues are rates +- rates_off and the vectors are near
    eigenvectors; or Failed.
    """
    d = len(V)
    known, known_off = as_fraction(rates), as_fraction(rates_off)
    one, zero = as_fraction(np.eye(d)), as_fraction(np.zeros((d, d)))
    if (V == np.diag(np.diagonal(V))).all():
        require(
            (rates == np.diagonal(V)) & (rates_off == 0.0) & (vectors == np.eye(d)).all(),
            "The eigenvalues of a diagonal V are its entries.",
        )
        return Eigen(known, known_off, one, zero, one, zero)
    require((rates_off >= 0.0).all(), "A bound must not be negative.")
    try:
        C = as_fraction(np.linalg.inv(vectors))
    except np.linalg.LinAlgError:
        C = zero
    R = as_fraction(vectors)
    s = abs(one - C @ R).sum(axis=1).max()
    require(s < 0.01, "The eigenvectors are not independent.")
    N = C @ as_fraction(V) @ R
    beyond = s / (1 - s) * abs(N).max(axis=0)
    middles = np.diagonal(N)
    radii = (abs(N - np.diag(middles)) + beyond).sum(axis=1)
    require(
        abs(middles - known) + radii <= known_off,
        "The eigenvalues of V are not shown to be where the proof has them.",
    )
    W = np.array(zero)
    for a in range(d):
        for c in range(d):
            if a != c:
                room = abs(middles[a] - middles[c]) - radii[a] - radii[c]
                require(room > 0, "Two eigenvalues of V cannot be told apart.")
                W[c, a] = radii[c] / room
    w = W.sum(axis=1).max()
    require(w < 0.01, "The eigenvectors are not enclosed.")
    off = 1 / ((1 - w) * (1 - s)) - 1
    left_off = np.tile(off * abs(C).sum(axis=0), (d, 1))
    require(
        abs(known) > known_off,
        "An eigenvalue of V cannot be told from 0, so it is open which grow.",
    )
    return Eigen(known, known_off, R, abs(R) @ W, C, left_off)


def falling(eigen: Eigen, mu: float) -> tuple[list[list[tuple]], dict[tuple, tuple]]:
    """(names of exponents in falling order, those together whose order is open; the name of each
    sum of a rate or 0 and a rate or 0, by the numbers of the rates, 0 being None).
    """
    d = len(eigen.rates)
    ends: dict[int | None, tuple] = {None: (gmpy2.mpq(0), gmpy2.mpq(0))}
    for number in range(d):
        rate, off = eigen.rates[number], eigen.rates_off[number]
        ends[number] = (rate - off, rate + off)
    names: dict[tuple, tuple] = {}
    between: dict[tuple, tuple] = {("value", gmpy2.mpq(mu)): (gmpy2.mpq(mu), gmpy2.mpq(mu))}
    for a in ends:
        for b in ends:
            low, high = ends[a][0] + ends[b][0], ends[a][1] + ends[b][1]
            both = tuple(sorted((-1 if one is None else one) for one in (a, b)))
            names[a, b] = ("value", low) if low == high else ("sum", both)
            between[names[a, b]] = (low, high)
    order = sorted(between, key=lambda name: -between[name][1])
    groups, lowest = [[order[0]]], between[order[0]][0]
    for name in order[1:]:
        low, high = between[name]
        if high < lowest:
            groups.append([name])
            lowest = low
        else:
            groups[-1].append(name)
            lowest = min(lowest, low)
    return groups, names
