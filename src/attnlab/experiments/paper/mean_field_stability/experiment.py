"""Two measures stay together: W_2(mu_t, nu_t) <= e^{Ct} W_2(mu_0, nu_0), with a constant that is written down.

The constant. All tokens of both measures are in the ball of radius R. X[mu](x) = V m(x), m(x) the average of y against the
weights w(y) = e^{<a, y>} / int e^{<a, y>} dmu, a = M^T x, M = Q^T K, so |a| <= |M| R for tokens.

 1. In x: the Jacobian of X[mu] is V Cov M^T, Cov the covariance under w, at most R²:            |V| |M| R².
 2. In mu: join pairs (y, y') of an optimal coupling pi by straight lines y_s and let delta = y' - y. Then
        dm/ds = E_w[ delta + (y_s - m) <a, delta> ],  |dm/ds| <= int w |delta| (1 + |a| |y_s - m|) dpi
    and by Cauchy and Schwarz, with w <= e^{2|a|R} and E_w |y_s - m|² <= R²,
        |X[mu](x) - X[nu](x)| <= |V| (1 + |M| R²) e^{|M| R²} W_2(mu, nu).
 3. Tokens that are coupled optimally at time 0 and stay coupled have distances whose root mean square grows at most at the rate
        L(R) = |V| ( |M| R² + (1 + |M| R²) e^{|M| R²} ),
    and W_2 is at most that. As |x'| <= |V| R, R(s) <= R e^{|V| s}: log(W_2(t) / W_2(0)) <= int_0^t L(R e^{|V| s}) ds. The same
    from t back to 0: the logarithm is bounded from below as well.
In the largest distance instead of W_2 no factor e^{|M| R²} is needed: the rate is |V| (1 + 2 |M| R²).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray
from scipy.integrate import solve_ivp
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from attnlab.engine import simulate
from attnlab.experiments.common.mean_field import wasserstein
from attnlab.experiments.datasets import table
from attnlab.progress import Progress
from attnlab.types import Weights

PAIRS = {"full": 200, "small": 20}
CROWDS = {"full": (0.75, 1.0, 1.25, 1.5, 1.75, 2.0), "small": (0.75, 1.0, 1.25, 1.5, 1.75)}
TIMES = np.linspace(0.0, 1.0, 11)
TOKENS, RADII, NUDGE = 20, (0.4, 0.7, 1.0), 1e-4
KINDS = ("independent", "near", "worst", "middle")
WEIGHTS = ("identity", "minus", "random")


def drawn_weights(name: str, d: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """(V, M), both of norm 1."""
    if name == "random":
        V, M = (A / np.linalg.norm(A, 2) for A in rng.normal(size=(2, d, d)))
        return V, M
    return (1.0 if name == "identity" else -1.0) * np.eye(d), np.eye(d)


def ball(d: int, radius: float, rng: np.random.Generator) -> np.ndarray:
    """Tokens uniform in a ball, the outermost on its edge."""
    x = rng.normal(size=(TOKENS, d))
    x *= (rng.uniform(size=(TOKENS, 1)) ** (1 / d)) / np.linalg.norm(x, axis=1, keepdims=True)
    return radius * x / np.linalg.norm(x, axis=1).max()


def solve(V: np.ndarray, M: np.ndarray, starts: np.ndarray, times: np.ndarray = TIMES, rtol: float = 1e-11) -> np.ndarray:
    """The tokens x (member, T, n, d) of several starts (member, n, d)."""
    weights = Weights(V=V, Q=np.eye(len(M)), K=M)
    return np.array(simulate(weights, starts, times=times, t_end=float(times[-1]), rtol=rtol, frame="x").x)


def tangent(V: np.ndarray, M: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The derivative of the tokens at the last time by those at 0, (nd, nd), by central differences with attnlab."""
    step = 1e-5
    nudges = step * np.eye(x.size).reshape(-1, *x.shape)
    ends = solve(V, M, np.concatenate([x + nudges, x - nudges]), TIMES[[0, -1]])[:, -1].reshape(2, x.size, x.size)
    return (ends[0] - ends[1]).T / (2 * step)


