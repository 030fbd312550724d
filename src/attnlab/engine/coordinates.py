"""The coordinates in which a run is integrated, and the scale of its tolerance.

These are eigen-coordinates of V (for several heads: of their sum), in the frame x.

Why not z = e^{-tV} x, the frame of the theorems? In z the tokens of one cluster approach each other
like e^{-lambda_1 t}. When that is below the tolerance, an integrator no longer keeps their order.
But this order decides which token leads the cluster, and the limits of its slower coordinates. In x
followers of one leader receive equal increments, so their differences are kept up to rounding for
every tolerance.

Why eigen-coordinates? The rounding of fast coordinates would destroy a slow one unless they are
separate. Each group of equal growth has its own tolerance, so that z is as accurate as x.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from attnlab.engine.memory import remembered
from attnlab.exponential import EIGENBASIS_LIMIT
from attnlab.types import Dynamics, Weights

SAME_GROWTH = 1e-6
"""Real parts of eigenvalues closer than this, relative to the largest, are one group."""

MOST_DENSE = 1024
"""Up to this many coordinates the eigenvectors of a full V are computed (2 s at 768)."""


class Coordinates(NamedTuple):
    """The equation in new coordinates y, x = basis y (None: y = x). W acts on them in blocks a +-
    ib: a in growth, b in turn.
    """

    dynamics: Dynamics
    basis: np.ndarray | None
    inverse: np.ndarray | None
    growth: np.ndarray | None  # (d,)
    turn: np.ndarray | None  # (d,): b > 0 at the first of the two rows of a pair, else 0
    group: np.ndarray  # (d,) int64, numbered from 0: coordinates of equal growth


def real_eigenbasis(A: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """(basis, growth, turn) with A = basis blocks basis^-1, or None where the eigenvectors are
    ill-conditioned.

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


def factored_eigenbasis(
    left: np.ndarray, right: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None:
    """(basis, inverse, growth, turn) of W = left right, left (d, r), right (r, d), from r x r
    matrices; or None.

    With S = right left = T blocks T^-1 the columns of left T are eigenvectors; the kernel of
    `right` has the eigenvalue 0.
    """
    d, r = left.shape
    small = right @ left
    found = real_eigenbasis(small)
    if found is None or np.linalg.cond(small) > EIGENBASIS_LIMIT:
        return None
    T, growth, turn = found
    kernel = np.linalg.qr(right.T, mode="complete")[0][:, r:]  # (d, d - r), orthonormal
    lengths = np.linalg.norm(left @ T, axis=0)
    for row in np.flatnonzero(turn):
        lengths[row] = lengths[row + 1] = max(
            lengths[row], lengths[row + 1]
        )  # one for a pair, or its block would change
    T = T / lengths
    top = np.linalg.inv(T) @ np.linalg.solve(small, right)  # (r, d): the coordinates along left T
    basis = np.hstack([left @ T, kernel])
    inverse = np.vstack([top, kernel.T - (kernel.T @ left @ T) @ top])
    if np.linalg.norm(basis, 1) * np.linalg.norm(inverse, 1) > d * EIGENBASIS_LIMIT:
        return None
    return basis, inverse, np.append(growth, np.zeros(d - r)), np.append(turn, np.zeros(d - r))


def choose_coordinates(dynamics: Dynamics, frame: str) -> Coordinates:
    """Return eigen-coordinates of W = sum_h V_h if they are well-conditioned and useful (frame x in
    R^d), else the user's.
    """
    own = Coordinates(dynamics, None, None, None, None, np.zeros(dynamics.weights.d, np.int64))
    if frame != "x" or not dynamics.is_value_linear:
        return own
    return remembered(dynamics, "eigen-coordinates", lambda: _eigen_coordinates(dynamics)) or own


def _eigen_coordinates(dynamics: Dynamics) -> Coordinates | None:
    weights, d = dynamics.weights, dynamics.weights.d
    total = weights.total
    if total.left is not None and total.right is not None:
        factored = factored_eigenbasis(total.left, total.right)
        if factored is None:
            return None
        basis, inverse, growth, turn = factored
    elif np.array_equal(W := total.dense(), np.diag(np.diagonal(W))):
        same = Weights(
            Q=weights.Q, K=weights.K, V=weights.V, source=weights.source
        )  # its own, so that it can be remembered
        equal = dataclasses.replace(dynamics, weights=same)
        return Coordinates(
            equal, np.eye(d), np.eye(d), np.diagonal(W).copy(), np.zeros(d), _groups(np.diagonal(W))
        )
    else:
        found = real_eigenbasis(W) if d <= MOST_DENSE else None
        if found is None:
            return None
        basis, growth, turn = found
        inverse = basis.T if np.array_equal(W, W.T) else np.linalg.inv(basis)
    V: Any
    if weights.heads == 1:
        V = block_matrix(growth, turn)
        if total.left is not None:  # its last rows and columns are 0, exactly
            r = total.left.shape[1]
            V = (np.eye(d, r), V[:r])
    elif weights.is_factored:
        V = (inverse @ weights.V[0], weights.V[1] @ basis)
    else:
        V = _remove_rounding(inverse @ weights.V @ basis, _groups(growth))
    moved = Weights(Q=weights.Q @ basis, K=weights.K @ basis, V=V, source=weights.source)
    return Coordinates(
        dataclasses.replace(dynamics, weights=moved), basis, inverse, growth, turn, _groups(growth)
    )


def _remove_rounding(V: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Return V (h, d, d) without the rounding errors between groups, which would add fast
    coordinates to slow ones.
    """
    noise = 1e-13 * np.abs(V).max()
    return np.where((np.abs(V) < noise) & (group[:, None] != group), 0.0, V)


def is_coupled(coordinates: Coordinates) -> bool:
    """Whether some head moves one group of coordinates by another; then rounding is relative to the
    largest of all.
    """
    if coordinates.basis is None or not coordinates.group.any():
        return True
    V, group = coordinates.dynamics.weights.full_V, coordinates.group
    return bool(V[:, group[:, None] != group].any())


def block_matrix(growth: np.ndarray, turn: np.ndarray) -> np.ndarray:
    """The matrix with `growth` on its diagonal and [[a, b], [-b, a]] where turn = b."""
    block = np.diag(growth)
    for row in np.flatnonzero(turn):
        block[row, row + 1], block[row + 1, row] = turn[row], -turn[row]
    return block


def _groups(growth: np.ndarray) -> np.ndarray:
    order = np.argsort(growth)
    jumps = np.diff(growth[order]) > SAME_GROWTH * max(np.abs(growth).max(), 1e-300)
    group = np.empty(len(growth), np.int64)
    group[order] = np.concatenate([[0], np.cumsum(jumps)])
    return group
