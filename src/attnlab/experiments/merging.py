"""Clusters of a flow with several heads, on the clock of its growth: how many, when they merge, where they are, who holds them.

    tau = rho t,  rho the spectral radius of W = sum_h V_h;  with V_h = I it is H, and z = e^{-tau} x

For V_h = I the shape that is looked at is z; with other V_h, where z need not converge, x scaled to its first size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from attnlab.analysis.clusters import OBSERVED_SCALE, cluster_centres, cluster_count, cluster_labels
from attnlab.analysis.distances import diameter
from attnlab.analysis.hull import hull_violation
from attnlab.experiments.heads import in_span
from attnlab.types import Trajectory, Weights

EARLY, END = 8.0, 28.0
"""Leaders change until about EARLY, where small steps are needed; END is where double precision comes to its end."""

CLOCK = np.array([*np.arange(0.0, EARLY), EARLY, 10.0, 12.0, 14.0, 16.0, 20.0, END - 1.0, END])
"""The saved tau."""

AT_REST = 1e-3
"""A run is at rest when no token moves more than this in the last unit of tau, over the first diameter."""


@dataclass(frozen=True, eq=False)
class Shapes:
    """shapes (T, n, k) at the saved tau; last: the run that holds the end, for its attention."""

    tau: np.ndarray
    shapes: np.ndarray
    last: Trajectory
    is_complete: bool

    @property
    def scale(self) -> float:
        """The length of a step that joins two tokens of a cluster."""
        return OBSERVED_SCALE * float(diameter(self.shapes[0]))

    @property
    def labels(self) -> np.ndarray:
        """The clusters at the end, (n,)."""
        return cluster_labels(self.shapes[-1], self.scale)

    @property
    def centres(self) -> np.ndarray:
        """Their centres, (count, k)."""
        return cluster_centres(self.shapes[-1], self.labels)


def growth_rate(weights: Weights) -> float:
    """The spectral radius of sum_h V_h."""
    return float(np.abs(np.linalg.eigvals(weights.full_V.sum(axis=0))).max())


def follow(weights: Weights, x0: np.ndarray, values: str, step: float, rate: float | None = None) -> Shapes:
    """The flow up to tau = END by Runge and Kutta's steps; `step` in tau, for V_h = I five times that when leaders are settled.

    rate: growth_rate(weights), where it is known already; in many dimensions it costs more than the run.
    """
    if values == "identity":
        return _with_identity(weights, x0, step)
    return _with_own_values(weights, x0, step, growth_rate(weights) if rate is None else rate)


def _with_identity(weights: Weights, x0: np.ndarray, step: float) -> Shapes:
    from attnlab.engine import simulate

    weights, start, _ = in_span(weights, x0)
    heads = weights.heads
    early, late = CLOCK[CLOCK <= EARLY], CLOCK[CLOCK >= EARLY] - EARLY
    options: dict[str, Any] = {"stepper": "rk4", "frame": "z", "throw": False}
    first = simulate(weights, start, times=early / heads, t_end=EARLY / heads, dt=step / heads, **options)
    if not first.is_ok:
        return _shapes(first.z, first, is_complete=False)
    second = simulate(weights, first.x[-1], times=late / heads, t_end=(END - EARLY) / heads, dt=5 * step / heads, **options)
    assert first.z is not None and second.z is not None
    return _shapes(np.concatenate([first.z, math.exp(-EARLY) * second.z[1:]]), second, is_complete=second.is_ok)


def _with_own_values(weights: Weights, x0: np.ndarray, step: float, rate: float) -> Shapes:
    from attnlab.engine import simulate

    run = simulate(weights, x0, times=CLOCK / rate, t_end=END / rate, dt=step / rate, stepper="rk4", frame="x", throw=False)
    states, _ = run.scaled_x()                                       # up to a factor that each time has of its own
    sizes = np.linalg.norm(states, axis=-1).max(axis=-1)[:, None, None]
    return _shapes(states / sizes * float(np.linalg.norm(x0, axis=-1).max()), run, is_complete=run.is_ok)


def _shapes(shapes: Any, last: Trajectory, *, is_complete: bool) -> Shapes:
    return Shapes(CLOCK[: len(shapes)], np.asarray(shapes), last, is_complete)


def counts_over_time(flow: Shapes) -> np.ndarray:
    """The number of clusters at each tau of CLOCK; NaN where the run did not get."""
    counts = np.full(len(CLOCK), np.nan)
    counts[: len(flow.tau)] = cluster_count(flow.shapes, flow.scale)
    return counts


def count_at_end(flow: Shapes) -> np.ndarray:
    """The same with the last number only, for runs that need not come to rest."""
    counts = np.full(len(CLOCK), np.nan)
    counts[len(flow.tau) - 1] = len(flow.centres)
    return counts


def last_merging(counts: np.ndarray) -> float:
    """The tau of CLOCK from which on the number of clusters (T,) is that of the end."""
    known = counts[np.isfinite(counts)]
    other = np.flatnonzero(known != known[-1])
    return float(CLOCK[other[-1] + 1]) if len(other) else 0.0


def movement(flow: Shapes) -> float:
    """How far a token moves in the last unit of tau, over the first diameter."""
    return float(np.linalg.norm(flow.shapes[-1] - flow.shapes[-2], axis=-1).max() / diameter(flow.shapes[0]))


def outer(centres: np.ndarray, scale: float) -> np.ndarray:
    """Which of centres (m, k) are vertices of their hull, and farther than `scale` outside that of the others: (m,) booleans."""
    others = [np.delete(centres, i, axis=0) for i in range(len(centres))]
    return np.array([float(hull_violation(rest, centres[i])) > scale for i, rest in enumerate(others)])


def held(flow: Shapes) -> tuple[float, int]:
    """(the least share of attention, over heads, that a vertex of the centres' hull keeps for itself; centres that are none).

    A cluster that is a vertex and gives attention to others moves inwards, so at rest the share is 1. (1, 0) for one cluster.
    """
    from attnlab.dynamics import attention

    labels, centres = flow.labels, flow.centres
    if len(centres) == 1:
        return 1.0, 0
    vertices = np.flatnonzero(outer(centres, flow.scale))
    same = labels[:, None] == labels
    kept = np.where(same, attention(flow.last), 0.0).sum(axis=-1)                                    # (h, n)
    return float(kept[:, np.isin(labels, vertices)].min(initial=1.0)), len(centres) - len(vertices)


def nearest_cosine(points: np.ndarray, tokens: np.ndarray) -> np.ndarray:
    """The largest cosine between each of points (m, k) and tokens (n, k): (m,)."""
    lengths = np.linalg.norm(points, axis=1)[:, None] * np.linalg.norm(tokens, axis=1)
    return (points @ tokens.T / np.maximum(lengths, 1e-300)).max(axis=1)


def random_mixtures(tokens: np.ndarray, count: int) -> np.ndarray:
    """`count` convex combinations (count, k) of the tokens (n, k), weights uniform on the simplex."""
    return np.random.default_rng(0).dirichlet(np.ones(len(tokens)), count) @ tokens
