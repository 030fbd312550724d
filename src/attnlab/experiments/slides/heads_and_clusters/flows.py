"""Clusters of a flow with several heads, on the clock of its growth: how many, when they merge,
where they are, what holds them.

    tau = rho t,  rho the spectral radius of W = sum_h V_h;  with V_h = I it is H, and z = e^{-tau} x

For V_h = I the shape that is looked at is z; with other V_h, where z need not converge, x scaled to
its first size. Where clusters end is certified (certified.py); this is about the way there, about
own V_h, and about tokens too many for a certificate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from attnlab.analysis.clusters import OBSERVED_SCALE, cluster_centres, cluster_count, cluster_labels
from attnlab.analysis.distances import diameter
from attnlab.analysis.growth import growth_rate
from attnlab.analysis.span import in_span
from attnlab.experiments.common.certified import corners
from attnlab.types import Trajectory, Weights

EARLY, END = 8.0, 28.0
"""Leaders change until about EARLY, where small steps are needed; END is where double precision
comes to its end.
"""

CLOCK = np.array([*np.arange(0.0, EARLY), EARLY, 10.0, 12.0, 14.0, 16.0, 20.0, END - 1.0, END])
"""The saved tau."""

WIDE = 50
"""From so many coordinates on, V_h = I is followed in NumPy, with one product of attention and
tokens for all heads.
"""


@dataclass(frozen=True, eq=False)
class Shapes:
    """shapes (T, n, k) at the saved tau; attention: called, it gives that of the end, (h, n, n).

    A run with V_h = I may be complete before END: when all tokens are within `scale`, where they
    stay, since hulls shrink.
    """

    tau: np.ndarray
    shapes: np.ndarray
    attention: Callable[[], np.ndarray]
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


def follow(
    weights: Weights, x0: np.ndarray, values: str, step: float, *, until_single: bool = False
) -> Shapes:
    """The flow up to tau = END by Runge and Kutta's steps; `step` in tau, for V_h = I five times
    that when leaders are settled.

    until_single: with V_h = I it ends when all tokens are one cluster.
    """
    if values == "identity":
        return _with_identity(weights, x0, step, until_single)
    return _with_own_values(weights, x0, step, growth_rate(weights, from_factors=False))


def _with_identity(weights: Weights, x0: np.ndarray, step: float, until_single: bool) -> Shapes:
    from attnlab.engine import simulate

    weights, start, _ = in_span(weights, x0)
    if start.shape[1] >= WIDE:
        return with_summed_heads(weights, start, step, until_single)
    heads = weights.heads
    early, late = CLOCK[CLOCK <= EARLY], CLOCK[CLOCK >= EARLY] - EARLY
    options: dict[str, Any] = {"stepper": "rk4", "frame": "z", "throw": False}
    first = simulate(
        weights, start, times=early / heads, t_end=EARLY / heads, dt=step / heads, **options
    )
    if not first.is_ok or (until_single and is_single(first.rescaled[-1], start)):
        return _of_run(first.rescaled, first)
    second = simulate(
        weights,
        first.x[-1],
        times=late / heads,
        t_end=(END - EARLY) / heads,
        dt=5 * step / heads,
        **options,
    )
    return _of_run(np.concatenate([first.rescaled, math.exp(-EARLY) * second.rescaled[1:]]), second)


def is_single(z: np.ndarray, start: np.ndarray) -> bool:
    """Whether all tokens are in one cluster for ever: V_h = I moves each to a mean of them, so
    distances cannot grow beyond.
    """
    return bool(diameter(z) <= OBSERVED_SCALE * diameter(start))


def with_summed_heads(
    weights: Weights, z: np.ndarray, step: float, until_single: bool = False
) -> Shapes:
    """dz/dtau = (mean_h P_h - I) z by the same steps: heads are summed before they meet the
    tokens.
    """
    shapes = [z]
    for begin, end in zip(CLOCK[:-1], CLOCK[1:], strict=True):
        count = math.ceil(round((end - begin) / (step if end <= EARLY else 5 * step), 6))
        for k in range(count):
            z = _runge_kutta(weights, z, begin + k * (end - begin) / count, (end - begin) / count)
        shapes.append(z)
        if until_single and end <= EARLY and is_single(z, shapes[0]):
            break
    tau = float(CLOCK[len(shapes) - 1])
    return Shapes(
        CLOCK[: len(shapes)],
        np.array(shapes),
        lambda: np.stack(list(_attentions(weights, z, tau))),
        is_complete=bool(np.isfinite(z).all()),
    )


def _runge_kutta(weights: Weights, z: np.ndarray, tau: float, step: float) -> np.ndarray:
    """z one step of order 4 later."""
    first = _velocity(weights, z, tau)
    second = _velocity(weights, z + step / 2 * first, tau + step / 2)
    third = _velocity(weights, z + step / 2 * second, tau + step / 2)
    fourth = _velocity(weights, z + step * third, tau + step)
    return np.asarray(z + step / 6 * (first + 2 * second + 2 * third + fourth))


def _velocity(weights: Weights, z: np.ndarray, tau: float) -> np.ndarray:
    """(mean_h P_h - I) z, where P_h is the attention of x = e^tau z."""
    total = np.zeros((len(z), len(z)))
    for P in _attentions(weights, z, tau):
        total += P
    return np.asarray(total @ z / weights.heads - z)


def _attentions(weights: Weights, z: np.ndarray, tau: float) -> Iterator[np.ndarray]:
    """P_h (n, n) of x = e^tau z, head by head."""
    for Q, K in zip(weights.Q, weights.K, strict=True):
        scores = (math.exp(2 * tau) * z @ Q.T) @ (z @ K.T).T
        scores -= scores.max(axis=1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=1, keepdims=True)
        yield scores


def _with_own_values(weights: Weights, x0: np.ndarray, step: float, rate: float) -> Shapes:
    from attnlab.engine import simulate

    run = simulate(
        weights,
        x0,
        times=CLOCK / rate,
        t_end=END / rate,
        dt=step / rate,
        stepper="rk4",
        frame="x",
        throw=False,
    )
    states, _ = run.scaled_x()  # up to a factor that each time has of its own
    sizes = np.linalg.norm(states, axis=-1).max(axis=-1)[:, None, None]
    return _of_run(states / sizes * float(np.linalg.norm(x0, axis=-1).max()), run)


def _of_run(shapes: np.ndarray, run: Trajectory) -> Shapes:
    from attnlab.dynamics import attention

    return Shapes(
        CLOCK[: len(shapes)],
        shapes,
        lambda: np.asarray(attention(run)),
        is_complete=run.is_ok,
    )


def counts_over_time(flow: Shapes) -> np.ndarray:
    """The number of clusters at each tau of CLOCK; NaN where the run did not get, 1 after a run
    that was complete before.
    """
    counts = np.full(len(CLOCK), 1.0 if flow.is_complete else np.nan)
    counts[: len(flow.tau)] = cluster_count(flow.shapes, flow.scale)
    return counts


def count_at_end(flow: Shapes) -> np.ndarray:
    """The same with the last number only, for runs that need not come to rest."""
    counts = np.full(len(CLOCK), np.nan)
    counts[len(flow.tau) - 1] = len(flow.centres)
    return counts


def last_merging(counts: np.ndarray, end: int | None = None) -> float:
    """The tau of CLOCK from which on the number of clusters (T,) is `end`, by default that of the
    last moment; infinity where the run did not come to it.
    """
    known = counts[np.isfinite(counts)]
    other = np.flatnonzero(known != (known[-1] if end is None else end))
    if len(other) == 0:
        return 0.0
    return float(CLOCK[other[-1] + 1]) if other[-1] + 1 < len(known) else np.inf


def held(flow: Shapes) -> tuple[float, int]:
    """(the least share of attention, over heads, that a corner of the clusters' hull keeps for
    itself at the end of a run; clusters that are no corners).

    A cluster that is a corner and gives attention to others moves inwards, so at rest the share is
    1. (1, 0) for one cluster.
    """
    labels, centres = flow.labels, flow.centres
    if len(centres) == 1:
        return 1.0, 0
    is_corner = corners(centres, flow.scale)
    same = labels[:, None] == labels
    shares = np.where(same, flow.attention(), 0.0).sum(axis=-1)  # (h, n)
    return float(shares[:, is_corner[labels]].min(initial=1.0)), int(np.sum(~is_corner))


def nearest_cosine(points: np.ndarray, tokens: np.ndarray) -> np.ndarray:
    """The largest cosine between each of points (m, k) and tokens (n, k): (m,)."""
    lengths = np.linalg.norm(points, axis=1)[:, None] * np.linalg.norm(tokens, axis=1)
    return (points @ tokens.T / np.maximum(lengths, 1e-300)).max(axis=1)


def random_mixtures(tokens: np.ndarray, count: int) -> np.ndarray:
    """`count` convex combinations (count, k) of the tokens (n, k), weights uniform on the
    simplex.
    """
    return np.random.default_rng(0).dirichlet(np.ones(len(tokens)), count) @ tokens
