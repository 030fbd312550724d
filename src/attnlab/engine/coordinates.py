"""The coordinates a run is integrated in, and the scale its tolerance is relative to.

With adaptive steps these are eigen-coordinates of V (several heads: of their sum), in the frame x. Why not z = e^{-tV} x, in
which the theorems are stated: tokens of one cluster approach each other in z like e^{-lambda_1 t}, and once that is below
the tolerance an integrator no longer keeps their order, though that order decides who leads the cluster and where its slower
coordinates go. In x followers of one leader receive equal increments, so their differences are kept to rounding, whatever the
tolerance. Why eigen-coordinates: a coordinate that grows slowly drowns in the rounding of those that grow fast unless it is
kept apart. Each group of equal growth has a tolerance of its own, so that z is as accurate as x.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from attnlab.exponential import EIGENBASIS_LIMIT
from attnlab.types import Dynamics, Weights

SAME_GROWTH = 1e-6
"""Real parts of eigenvalues closer than this, relative to the largest, are one group."""


class Coordinates(NamedTuple):
    """x = basis y (None: y = x), V in these coordinates, and the group of each coordinate."""

    dynamics: Dynamics
    basis: np.ndarray | None
    inverse: np.ndarray | None
    block: np.ndarray | None
    group: np.ndarray               # (d,) int64, numbered from 0


def real_eigenbasis(A: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """(basis, growth, turn) with A = basis blocks basis^-1, or None where the eigenvectors are ill-conditioned.

    A pair a +- ib with eigenvector v gives the columns Re v, Im v and the block [[a, b], [-b, a]].
    """
    if np.array_equal(A, A.T):
        values, vectors = np.linalg.eigh(A)
        return vectors, values, np.zeros(len(A))
    values, vectors = np.linalg.eig(A)
    basis, growth, turn = np.empty_like(A), values.real.copy(), np.zeros(len(A))
    column = 0
    while column < len(A):
        basis[:, column] = vectors[:, column].real
        if values[column].imag != 0.0:
            vector, value = vectors[:, column], values[column]
            if value.imag < 0:
                vector, value = vector.conj(), value.conj()
            basis[:, column], basis[:, column + 1] = vector.real, vector.imag
            turn[column] = value.imag
            column += 1
        column += 1
    return (basis, growth, turn) if np.linalg.cond(basis) < EIGENBASIS_LIMIT else None


def choose_coordinates(dynamics: Dynamics, frame: str, is_adaptive: bool) -> Coordinates:
    """Eigen-coordinates of W = sum_h V_h where they are sound and of use: frame x, adaptive steps, R^d; else the user's own."""
    weights, d = dynamics.weights, dynamics.weights.d
    own = Coordinates(dynamics, None, None, None, np.zeros(d, np.int64))
    if frame != "x" or not is_adaptive or dynamics.geometry == "sphere" or weights.total.is_factored:
        return own
    W = weights.total.dense()
    if np.array_equal(W, np.diag(np.diagonal(W))):
        return Coordinates(dynamics, np.eye(d), np.eye(d), W, _groups(np.diagonal(W)))
    found = real_eigenbasis(W)
    if found is None:
        return own
    basis, growth, turn = found
    inverse = basis.T if np.array_equal(W, W.T) else np.linalg.inv(basis)
    block = np.diag(growth)
    for row in np.flatnonzero(turn):
        block[row, row + 1], block[row + 1, row] = turn[row], -turn[row]
    V = block if weights.heads == 1 else inverse @ weights.full_V @ basis
    moved = Weights(Q=weights.Q @ basis, K=weights.K @ basis, V=V, source=weights.source)
    return Coordinates(
        Dynamics(moved, dynamics.geometry, dynamics.kernel, dynamics.mask, dynamics.beta), basis, inverse, block, _groups(growth)
    )


def _groups(growth: np.ndarray) -> np.ndarray:
    order = np.argsort(growth)
    jumps = np.diff(growth[order]) > SAME_GROWTH * max(np.abs(growth).max(), 1e-300)
    group = np.empty(len(growth), np.int64)
    group[order] = np.concatenate([[0], np.cumsum(jumps)])
    return group
