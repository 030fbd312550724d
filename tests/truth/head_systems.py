"""Random systems with several heads, V_h = v_h I, for the tests of their limits; and a plain
simulation of them.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np

import attnlab as al
from attnlab.types import Limit

WIDE = 40


class HeadSystem(NamedTuple):
    """One question to al.limit: scores M (h, d, d), v (h,), first tokens x0 (n, d)."""

    M: np.ndarray
    v: np.ndarray
    x0: np.ndarray

    @property
    def weights(self) -> al.Weights:
        h, d = len(self.v), len(self.M[0])
        return al.Weights(
            Q=np.tile(np.eye(d), (h, 1, 1)), K=self.M, V=self.v[:, None, None] * np.eye(d)
        )

    def limit(self, **more) -> Limit:
        return al.limit(self.weights, self.x0, **more)


def draw_heads(seed: int) -> HeadSystem:
    """n = 6..20, d = 2, 3, two to six heads; scores positive definite or uniform in [-1, 1], v_h
    equal or not.
    """
    rng = np.random.default_rng([24, seed])
    n, d, h = int(rng.integers(6, 21)), int(rng.integers(2, 4)), int(rng.integers(2, 7))
    if seed % 2:
        M = [rng.uniform(-1, 1, (d, d)) for _ in range(h)]
    else:
        M = [B @ B.T / d + 0.3 * np.eye(d) for B in (rng.normal(size=(d, d)) for _ in range(h))]
    v = np.ones(h) if seed % 3 else rng.uniform(0.2, 1.5, h)
    return HeadSystem(np.stack(M), v, rng.uniform(-1, 1, (n, d)) * rng.choice([1.0, 2.0, 5.0]))


def widened(M: np.ndarray, v: np.ndarray, x0: np.ndarray) -> tuple[al.Weights, np.ndarray]:
    """(weights, tokens) of the same flow in WIDE coordinates: tokens (n, d) stand there several times,
    multiplied by powers of 2; queries read one copy, keys another. The first copy is x0 itself.
    """
    (n, d), heads = x0.shape, len(v)
    scale = 2.0 ** (np.arange(WIDE // d) % 5)
    tokens = np.zeros((n, WIDE))
    tokens[:, : len(scale) * d] = (scale[:, None] * x0[:, None, :]).reshape(n, -1)
    Q, K = np.zeros((2, heads, d, WIDE))
    Q[:, :, d : 2 * d], K[:, :, 3 * d : 4 * d] = np.eye(d) / scale[1], M / scale[3]
    return al.Weights(Q=Q, K=K, V=v[:, None, None] * np.eye(WIDE)), tokens


def first_copy(limit: Limit, d: int) -> Limit:
    """The Limit of `widened` tokens in the d coordinates of the first copy."""
    cut = {name: getattr(limit, name)[..., :d] for name in ("x0", "points", "z", "path")}
    return dataclasses.replace(limit, **cut, basis=np.eye(d))


def velocity(system: HeadSystem, x: np.ndarray) -> np.ndarray:
    """sum_h v_h sum_j P^h_ij x_j by loops, (n, d)."""
    out = np.zeros_like(x)
    for v, M in zip(system.v, system.M, strict=True):
        for i in range(len(x)):
            scores = [float(x[i] @ M @ x[j]) for j in range(len(x))]
            weights = [np.exp(score - max(scores)) for score in scores]
            out[i] += (
                v * sum(weight * one for weight, one in zip(weights, x, strict=True)) / sum(weights)
            )
    return out


def rescaled_by_loops(system: HeadSystem, t_end: float) -> np.ndarray:
    """z(t_end), (n, d), by SciPy."""
    from scipy.integrate import solve_ivp

    shape = system.x0.shape
    found = solve_ivp(
        lambda t, x: velocity(system, x.reshape(shape)).ravel(),
        (0.0, t_end),
        system.x0.ravel(),
        method="DOP853",
        rtol=1e-11,
        atol=1e-13,
    )
    return found.y[:, -1].reshape(shape) * np.exp(-system.v.sum() * t_end)


def expm(A: np.ndarray) -> np.ndarray:
    """e^A of a small matrix by its series, halved and squared: SciPy's asks for all cores."""
    small, term = A / 64.0, np.eye(len(A))
    total = term.copy()
    for k in range(1, 22):
        term = term @ small / k
        total += term
    return np.linalg.matrix_power(total, 64)


def by_heads(limit: Limit, order: np.ndarray) -> np.ndarray:
    """head_leaders of a Limit whose token i is token order[i] of another one, in the numbers of
    that one.
    """
    back = np.argsort(order)
    named = limit.head_leaders[:, back]
    return np.where(named >= 0, order[named], -1)


def partition(labels: np.ndarray) -> np.ndarray:
    """For each token the first one with its label."""
    return np.array([int(np.flatnonzero(labels == label)[0]) for label in labels])
