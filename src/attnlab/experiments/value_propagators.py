"""x' = sum_h P_h x V_h^T with all P_h frozen at t = 0: exp(tA) x0, A = sum_h P_h(0) kron V_h, for any V_h and without a matrix A.

For one head the eigenvalues of A are the products of those of P(0) and of V, and z = e^{-tV} x obeys z' = ((P - I) kron V) z.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from attnlab.experiments.common import heads
from attnlab.experiments.propagators import every_attention
from attnlab.types import Weights

KRYLOV = 45
"""Krylov vectors: enough to double precision where |tA| is below about 12, and all there are if there are fewer."""

ONE_DIRECTION = 0.1
"""Unit vectors that a chain of steps of at most this length joins are one direction: about six degrees, a reading of the word."""


def values_applied(weights: Weights, P: np.ndarray, x: np.ndarray) -> np.ndarray:
    """sum_h P_h x V_h^T (n, d) of matrices P (h, n, n), by the factors of V where it has them."""
    if not weights.is_factored:
        return np.asarray((P @ (x @ np.swapaxes(weights.V, 1, 2))).sum(axis=0))
    B, C = weights.V
    inner = P @ (x @ np.swapaxes(C, 1, 2))
    return np.asarray(np.concatenate(inner, axis=1) @ np.concatenate(B, axis=1).T)


def frozen_operator(weights: Weights, x0: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """y (n, d) -> sum_h P_h(0) y V_h^T."""
    P = every_attention(weights, x0)
    return lambda y: values_applied(weights, P, y)


def frozen_values(weights: Weights, x0: np.ndarray, times: np.ndarray) -> np.ndarray:
    """exp(tA) x0 (time, n, d), from Arnoldi's Krylov space of A and x0."""
    from scipy.linalg import expm

    apply = frozen_operator(weights, x0)
    size = float(np.linalg.norm(x0))
    basis, small = [x0.ravel() / size], np.zeros((KRYLOV + 1, KRYLOV))
    for k in range(min(KRYLOV, x0.size)):
        new = apply(basis[k].reshape(x0.shape)).ravel()
        length = float(np.linalg.norm(new))
        every = np.array(basis)
        for _ in range(2):                                          # once more, or the basis is orthogonal only to start with
            parts = every @ new
            new = new - parts @ every
            small[: k + 1, k] += parts
        rest = float(np.linalg.norm(new))
        if rest <= 1e-13 * length or k + 1 == min(KRYLOV, x0.size):
            break
        small[k + 1, k] = rest
        basis.append(new / rest)
    m = len(basis)
    first = expm(np.asarray(times)[:, None, None] * small[:m, :m])[:, :, 0]
    return np.asarray(size * (first @ np.array(basis)).reshape(len(times), *x0.shape))


def frozen_by_scipy(weights: Weights, x0: np.ndarray, t: float) -> np.ndarray:
    """exp(tA) x0 (n, d) once more: SciPy's expm_multiply on A as an operator."""
    from scipy.sparse.linalg import expm_multiply

    P, V = every_attention(weights, x0), weights.full_V
    trace = float((np.trace(P, axis1=1, axis2=2) * np.trace(V, axis1=1, axis2=2)).sum())
    return np.asarray(expm_multiply(t * linear_operator(weights, x0), x0.ravel(), traceA=t * trace).reshape(x0.shape))


def linear_operator(weights: Weights, x0: np.ndarray) -> Any:
    """A as a LinearOperator of SciPy, with its transpose: sum_h P_h^T kron V_h^T."""
    from scipy.sparse.linalg import LinearOperator

    P, V, shape = every_attention(weights, x0), weights.V, x0.shape
    turned = tuple(np.swapaxes(part, 1, 2) for part in V[::-1]) if weights.is_factored else np.swapaxes(V, 1, 2)
    back, back_P = Weights(Q=weights.Q, K=weights.K, V=turned), np.swapaxes(P, 1, 2)

    def forth(y: np.ndarray) -> np.ndarray:
        return values_applied(weights, P, y.reshape(shape)).ravel()

    def transposed(y: np.ndarray) -> np.ndarray:
        return values_applied(back, back_P, y.reshape(shape)).ravel()

    return LinearOperator((x0.size, x0.size), matvec=forth, rmatvec=transposed, dtype=float)


