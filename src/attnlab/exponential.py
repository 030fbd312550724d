"""e^{tA} applied to tokens, for a full matrix or a product of thin factors, without overflow.

It imports no other part of the equation, so that the records can derive one frame from the other.
Everything works on a `Matrix`, which is either full (d, d) or B C with B (d, r), C (r, d):

    e^{tBC} = I + t B phi1(t C B) C,   phi1(s) = (e^s - 1) / s        (r x r matrices only)

and every result has a separate scale: e^{tA} = e^{rate t} * (returned value), rate = max
Re(eigenvalue).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from attnlab.displayed import Displayed, short_repr

EIGENBASIS_LIMIT = 1e3
"""Eigenvectors are used up to this condition number. They lose this factor, and 1e3 * 1e-16 is
below every tolerance.
"""

PROJECTOR_LIMIT = 1e3
"""A spectral projector of larger norm is refused, because it loses this factor in accuracy."""


@dataclass(frozen=True, eq=False)
class Matrix(Displayed):
    """A real d x d matrix, full (`full`) or as factors left (d, r) @ right (r, d)."""

    full: np.ndarray | None = None
    left: np.ndarray | None = None
    right: np.ndarray | None = None
    __repr__ = short_repr

    @property
    def small(self) -> np.ndarray:
        """The matrix with these eigenvalues (and zeros for factors): (d, d) or right @ left (r,
        r).
        """
        if self.full is not None:
            return self.full
        assert self.left is not None and self.right is not None
        return self.right @ self.left

    @property
    def is_factored(self) -> bool:
        """Whether only the factors are kept."""
        return self.full is None

    def scaled(self, factor: float) -> Matrix:
        """factor * A."""
        if self.full is not None:
            return Matrix(full=factor * self.full)
        assert self.left is not None
        return Matrix(left=factor * self.left, right=self.right)

    def apply(self, y: np.ndarray) -> np.ndarray:
        """A y for every row of y (..., n, d)."""
        if self.full is not None:
            return y @ self.full.T
        assert self.left is not None and self.right is not None
        return (y @ self.right.T) @ self.left.T

    def dense(self) -> np.ndarray:
        """The (d, d) array."""
        if self.full is not None:
            return self.full
        assert self.left is not None and self.right is not None
        return self.left @ self.right

    @cached_property
    def eigenvalues(self) -> np.ndarray:
        """The eigenvalues of `small`, and one 0 more for factors (their kernel)."""
        values = np.linalg.eigvals(self.small)
        return np.append(values, 0.0) if self.is_factored else values


def _linalg() -> Any:
    """Return scipy.linalg, imported at first use: its import is slower than that of attnlab may
    be.
    """
    from scipy import linalg

    return linalg


def spectral_projector(A: np.ndarray) -> np.ndarray | None:
    """Return the projector on the sum of eigenspaces with Re > 0 along the others, or None if it is
    ill-conditioned.

    From an ordered real Schur form [[S, R], [0, T]] and the Sylvester equation S X - X T = -R.
    """
    d = A.shape[0]
    if not A.any():
        return np.zeros_like(A)
    # sort="rhp" would count -0.0 and rounding-level values by their sign; an eigenvalue that small
    # never matters.
    tiny = 1e-13 * np.abs(A).max()
    T, Z, k = _linalg().schur(A, output="real", sort=lambda re, im: re > tiny)
    if k == 0:
        return np.zeros_like(A)
    if k == d:
        return np.eye(d)
    try:
        X = _linalg().solve_sylvester(T[:k, :k], -T[k:, k:], -T[:k, k:])
    except _linalg().LinAlgError:
        return None
    if not np.isfinite(X).all() or np.linalg.norm(X, 2) > PROJECTOR_LIMIT:
        return None
    top = np.hstack([np.eye(k), -X])  # (k, d)
    return Z[:, :k] @ top @ Z.T


def _phi1(s: np.ndarray) -> np.ndarray:
    """(e^s - 1) / s, exact at 0."""
    small = np.abs(s) < 1e-8
    safe = np.where(small, 1.0, s)
    return np.where(small, 1.0 + 0.5 * s, np.expm1(safe) / safe)


@dataclass(frozen=True, eq=False)
class Exponential(Displayed):
    """e^{tA} for one A and many t. `method` says how: zero, scalar, symmetric, eigen or pade."""

    A: Matrix
    __repr__ = short_repr

    @cached_property
    def rate(self) -> float:
        """max Re(eigenvalue) of A: e^{tA} = e^{rate t} (what `apply` returns), t of either sign."""
        return float(self.A.eigenvalues.real.max()) if self.method != "zero" else 0.0

    @cached_property
    def method(self) -> str:
        """How the exponential is formed; `pade` where the eigenbasis is ill-conditioned."""
        small = self.A.small
        if not small.any() and (not self.A.is_factored or not self.A.dense().any()):
            return "zero"
        if not self.A.is_factored and np.array_equal(small, small[0, 0] * np.eye(len(small))):
            return "scalar"
        if np.array_equal(small, small.T) and not self.A.is_factored:
            return "symmetric"
        values, vectors = np.linalg.eig(small)
        return "eigen" if np.linalg.cond(vectors) < EIGENBASIS_LIMIT else "pade"

    @cached_property
    def _basis(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if self.method == "symmetric":
            values, vectors = np.linalg.eigh(self.A.small)
            return values, vectors, vectors.T
        values, vectors = np.linalg.eig(self.A.small)
        return values, vectors, np.linalg.inv(vectors)

    def matrix(self, t: float) -> np.ndarray:
        """e^{t (A - rate)} as an array (d, d)."""
        return self.apply(t, np.eye(self._d)).T

    @property
    def _d(self) -> int:
        return len(self.A.full if self.A.full is not None else self.A.left)  # type: ignore[arg-type]

    def apply(self, t: float, y: np.ndarray) -> np.ndarray:
        """e^{t (A - rate)} y for every row of y (..., n, d)."""
        if self.method in ("zero", "scalar") or t == 0.0:
            return np.array(y, dtype=float)
        shift = self.rate * t
        if self.A.is_factored:
            return self._apply_factored(t, shift, y)
        if self.method == "pade":
            return y @ _linalg().expm(t * self.A.small - shift * np.eye(self._d)).T
        values, vectors, inverse = self._basis
        return np.real(((y @ inverse.T) * np.exp(t * values - shift)) @ vectors.T)

    def apply_scaled(self, t: float, y: np.ndarray, log_scale: np.ndarray) -> np.ndarray:
        """Return e^{log_scale} e^{tA} y, log_scale (...) for y (..., n, d). A huge and a tiny
        factor may cancel.
        """
        scale = np.asarray(log_scale)[..., None, None]
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            if self.method in ("symmetric", "eigen") and not self.A.is_factored:
                values, vectors, inverse = self._basis
                coordinates = y @ inverse.T
                moved = np.where(
                    coordinates == 0, 0.0, coordinates * np.exp(t * values + scale)
                )  # 0 times inf is 0 here
                return np.real(moved @ vectors.T)
            half = np.exp(
                0.5 * (scale + self.rate * t)
            )  # in two halves, so that large times small does not overflow
            return self.apply(t, y) * half * half

    def _apply_factored(self, t: float, shift: float, y: np.ndarray) -> np.ndarray:
        left, right = self.A.left, self.A.right
        assert left is not None and right is not None
        thin = y @ right.T  # (..., n, r)
        scale = np.exp(-shift)
        if self.method == "pade":
            r = thin.shape[-1]
            block = np.zeros((2 * r, 2 * r))  # e^[[S, I], [0, 0]] = [[e^S, phi1(S)], [0, I]]
            block[:r, :r] = t * self.A.small
            block[:r, r:] = np.eye(r)
            moved = thin @ (_linalg().expm(block - shift * np.eye(2 * r))[:r, r:] * t).T
        else:
            values, vectors, inverse = self._basis
            s = t * values
            # phi1 e^{-shift} without forming e^s first: s may be 1000
            is_large = s.real > 1.0
            large = (np.exp(s - shift) - scale) / np.where(is_large, s, 1.0)
            factor = np.where(is_large, large, _phi1(np.where(is_large, 0.0, s)) * scale)
            moved = np.real(((thin @ inverse.T) * (t * factor)) @ vectors.T)
        return scale * y + moved @ left.T
