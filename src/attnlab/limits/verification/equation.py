"""The equation of a Limit in eigen-coordinates, out of the file's own numbers, in plain NumPy.

Written apart from limits/problem.py, on purpose: the two must agree. The eigenvectors are the
stored ones, since another machine may compute others; that they are eigenvectors of V is checked.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from attnlab.limits.problem import is_covered
from attnlab.limits.products import score_matrices, sum_of
from attnlab.limits.verification.record import Failed, require
from attnlab.types import Dynamics

EPSILON = 2.0**-52
LARGEST_CONDITION = 1000.0
"""Of the eigenvectors."""

RESIDUAL = 64.0
"""|V X - X L| may be this many units of rounding, for each coordinate, times |V| and the
condition.
"""


@dataclass(frozen=True, eq=False)
class Equation:
    """c_i' = rates sum_j P_ij c_j, P_ij = softmax_j(c_i^T M c_j), in coordinates c = pairs inverse
    x.
    """

    V: np.ndarray  # (d, d), the sum over heads
    scores: np.ndarray  # (d, d), beta Q^T K
    rates: np.ndarray  # (d,)
    M: np.ndarray  # (d, d), in the coordinates c
    M_error: np.ndarray  # (d, d)
    inverse: np.ndarray  # (d, d): real eigen-coordinates y = inverse x
    pairs: np.ndarray  # (d, d): c = pairs y
    back: np.ndarray  # (d, d): y = Re(back c)
    is_growing: np.ndarray  # (d,)
    condition: float
    is_exact: bool  # V is diagonal: nothing had to be computed

    def coordinates(self, x: np.ndarray) -> np.ndarray:
        """The coordinates c of tokens x (n, d)."""
        return x @ self.inverse.T @ self.pairs.T

    def unwound(self, y: np.ndarray, t: float) -> np.ndarray:
        """Real eigen-coordinates y (n, d) of tokens at the time t, as those of z = e^{-tV} x."""
        return ((y @ self.pairs.T) * np.exp(-self.rates * t) @ self.back.T).real

    def noise(self, x: np.ndarray) -> np.ndarray:
        """What rounding may have done to the real eigen-coordinates of tokens x (n, d): (d,)."""
        if self.is_exact:
            return np.zeros(len(self.rates))
        return 8.0 * EPSILON * self.condition * (np.abs(self.inverse) @ np.abs(x).max(axis=0))

    @property
    def same_rate(self) -> float:
        """Exponents closer than this count as equal: 1e-15 of the largest where they are exact,
        else 1e-11.
        """
        return (1e-15 if self.is_exact else 1e-11) * float(np.abs(self.rates).max())


class OneHead(NamedTuple):
    """The equation as one head: V and Q, K of scores beta Q^T K, all (d, d)."""

    V: np.ndarray
    Q: np.ndarray
    K: np.ndarray
    scores: np.ndarray


def one_head(dynamics: Dynamics) -> OneHead:
    """The equation as one head: heads with equal scores add up, and heads with V = 0 do nothing."""
    require(
        dynamics.geometry.is_linear
        and dynamics.kernel.is_softmax
        and dynamics.feedforward.is_none
        and is_covered(dynamics),
        "The proof is about softmax attention in R^d without a feed-forward part, and this is"
        " another equation.",
    )
    weights = dynamics.weights
    M = score_matrices(weights)
    V, scores = weights.full_V, dynamics.beta * M
    acting = [head for head in range(weights.heads) if V[head].any()] or [0]
    require(
        all(np.array_equal(M[head], M[acting[0]]) for head in acting),
        "The heads have different scores Q^T K, and the proof is about one head.",
    )
    first = acting[0]
    return OneHead(
        V[0] if weights.heads == 1 else sum_of(V[acting]),
        weights.Q[first],
        weights.K[first],
        scores[first],
    )


def read_equation(dynamics: Dynamics, values: Mapping[str, np.ndarray]) -> Equation:
    """The equation with the stored eigenvectors; Failed where they are not those of V."""
    V, _, _, scores = one_head(dynamics)
    d = len(V)
    basis, inverse, growth, turn = (values[name] for name in ("basis", "inverse", "growth", "turn"))
    for name, array, shape in (
        ("basis", basis, (d, d)),
        ("inverse", inverse, (d, d)),
        ("growth", growth, (d,)),
        ("turn", turn, (d,)),
    ):
        require(
            array.shape == shape and array.dtype == float and np.isfinite(array).all(),
            f"{name} of the state must be {shape} finite numbers.",
        )
    first = np.flatnonzero(turn)
    require(
        (turn >= 0.0).all()
        and (not len(first) or first[-1] < d - 1)
        and (np.diff(first) > 1).all()
        and np.array_equal(growth[first], growth[first + 1]),
        "The eigenvalues of the state do not come in pairs a +- ib.",
    )
    is_exact = np.array_equal(V, np.diag(np.diagonal(V)))
    blocks = np.diag(growth)
    blocks[first, first + 1], blocks[first + 1, first] = turn[first], -turn[first]
    if is_exact:
        require(
            np.array_equal(basis, np.eye(d))
            and np.array_equal(inverse, np.eye(d))
            and np.array_equal(blocks, V),
            "V is diagonal, and the eigenvalues or eigenvectors of the state are not its own.",
        )
        condition = 1.0
    else:
        condition = float(np.linalg.cond(basis))
        require(
            condition < LARGEST_CONDITION,
            f"The eigenvectors have the condition {condition:.3g}, too large for the proof.",
        )
        allowed = RESIDUAL * EPSILON * d * condition * float(np.linalg.norm(V, 2))
        off = float(np.linalg.norm(V @ basis - basis @ blocks, 2)) / float(np.linalg.norm(basis, 2))
        require(
            off <= allowed,
            f"V X = X L is off by {off:.2g}, and rounding explains {allowed:.2g}: the weights are"
            " not those of the state.",
        )
        off = float(np.linalg.norm(inverse @ basis - np.eye(d), 2))
        require(
            off <= RESIDUAL * EPSILON * d * condition,
            f"inverse and basis of the state do not belong together, by {off:.2g}.",
        )
    return _in_coordinates(dynamics, V, scores, basis, inverse, growth, turn, condition, is_exact)


def _in_coordinates(
    dynamics: Dynamics, V, scores, basis, inverse, growth, turn, condition, is_exact
) -> Equation:
    d, first = len(V), np.flatnonzero(turn)
    values = growth + 1j * (turn - np.concatenate([[0.0], turn[:-1]]))  # a + ib, a - ib
    to_pairs = np.eye(d, dtype=complex)  # (y, y') -> (y - iy')/2 and its conjugate
    for row in first:
        to_pairs[row : row + 2, row : row + 2] = [[0.5, -0.5j], [0.5, 0.5j]]
    back = np.linalg.inv(to_pairs)
    rates = values
    if dynamics.dt is not None:
        steps = 1.0 + dynamics.dt * values
        require((np.abs(steps) >= 1e-12), "I + dt V is singular, and z does not exist.")
        rates = np.log(steps) / dynamics.dt
    own, error = scores, np.zeros((d, d))
    is_orthogonal = np.array_equal(V, V.T) and np.array_equal(scores, scores[0, 0] * np.eye(d))
    if not is_exact and not is_orthogonal:
        own = basis.T @ scores @ basis
        error = 8.0 * EPSILON * d * (np.abs(basis).T @ np.abs(scores) @ np.abs(basis))
        own = np.where(np.abs(own) <= error, 0.0, own)
    if first.size or rates.imag.any():
        own, error = back.T @ own @ back, np.abs(back.T) @ error @ np.abs(back)
        return Equation(
            V,
            scores,
            rates,
            own,
            error,
            inverse,
            to_pairs,
            back,
            rates.real > 0.0,
            condition,
            is_exact,
        )
    return Equation(
        V,
        scores,
        rates.real,
        own,
        error,
        inverse,
        np.eye(d),
        np.eye(d),
        rates.real > 0.0,
        condition,
        is_exact,
    )


def read_number(values: Mapping[str, np.ndarray], name: str) -> float:
    """A finite number of the state."""
    array = values[name]
    if array.shape != () or array.dtype.kind not in "fiu" or not math.isfinite(float(array)):
        raise Failed(f"{name} of the state must be a finite number.")
    return float(array)
