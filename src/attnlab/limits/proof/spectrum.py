"""The eigenvalues and eigenvectors of V, enclosed.

With an approximate matrix R of eigenvectors, B = R^-1 V R is computed exactly, in fractions. It is
nearly diagonal. If its Gershgorin discs are disjoint, each holds one eigenvalue, which is real. Let
v be an eigenvector of B for the eigenvalue in the disc a. At its largest entry c, lambda lies in
the disc c, so c = a. With v_a = 1 all |v_c| <= 1, and row c of B v = lambda v gives |v_c| <= r_c /
(|B_aa - B_cc| - r_a), r the radii. So R (I + W) with known bounds of |W| are the eigenvectors.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from attnlab.limits.proof.equation import UP, NotProved
from attnlab.limits.proof.exponentials import UNIT

SLACK = 4.0
"""So that a check with another inverse finds no larger bounds, where V is not diagonal."""

LARGEST_OFF = 1e-6
"""Of the eigenvectors: beyond, eigenvalues are too close to each other."""


@dataclass(frozen=True, eq=False)
class Spectrum:
    """V = right diag(rates) left, left = right^-1; each is given by doubles and a bound of what
    they are off by.
    """

    rates: np.ndarray  # (d,)
    rates_off: np.ndarray
    right: np.ndarray  # (d, d), eigenvectors in columns
    right_off: np.ndarray
    left: np.ndarray
    left_off: np.ndarray

    @property
    def slack(self) -> float:
        """By how much the error of points is made larger, so that a check finds no larger one."""
        return SLACK if self.rates_off.any() else 1.0

    @property
    def grows(self) -> np.ndarray:
        """Which directions grow, (d,)."""
        return np.asarray(self.rates > 0.0)

    def coordinates(self, x: np.ndarray, off: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(eigen-coordinates of x (n, d), what they are off by), for x that is off by `off`."""
        size = np.abs(x) + off
        rounding = (len(self.rates) + 2) * UNIT * np.abs(self.left)
        found = off @ np.abs(self.left).T + size @ (self.left_off + rounding).T
        return x @ self.left.T, found * UP

    def scores(self, M: np.ndarray, off: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(right^T M right, what it is off by), for M that is off by `off`."""
        size, vectors = np.abs(M) + off, np.abs(self.right) + self.right_off
        rounding = 4 * (len(M) + 2) * UNIT
        one = self.right_off.T @ size @ vectors
        other = vectors.T @ size @ self.right_off
        rest = vectors.T @ (off + rounding * size) @ vectors
        return self.right.T @ M @ self.right, (one + other + rest) * UP


def find_spectrum(V: np.ndarray) -> Spectrum:
    """The Spectrum of V, or NotProved."""
    d = len(V)
    if np.array_equal(V, np.diag(np.diagonal(V))):
        zero = np.zeros((d, d))
        return Spectrum(np.diagonal(V).copy(), np.zeros(d), np.eye(d), zero, np.eye(d), zero)
    values, vectors = np.linalg.eig(V)
    if np.iscomplexobj(values):
        raise NotProved("V has complex eigenvalues, and proofs are for real ones")
    right = vectors[:, np.argsort(-values, kind="stable")]
    inverse = _inverse(_exact(right))
    if inverse is None:
        raise NotProved("V has no basis of eigenvectors that could be enclosed")
    B = _product(_product(inverse, _exact(V)), _exact(right))
    middles = [B[a][a] for a in range(d)]
    radii = [sum(abs(B[a][b]) for b in range(d) if b != a) for a in range(d)]
    W = np.zeros((d, d))
    for a in range(d):
        for c in range(d):
            room = abs(middles[a] - middles[c]) - radii[a] - radii[c]
            if a != c and room <= 0:
                raise NotProved(
                    "two eigenvalues of V cannot be told apart, and proofs are for simple ones"
                )
            if a != c:
                W[c, a] = float(radii[c] / (abs(middles[a] - middles[c]) - radii[a])) * UP
    off = float(W.sum(axis=1).max()) * UP
    if not off < LARGEST_OFF:
        raise NotProved("two eigenvalues of V are too close to each other for their eigenvectors")
    rates = np.array([float(one) for one in middles])
    rates_off = np.array([float(one) for one in radii]) + 16 * UNIT * float(np.abs(rates).max())
    rates_off *= SLACK
    if (np.abs(rates) <= rates_off).any():
        raise NotProved("an eigenvalue of V cannot be told from 0, so it is open which ones grow")
    left = np.array([[float(value) for value in row] for row in inverse])
    size = np.abs(left) * UP  # (I + W)^-1 is the identity up to off / (1 - off), entry by entry
    left_off = off / (1.0 - off) * size.sum(axis=0) + 2 * UNIT * size
    right_off = SLACK * np.abs(right) @ W
    return Spectrum(rates, rates_off, right, right_off, left, SLACK * left_off)


def _exact(array: np.ndarray) -> list[list[Fraction]]:
    return [[Fraction(float(value)) for value in row] for row in array]


def _product(one: list[list[Fraction]], other: list[list[Fraction]]) -> list[list[Fraction]]:
    columns = list(zip(*other, strict=True))
    return [
        [sum((a * b for a, b in zip(row, column, strict=True)), Fraction(0)) for column in columns]
        for row in one
    ]


def _inverse(matrix: list[list[Fraction]]) -> list[list[Fraction]] | None:
    """The exact inverse by Gauss's elimination, or None."""
    d = len(matrix)
    rows = [[*row, *(Fraction(int(a == b)) for b in range(d))] for a, row in enumerate(matrix)]
    for a in range(d):
        pivot = max(range(a, d), key=lambda b: abs(rows[b][a]))
        if rows[pivot][a] == 0:
            return None
        rows[a], rows[pivot] = rows[pivot], rows[a]
        rows[a] = [value / rows[a][a] for value in rows[a]]
        for b in range(d):
            if b != a and rows[b][a]:
                rows[b] = [
                    value - rows[b][a] * own for value, own in zip(rows[b], rows[a], strict=True)
                ]
    return [row[d:] for row in rows]