def frozen_by_products(weights: Weights, x0: np.ndarray, t: float) -> np.ndarray:
    """One head: e^{tV} of exp(t (P(0) - I) kron V) x0 (n, d), by the eigenvectors of P(0) (n, n) and of V (d, d)."""
    mu, R = np.linalg.eig(every_attention(weights, x0)[0])
    nu, S = np.linalg.eig(weights.full_V[0])
    parts = np.linalg.solve(S, np.linalg.solve(R, x0.astype(complex)).T).T
    z = R @ (parts * np.exp(t * np.outer(mu - 1, nu)))
    return np.asarray(((z * np.exp(t * nu)) @ S.T).real)


def second_order(weights: Weights, x0: np.ndarray) -> np.ndarray:
    """sum_h P_h'(0) x0 V_h^T / 2 (n, d): P_ij' = P_ij (s_ij' - sum_l P_il s_il') in each head, s' from x' = sum_h P_h x V_h^T."""
    P = every_attention(weights, x0)
    velocity = values_applied(weights, P, x0)
    Q, K = np.swapaxes(weights.Q, 1, 2), np.swapaxes(weights.K, 1, 2)
    scores = (velocity @ Q) @ np.swapaxes(x0 @ K, 1, 2) + (x0 @ Q) @ np.swapaxes(velocity @ K, 1, 2)
    slope = P * (scores - (P * scores).sum(axis=2, keepdims=True))
    return values_applied(weights, slope, x0) / 2


def rightmost(weights: Weights, x0: np.ndarray) -> tuple[complex, np.ndarray]:
    """(eigenvalue of A with the largest real part, its eigenvector as tokens (n, d)): by A itself, or ARPACK where A is large."""
    from scipy.sparse.linalg import eigs

    if x0.size <= 100:
        A = np.einsum("hij,hab->iajb", every_attention(weights, x0), weights.full_V).reshape(x0.size, x0.size)
        values, vectors = np.linalg.eig(A)
    else:
        values, vectors = eigs(linear_operator(weights, x0), k=4, which="LR", v0=x0.ravel(), ncv=40, tol=1e-10)
    best = int(np.argmax(values.real))
    return complex(values[best]), vectors[:, best].reshape(x0.shape)


def foretold_tokens(vector: np.ndarray) -> np.ndarray:
    """Where exp(tA) x0 points in the end: the real part of the eigenvector (n, d), turned so that its largest entry is real."""
    largest = vector.ravel()[np.argmax(np.abs(vector))]
    return np.asarray((vector * (abs(largest) / largest)).real)


def direction_count(x: np.ndarray) -> int:
    """The number of directions of the tokens (n, d); 0 where they are not known."""
    from attnlab.analysis.clusters import cluster_count

    return int(cluster_count(x / np.linalg.norm(x, axis=1, keepdims=True), ONE_DIRECTION))


@cache
def seed_of_head(many: int, d: int, is_good: bool) -> int:
    """The seed of the many-th synthetic head, counted from seed 100 on, that is (or is not) a good triple."""
    from attnlab.analysis.spectra import is_good_triple

    seed = 100 if many == 1 else seed_of_head(many - 1, d, is_good) + 1
    while is_good_triple(heads.synthetic_heads(1, d, "own", rng=seed)) != is_good:
        seed += 1
    return seed


def plain_value_propagator(weights: Weights, x0: np.ndarray, t: float) -> np.ndarray:
    """G (nd, nd) with x(t) = G x(0) for any V_h, by SciPy's DOP853: G' = (sum_h P_h kron V_h) G along x itself."""
    from scipy.integrate import solve_ivp

    size, V = x0.size, weights.full_V

    def velocity(_: float, flat: np.ndarray) -> np.ndarray:
        P = every_attention(weights, flat[:size].reshape(x0.shape))
        moves = np.einsum("hij,hab->iajb", P, V).reshape(size, size)
        return np.concatenate([moves @ flat[:size], (moves @ flat[size:].reshape(size, size)).ravel()])

    start = np.concatenate([x0.ravel(), np.eye(size).ravel()])
    end = solve_ivp(velocity, (0.0, t), start, method="DOP853", rtol=1e-9, atol=1e-10).y[:, -1]
    return np.asarray(end[size:].reshape(size, size))
