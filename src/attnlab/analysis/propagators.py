"""Attention as a linear flow: the matrix that moves tokens, exactly along a run, and with P frozen
at the start.

    V_h = I:   z' = (P(t) - I) z in the time tau = H t, P the mean of the heads, so z(tau) = U(tau)
               z(0), U row-stochastic
    any V_h:   x' = sum_h P_h x V_h^T, so x(t) = G(t) x(0) with G of size n d

Frozen at t = 0 they are exp(tau (P(0) - I)) and exp(tA), A = sum_h P_h(0) kron V_h. A is never
formed where it may be large. For one head the eigenvalues of A are the products of those of P(0)
and of V, and z = e^{-tV} x obeys z' = ((P - I) kron V) z. Everything is plain NumPy and SciPy and
shares no code with the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from attnlab.types import Weights

KRYLOV = 45
"""Krylov vectors: enough for double precision where |tA| is below about 12, and all there are if
there are fewer.
"""

DENSE = 100
"""Up to so many numbers n d the matrix A is formed; beyond, ARPACK only multiplies by it."""


def carry_names(weights: Weights, x0: np.ndarray) -> tuple[Weights, np.ndarray]:
    """(weights, tokens) with n further coordinates, at first one unit vector per token, which no
    score looks at.

    With V_h = I these coordinates of z are the rows of U, since they obey the same linear equation.
    """
    n, d = x0.shape
    blind = np.zeros((weights.heads, weights.Q.shape[1], n))
    Q, K = (np.concatenate([matrix, blind], axis=2) for matrix in (weights.Q, weights.K))
    V = np.repeat(np.eye(d + n)[None], weights.heads, axis=0)
    return Weights(Q=Q, K=K, V=V, source=f"{weights.source}, tokens with names"), np.concatenate(
        [x0, np.eye(n)], axis=1
    )


def attention_of_heads(weights: Weights, x: np.ndarray) -> np.ndarray:
    """P_h of every head (h, n, n), in plain NumPy and SciPy."""
    from scipy.special import softmax

    return np.asarray(
        softmax(
            (x @ np.swapaxes(weights.Q, 1, 2))
            @ np.swapaxes(x @ np.swapaxes(weights.K, 1, 2), 1, 2),
            axis=2,
        )
    )


def mean_attention(weights: Weights, x: np.ndarray) -> np.ndarray:
    """The mean of P_h over the heads (n, n), in plain NumPy and SciPy."""
    return np.asarray(attention_of_heads(weights, x).mean(axis=0))


def generator(weights: Weights, x0: np.ndarray) -> np.ndarray:
    """P - I (n, n), P the mean attention of tokens x0 (n, d)."""
    return mean_attention(weights, x0) - np.eye(len(x0))


def frozen_flow(A: np.ndarray, x0: np.ndarray, moments: Sequence[float] | np.ndarray) -> np.ndarray:
    """exp(tau A) x0 (moment, n, d) by the eigenvectors of A; its eigenvalue 0 is exactly 0, so that
    any tau may be asked for.
    """
    values, right = np.linalg.eig(A)
    values = np.where(np.arange(len(values)) == np.argmax(values.real), 0.0, values)
    parts = np.linalg.solve(right, x0.astype(complex))
    return np.stack([((right * np.exp(tau * values)) @ parts).real for tau in moments])


def hold_attention(P: np.ndarray, z: np.ndarray, tau: float) -> np.ndarray:
    """Return exp(tau (P - I)) z (n, d): tokens z a time tau later if attention P stays as it is."""
    from scipy.linalg import expm

    return np.asarray(expm(tau * (P - np.eye(len(P)))) @ z)


def plain_propagator(
    weights: Weights, x0: np.ndarray, tau: float, p0: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(z, U, p) at tau by SciPy's DOP853: z' = (P - I) z, U' = (P - I) U, p' = (P^T - I) p, p(0) =
    p0.
    """
    from scipy.integrate import solve_ivp

    n, d = x0.shape

    def velocity(s: float, flat: np.ndarray) -> np.ndarray:
        both, p = flat[:-n].reshape(n, d + n), flat[-n:]
        P = mean_attention(weights, np.exp(s) * both[:, :d])
        return np.concatenate([(P @ both - both).ravel(), P.T @ p - p])

    start = np.concatenate([np.concatenate([x0, np.eye(n)], axis=1).ravel(), p0])
    end = solve_ivp(velocity, (0.0, tau), start, method="DOP853", rtol=1e-11, atol=1e-12).y[:, -1]
    both = end[:-n].reshape(n, d + n)
    return both[:, :d], both[:, d:], end[-n:]


def apply_values(weights: Weights, P: np.ndarray, x: np.ndarray) -> np.ndarray:
    """sum_h P_h x V_h^T (n, d) of matrices P (h, n, n), by the factors of V where it has them."""
    if not weights.is_factored:
        return np.asarray((P @ (x @ np.swapaxes(weights.V, 1, 2))).sum(axis=0))
    B, C = weights.V
    inner = P @ (x @ np.swapaxes(C, 1, 2))
    return np.asarray(np.concatenate(inner, axis=1) @ np.concatenate(B, axis=1).T)