def tangent_of_formula(V: np.ndarray, M: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The same from the closed form of the Jacobian, in plain NumPy, by SciPy's DOP853: nothing of attnlab is in it."""
    n, d = x.shape

    def rate(_: float, state: np.ndarray) -> np.ndarray:
        at, D = state[:n * d].reshape(n, d), state[n * d:].reshape(n * d, n * d)
        scores = at @ M @ at.T
        P = np.exp(scores - scores.max(axis=1, keepdims=True))
        P /= P.sum(axis=1, keepdims=True)
        mean = P @ at
        apart = at[None] - mean[:, None]                                                            # (i, m, d)
        J = np.einsum("im,ab->iamb", P, V) + np.einsum("im,ac,imc,ib->iamb", P, V, apart, at @ M)
        covariance = np.einsum("im,imc,ime->ice", P, apart, apart)
        J[np.arange(n), :, np.arange(n), :] += V @ covariance @ M.T
        return np.concatenate([(mean @ V.T).ravel(), (J.reshape(n * d, n * d) @ D).ravel()])

    start = np.concatenate([x.ravel(), np.eye(n * d).ravel()])
    return solve_ivp(rate, (0, TIMES[-1]), start, method="DOP853", rtol=1e-9, atol=1e-11).y[n * d:, -1].reshape(n * d, n * d)


def drawn_pair(kind: str, V: np.ndarray, M: np.ndarray, radius: float, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """(x, y, the largest singular value of the tangent map at x)."""
    d = len(V)
    x = ball(d, radius, rng)
    if kind == "independent":
        return x, ball(d, radius, rng), np.array(np.nan)
    if kind == "middle":
        # two camps and a token that hesitates between them
        x = 0.02 * ball(d, 1.0, rng)
        x[:, 0] += 0.98 * radius * np.where(np.arange(TOKENS) % 2, 1, -1)
        x[0] = 0.0
    _, sizes, directions = np.linalg.svd(tangent(V, M, x))
    nudge = directions[0].reshape(x.shape) if kind == "worst" else rng.normal(size=x.shape)
    if kind == "middle":
        nudge = np.eye(TOKENS, d) * (np.arange(TOKENS) == 0)[:, None]
    return x, x + NUDGE * np.sqrt(TOKENS) * nudge / np.linalg.norm(nudge), sizes[0]


def crowd_rate(radius: float) -> tuple[int, float, np.ndarray]:
    """(N, rate, (change of the leader, change of the crowd)): the fastest growth of W_2 at a leader at -R and N tokens at R.

    d = 1, V = 1, M = -1: tokens look for their opposite. N = e^{2R²} makes crowd and leader equally heavy in the crowd's eyes.
    In the norm of W_2, |(u, v)|² = (u² + N v²) / (N + 1), the fastest rate is the largest eigenvalue of a symmetric part.
    """
    N = round(float(np.exp(2 * radius**2)))
    x, mass = np.array([-radius, radius]), np.array([1.0, N])
    P = mass * np.exp(-np.outer(x, x))
    P /= P.sum(axis=1, keepdims=True)
    mean = P @ x
    J = P * (1 - (x[None] - mean[:, None]) * x[:, None]) - np.diag(P @ x**2 - mean**2)
    root = np.sqrt(mass)
    inside = J * root[:, None] / root[None]
    values, vectors = np.linalg.eigh((inside + inside.T) / 2)
    return N, float(values[-1]), vectors[:, -1] / root


def measured_crowd_rate(radius: float) -> tuple[int, float, float]:
    """(N, the rate by the closed form, the rate at which W_2 of two runs of N + 1 tokens begins to grow)."""
    N, rate, change = crowd_rate(radius)
    x = np.append(-radius, np.full(N, radius))[:, None]
    y = x + 1e-5 * np.append(change[0], np.full(N, change[1]))[:, None]
    times = np.array([0.0, 2e-3 / rate])
    runs = solve(np.eye(1), -np.eye(1), np.stack([x, y]), times, 1e-13)
    far = [wasserstein(*runs[:, k]) for k in (0, 1)]
    return N, rate, float(np.log(far[1] / far[0]) / times[1])


def compute(size: str, progress: Progress) -> dict[str, Any]:
    """The pairs, two tangent maps computed in two ways, and the crowds with their leaders."""
    rng = np.random.default_rng(7)
    shape = (PAIRS[size], 2, len(TIMES), TOKENS, 3)
    tokens, largest, columns = np.zeros(shape), np.full(PAIRS[size], np.nan), []
    checks: list[tuple[float, float]] = []
    for number in range(PAIRS[size]):
        progress(0.8 * number / PAIRS[size], "pairs of measures")
        d, kind = 1 + number % 3, KINDS[number % len(KINDS)]
        name = "identity" if kind == "middle" else WEIGHTS[int(rng.integers(3))]
        radius = RADII[(number // 4) % 3]
        V, M = drawn_weights(name, d, rng)
        x, y, sigma = drawn_pair(kind, V, M, radius, rng)
        y = y[_coupling(x, y)]
        tokens[number, ..., :d], largest[number] = solve(V, M, np.stack([x, y])), sigma
        columns.append((kind, name, d))
        if kind == "worst" and len(checks) < 3:
            checks.append((float(sigma), float(np.linalg.norm(tangent_of_formula(V, M, x), 2))))
    progress(0.85, "crowds and leaders")
    crowds = np.array([(radius, *measured_crowd_rate(radius)) for radius in CROWDS[size]])
    kinds, names, dimensions = zip(*columns, strict=True)
    pairs = xarray.Dataset(
        {"tokens": (("pair", "member", "time", "token", "coordinate"), tokens), "singular_value": ("pair", largest),
         "kind": ("pair", np.array(kinds)), "weights": ("pair", np.array(names)), "d": ("pair", np.array(dimensions))},
        coords={"time": TIMES})
    progress(1.0)
    return {"pairs": pairs, "tangent": table(dict(zip(("differences", "formula"), np.array(checks).T, strict=True))),
            "crowds": table(dict(zip(("radius", "crowd", "closed_form", "measured"), crowds.T, strict=True)))}


def _coupling(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The token of y that each token of x is coupled with, optimally for W_2."""
    return np.asarray(linear_sum_assignment(cdist(x, y, "sqeuclidean"))[1])


def rate(R: np.ndarray) -> np.ndarray:
    """L(R) of the proof above, with |V| = |M| = 1."""
    return np.asarray(R**2 + (1 + R**2) * np.exp(R**2))
