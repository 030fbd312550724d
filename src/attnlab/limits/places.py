"""Where the tokens come to rest in all of R^d, when no direction of V grows and there is nothing to
count in F = {0}.

Four cases are proved. Elsewhere nothing is claimed: tokens may come to rest at different places, or
turn for ever.

V = 0: no token moves, whatever the attention.

All tokens equal, and all eigenvalues decay: attention does not matter, x(t) = e^{tV} x(0) -> 0.

All scores 0, no mask, and all eigenvalues decay: x_i' = V mean(x), so mean(x) -> 0, and x_i -
mean(x) does not move.

M = beta Q^T K symmetric positive definite, M V + V^T M negative definite, continuous time: all
tokens tend to 0. An example is V = -c I. Write s_ij = x_i^T M x_j, Z_i = sum_j e^{s_ij}, m_i =
sum_j P_ij x_j, so x_i' = V m_i. L = sum_ij e^{s_ij} falls: dL/dt = 2 sum_i Z_i m_i^T M V m_i. It
contains e^{s_ii}, so tokens stay bounded, and they approach states with m_i = 0 for all i. There
sum_ij s_ij e^{s_ij} = 0. All powers of the Gram matrix s, taken entry by entry, have a non-negative
sum, and s_ij^2 is one of the terms: s = 0, so x = 0. (For V = -I: Geshkovski, Letrouit, Polyanskiy,
Rigollet, arXiv:2305.05465, section 8.) Under the causal mask all decay exponentially, by induction.
Token 0 obeys x' = V x, which decays in the norm |.|_M. Once those before it decay, |x_i|_M' <= -a
P_ii |x_i|_M + b max_{j<i} |x_j|_M with a, b > 0: x_i is bounded. Its own score is not negative and
the others tend to 0, so P_ii has a positive lower bound.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.limits.problem import EPSILON, Problem
from attnlab.limits.products import score_matrices
from attnlab.limits.state import State
from attnlab.limits.undecided import undecided
from attnlab.types import Dynamics, Limit

NOTHING_GROWS = (
    "V has no eigenvalue with a positive real part, so F = {0}, and there are no limits of z to"
    " count"
)

OPEN = (
    f"Undecided (nothing grows): {NOTHING_GROWS}. Where x(t) comes to rest in R^d is certified for"
    " V = 0, and in continuous time where M = Q^T K is symmetric positive definite and M V + V^T M"
    " negative definite, as for V = -I. This equation is neither. A simulation shows where x(t)"
    " goes."
)


def is_at_rest(dynamics: Dynamics) -> bool:
    """Whether no token moves because V = 0."""
    return (
        dynamics.feedforward.is_none
        and dynamics.noise.is_none
        and not dynamics.weights.full_V.any()
    )


def resting_limit(x0: np.ndarray, times: np.ndarray, common: dict[str, Any]) -> Limit:
    """The Limit of tokens x0 (n, d) that do not move."""
    reason = "Certified: V = 0, so no token moves. F = {0}, and there are no limits of z to count."
    return _places(
        x0,
        distinct_rows(x0),
        0.0,
        f"{reason} {_counted(x0)}",
        np.tile(x0, (len(times), 1, 1)),
        times,
        common,
    )


def limit_without_growth(
    problem: Problem, x0: np.ndarray, times: np.ndarray, common: dict[str, Any]
) -> Limit:
    """The Limit of tokens x0 (n, d) when no direction grows: their places in R^d where these are
    proved, else undecided.
    """
    n, d = x0.shape
    z = np.full((len(times), n, d), np.nan)  # z is not followed here
    origin, together = np.zeros((n, d)), np.zeros(n, np.int64)
    decays, proved = bool((problem.rates.real < 0.0).all()), f"Certified: {NOTHING_GROWS}."
    if is_at_rest(problem.dynamics):
        return resting_limit(x0, times, common)
    if decays and (x0 == x0[0]).all():
        reason = (
            f"{proved} All tokens are equal and stay so, and every eigenvalue of V decays: x(t)"
            " tends to 0."
        )
        return _places(origin, together, 0.0, reason, z, times, common)
    if decays and not problem.M.any() and problem.dynamics.mask.sees_all:
        reason = (
            f"{proved} All scores are 0, so x' = V mean(x): the mean tends to 0, and no token moves"
            " relative to it."
        )
        rounding = 4.0 * EPSILON * n * float(np.abs(x0).max())
        return _places(
            x0 - x0.mean(axis=0),
            distinct_rows(x0),
            rounding,
            f"{reason} {_counted(x0)}",
            z,
            times,
            common,
        )
    if _falls_to_the_origin(problem.dynamics):
        reason = (
            f"{proved} M = Q^T K is symmetric positive definite and M V + V^T M negative definite,"
            " so all x_i(t) tend to 0 in R^d"
            f"{'' if problem.dynamics.mask.is_causal else ': the sum of exp(x_i^T M x_j) falls until they are there'}."
        )
        return _places(origin, together, 0.0, reason, z, times, common)
    return undecided(
        {**common, "times": times, "z": z, "path": np.zeros((len(times), n, 0))},
        n,
        np.zeros((d, 0)),
        OPEN,
    )


def distinct_rows(x: np.ndarray) -> np.ndarray:
    """(n,): the number of each row of x (n, d) among the different ones, in the order in which they
    first appear.
    """
    _, first, inverse = np.unique(
        x + 0.0, axis=0, return_index=True, return_inverse=True
    )  # -0 becomes 0
    return np.unique(first[inverse.ravel()], return_inverse=True)[1].astype(np.int64)


def _counted(x0: np.ndarray) -> str:
    n, count = len(x0), int(distinct_rows(x0).max()) + 1
    return (
        f"{n} token{'s' if n > 1 else ''} rest at {count} place{'s' if count > 1 else ''} in R^d."
    )


def _falls_to_the_origin(dynamics: Dynamics) -> bool:
    """Whether M = beta Q^T K is symmetric positive definite and M V + V^T M negative definite, in
    continuous time.
    """
    weights = dynamics.weights
    V, Q, K, M = (
        weights.full_V[0],
        weights.Q[0],
        weights.K[0],
        dynamics.beta * score_matrices(weights)[0],
    )
    if dynamics.dt is not None or not (np.array_equal(Q, K) or np.array_equal(M, M.T)):
        return False  # Q = K: M is symmetric, whatever the product's rounding
    size = abs(dynamics.beta) * np.abs(Q).T @ np.abs(K)
    return _is_definite(M, size) and _is_definite(-(M @ V), size @ np.abs(V))


def _is_definite(A: np.ndarray, size: np.ndarray) -> bool:
    """Whether A + A^T (d, d) is positive definite, beyond the rounding of products whose absolute
    terms add up to `size`.
    """
    rounding = 16.0 * EPSILON * len(A) * float(np.linalg.norm(size, 2))
    return bool(np.linalg.eigvalsh((A + A.T) / 2.0)[0] > rounding)


def _places(
    places: np.ndarray,
    labels: np.ndarray,
    error: float,
    reason: str,
    z: np.ndarray,
    times: np.ndarray,
    common: dict[str, Any],
) -> Limit:
    n, d = places.shape
    return Limit(
        labels=labels,
        leaders=np.full(n, -1),
        basis=np.zeros((d, 0)),
        points=np.zeros((n, 0)),
        error=error,
        grade="group",
        reason=reason,
        certificate=reason,
        places=places,
        times=times,
        z=z,
        path=np.zeros((len(times), n, 0)),
        state=State("places", {}),
        **common,
    )