def frozen_operator(weights: Weights, x0: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """y (n, d) -> sum_h P_h(0) y V_h^T."""
    P = attention_of_heads(weights, x0)
    return lambda y: apply_values(weights, P, y)


def frozen_value_flow(weights: Weights, x0: np.ndarray, times: np.ndarray) -> np.ndarray:
    """exp(tA) x0 (time, n, d), from Arnoldi's Krylov space of A and x0."""
    from scipy.linalg import expm

    apply = frozen_operator(weights, x0)
    size = float(np.linalg.norm(x0))
    basis, small = [x0.ravel() / size], np.zeros((KRYLOV + 1, KRYLOV))
    for k in range(min(KRYLOV, x0.size)):
        new = apply(basis[k].reshape(x0.shape)).ravel()
        length = float(np.linalg.norm(new))
        every = np.array(basis)
        for _ in range(2):  # once more, or the basis is orthogonal only to start with
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

    P, V = attention_of_heads(weights, x0), weights.full_V
    trace = float((np.trace(P, axis1=1, axis2=2) * np.trace(V, axis1=1, axis2=2)).sum())
    return np.asarray(
        expm_multiply(t * linear_operator(weights, x0), x0.ravel(), traceA=t * trace).reshape(
            x0.shape
        )
    )


def linear_operator(weights: Weights, x0: np.ndarray) -> Any:
    """A as a LinearOperator of SciPy, with its transpose: sum_h P_h^T kron V_h^T."""
    from scipy.sparse.linalg import LinearOperator

    P, V, shape = attention_of_heads(weights, x0), weights.V, x0.shape
    turned = (
        tuple(np.swapaxes(part, 1, 2) for part in V[::-1])
        if weights.is_factored
        else np.swapaxes(V, 1, 2)
    )
    back, back_P = Weights(Q=weights.Q, K=weights.K, V=turned), np.swapaxes(P, 1, 2)

    def forth(y: np.ndarray) -> np.ndarray:
        return apply_values(weights, P, y.reshape(shape)).ravel()

    def transposed(y: np.ndarray) -> np.ndarray:
        return apply_values(back, back_P, y.reshape(shape)).ravel()

    return LinearOperator((x0.size, x0.size), matvec=forth, rmatvec=transposed, dtype=float)


def frozen_by_products(weights: Weights, x0: np.ndarray, t: float) -> np.ndarray:
    """One head: e^{tV} of exp(t (P(0) - I) kron V) x0 (n, d), by the eigenvectors of P(0) (n, n)
    and of V (d, d).
    """
    mu, R = np.linalg.eig(attention_of_heads(weights, x0)[0])
    nu, S = np.linalg.eig(weights.full_V[0])
    parts = np.linalg.solve(S, np.linalg.solve(R, x0.astype(complex)).T).T
    z = R @ (parts * np.exp(t * np.outer(mu - 1, nu)))
    return np.asarray(((z * np.exp(t * nu)) @ S.T).real)


def second_order(weights: Weights, x0: np.ndarray) -> np.ndarray:
    """sum_h P_h'(0) x0 V_h^T / 2 (n, d): P_ij' = P_ij (s_ij' - sum_l P_il s_il') in each head, s'
    from x' = sum_h P_h x V_h^T.
    """
    P = attention_of_heads(weights, x0)
    velocity = apply_values(weights, P, x0)
    Q, K = np.swapaxes(weights.Q, 1, 2), np.swapaxes(weights.K, 1, 2)
    scores = (velocity @ Q) @ np.swapaxes(x0 @ K, 1, 2) + (x0 @ Q) @ np.swapaxes(velocity @ K, 1, 2)
    slope = P * (scores - (P * scores).sum(axis=2, keepdims=True))
    return apply_values(weights, slope, x0) / 2


def rightmost_eigenvector(weights: Weights, x0: np.ndarray) -> tuple[complex, np.ndarray]:
    """(eigenvalue of A with the largest real part, its eigenvector as tokens (n, d)): by A itself,
    or ARPACK where A is large.
    """
    from scipy.sparse.linalg import eigs

    if x0.size <= DENSE:
        A = np.einsum("hij,hab->iajb", attention_of_heads(weights, x0), weights.full_V).reshape(
            x0.size, x0.size
        )
        values, vectors = np.linalg.eig(A)
    else:
        values, vectors = eigs(
            linear_operator(weights, x0), k=4, which="LR", v0=x0.ravel(), ncv=40, tol=1e-10
        )
    best = int(np.argmax(values.real))
    return complex(values[best]), vectors[:, best].reshape(x0.shape)


def plain_value_propagator(weights: Weights, x0: np.ndarray, t: float) -> np.ndarray:
    """G (nd, nd) with x(t) = G x(0) for any V_h, by SciPy's DOP853: G' = (sum_h P_h kron V_h) G
    along x itself.
    """
    from scipy.integrate import solve_ivp

    size, V = x0.size, weights.full_V

    def velocity(_: float, flat: np.ndarray) -> np.ndarray:
        P = attention_of_heads(weights, flat[:size].reshape(x0.shape))
        moves = np.einsum("hij,hab->iajb", P, V).reshape(size, size)
        return np.concatenate(
            [moves @ flat[:size], (moves @ flat[size:].reshape(size, size)).ravel()]
        )

    start = np.concatenate([x0.ravel(), np.eye(size).ravel()])
    end = solve_ivp(velocity, (0.0, t), start, method="DOP853", rtol=1e-9, atol=1e-10).y[:, -1]
    return np.asarray(end[size:].reshape(size, size))


def direction_of(vector: np.ndarray) -> np.ndarray:
    """Return where exp(tA) x0 points in the end, as tokens (n, d), from the rightmost eigenvector.

    It is the real part of the eigenvector (n, d), turned so that its largest entry is real.
    """
    largest = vector.ravel()[np.argmax(np.abs(vector))]
    return np.asarray((vector * (abs(largest) / largest)).real)
