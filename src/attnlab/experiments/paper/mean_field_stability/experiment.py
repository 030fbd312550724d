"""Two measures stay together: W_2(mu_t, nu_t) <= e^{Ct} W_2(mu_0, nu_0), with the constant of
analysis/stability.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.analysis.plain_flow import tangent_by_scipy
from attnlab.analysis.transport import coupling, wasserstein
from attnlab.engine import simulate
from attnlab.experiments.datasets import table_of_rows
from attnlab.experiments.parts import Context, Part, Parts
from attnlab.sweep.grid import Grid
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


def solve(
    V: np.ndarray, M: np.ndarray, starts: np.ndarray, times: np.ndarray = TIMES, rtol: float = 1e-11
) -> np.ndarray:
    """The tokens x (member, T, n, d) of several starts (member, n, d)."""
    weights = Weights(V=V, Q=np.eye(len(M)), K=M)
    return np.array(
        simulate(weights, starts, times=times, t_end=float(times[-1]), rtol=rtol, frame="x").x
    )


def tangent(V: np.ndarray, M: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The derivative of the tokens at the last time by those at 0, (nd, nd), by central differences
    with attnlab.
    """
    step = 1e-5
    nudges = step * np.eye(x.size).reshape(-1, *x.shape)
    ends = solve(V, M, np.concatenate([x + nudges, x - nudges]), TIMES[[0, -1]])[:, -1].reshape(
        2, x.size, x.size
    )
    return (ends[0] - ends[1]).T / (2 * step)


def drawn_pair(
    kind: str, V: np.ndarray, M: np.ndarray, radius: float, rng: np.random.Generator
) -> tuple[np.ndarray, ...]:
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
    """(N, rate, (change of the leader, change of the crowd)): the fastest growth of W_2 at a leader
    at -R and N tokens at R.

    d = 1, V = 1, M = -1: tokens look for their opposite. N = e^{2R²} makes crowd and leader equally
    heavy in the crowd's eyes. In the norm of W_2, |(u, v)|² = (u² + N v²) / (N + 1), the fastest
    rate is the largest eigenvalue of a symmetric part.
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


def measure_crowd(_: Context, radius: float) -> dict[str, float]:
    """N, the rate by the closed form, and the rate at which W_2 of two runs of N + 1 tokens begins
    to grow.
    """
    N, rate, change = crowd_rate(radius)
    x = np.append(-radius, np.full(N, radius))[:, None]
    y = x + 1e-5 * np.append(change[0], np.full(N, change[1]))[:, None]
    times = np.array([0.0, 2e-3 / rate])
    runs = solve(np.eye(1), -np.eye(1), np.stack([x, y]), times, 1e-13)
    far = [wasserstein(*runs[:, k]) for k in (0, 1)]
    return {
        "crowd": float(N),
        "closed_form": rate,
        "measured": float(np.log(far[1] / far[0]) / times[1]),
    }


def measure_pairs(context: Context) -> dict[str, Any]:
    """The pairs of measures, one after another from one generator, and two tangent maps computed in
    two ways.
    """
    rng = np.random.default_rng(7)
    rows: list[dict[str, Any]] = []
    checks: list[dict[str, Any]] = []
    for number in range(PAIRS[context.size]):
        context.progress(number / PAIRS[context.size], "pairs of measures")
        d, kind = 1 + number % 3, KINDS[number % len(KINDS)]
        name = "identity" if kind == "middle" else WEIGHTS[int(rng.integers(3))]
        V, M = drawn_weights(name, d, rng)
        x, y, sigma = drawn_pair(kind, V, M, RADII[(number // 4) % 3], rng)
        tokens = np.zeros((2, len(TIMES), TOKENS, 3))
        tokens[..., :d] = solve(V, M, np.stack([x, y[coupling(x, y)]]))
        rows.append(
            {"tokens": tokens, "singular_value": sigma, "kind": kind, "weights": name, "d": d}
        )
        if kind == "worst" and len(checks) < 3:
            checks.append(
                {
                    "differences": sigma,
                    "formula": np.linalg.norm(tangent_by_scipy(V, M, x, TIMES[-1]), 2),
                }
            )
    pairs = table_of_rows(rows, "pair", {"tokens": ("member", "time", "token", "coordinate")})
    return {"pairs": pairs.assign_coords(time=TIMES), "tangent": table_of_rows(checks)}


compute = Parts(
    {
        "measures": Part(measure_pairs, share=0.85),
        "crowds": Part(
            measure_crowd,
            Grid({"radius": CROWDS["full"]}, small={"radius": CROWDS["small"]}),
            "a leader and its crowd, R = {radius:g}",
            share=0.15,
        ),
    }
)
