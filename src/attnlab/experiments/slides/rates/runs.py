"""The runs of the experiment rates: one start of one case, and the curves whose decay is measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from attnlab.analysis.attention import log_leaks, log_unevenness, score_gaps
from attnlab.analysis.clusters import cluster_centres, cluster_labels
from attnlab.analysis.growth import growth_rate
from attnlab.analysis.span import in_reach, in_span
from attnlab.engine import simulate
from attnlab.experiments.common import heads
from attnlab.starts import normal
from attnlab.types import Trajectory, Weights

N = 8

SIZE = 2.0
"""Standard deviation of the coordinates of synthetic starts."""
D = 4
CLOCK = np.linspace(0.0, 24.0, 49)

LONG_CLOCK = np.concatenate([[0.0], np.geomspace(0.1, 1000.0, 81)])
"""Saved times in units of 1 / H; with own V_h of 1 / the largest real part of an eigenvalue of sum V_h, 0.3 at least."""

STEP = 0.1
"""Runge-Kutta step of trained heads with their own V_h in units of the clock; a second run has half of it."""

SCALE = 0.01
"""Clusters are those at the end of a run, at this fraction of the largest token."""


@dataclass(frozen=True)
class Curves:
    """Logarithms over the clock (T,): size of the largest token, what should vanish of the tokens and of attention.

    leaks (T, heads, n): log(1 - max_j P_ij) of every row; alone (heads, n): whether its leader is a cluster of its own.
    """

    clock: np.ndarray
    size: np.ndarray
    tokens: np.ndarray
    attention: np.ndarray
    leaks: np.ndarray
    alone: np.ndarray
    is_ok: bool


def weights_of(family: str, values: str, count: int, rng: int, model: Any) -> Weights:
    """The heads of a case: values "negative" are V_h = -I. Families "plain": Q = K = I, "symmetric": M = I + GᵀG."""
    kind = "identity" if values == "negative" else values
    if family == "trained":
        weights = heads.trained_heads(model, count, kind)
    else:
        weights = heads.synthetic_heads(count, D, kind, rng=rng)
        if family != "synthetic":
            extra = np.swapaxes(weights.Q, 1, 2) @ weights.Q if family == "symmetric" else 0.0
            root = np.swapaxes(np.linalg.cholesky(np.eye(D) + extra + np.zeros((count, D, D))), 1, 2)
            weights = Weights(Q=root, K=root, V=weights.V)
    return weights


def run_of(weights: Weights, x0: np.ndarray, values: str, step: float = STEP) -> tuple[Trajectory, np.ndarray]:
    """(run, clock) of one start."""
    options: dict[str, Any] = {"rtol": 1e-9, "max_steps": 2000, "throw": False}
    clock, unit = (LONG_CLOCK if values == "negative" else CLOCK), float(weights.heads)
    if values == "own":
        is_trained = weights.is_factored
        if is_trained:
            weights, x0 = in_reach(weights, x0, tolerance=1e-12)
        unit = max(0.3, growth_rate(weights, "real", from_factors=False))
        if is_trained:                                              # changes of leaders stop adaptive steps there
            clock = CLOCK[CLOCK <= 16.0]
            options |= {"stepper": "rk4", "dt": step / unit, "frame": "x"}
    else:
        weights, x0, _ = in_span(weights, x0)
        if values == "negative":
            weights = Weights(Q=weights.Q, K=weights.K, V=-weights.full_V)
    run = simulate(weights, x0, times=clock / unit, t_end=float(clock[-1] / unit), **options)
    return run, clock[: len(run.times)]


def curves_of(run: Trajectory, clock: np.ndarray, values: str) -> Curves:
    """The curves of a run."""
    states, log_scale = run.scaled_x()
    norms = np.linalg.norm(states, axis=-1)
    largest = np.log(norms.max(axis=-1))
    labels = cluster_labels(states[-1], SCALE * float(norms[-1].max()))
    gaps = score_gaps(run)
    leaks = log_leaks(gaps)
    with np.errstate(divide="ignore"):
        if values == "negative":
            tokens = np.log(np.sqrt((norms**2).mean(axis=-1))) + log_scale
            attention = leaks.max(axis=(1, 2)) if tokens[-1] > tokens[0] else log_unevenness(gaps)
        else:
            radius = np.linalg.norm(states - cluster_centres(states, labels)[:, labels], axis=-1).max(axis=-1)
            tokens, attention = np.log(radius) - largest, leaks.max(axis=(1, 2))
    members = np.bincount(labels)
    alone = members[labels[gaps[-1].argmax(axis=-1)]] == 1
    ended_early = run.status.name in ("MAX_STEPS", "STALLED")
    return Curves(clock, largest + log_scale, tokens, attention, leaks, alone, not ended_early)


def window_of(clock: np.ndarray, values: str) -> np.ndarray:
    """The mask of the times at which laws are fitted and judged: late, but before the digits end."""
    if values == "negative":
        return np.asarray(clock >= clock[-1] / 4)
    return np.asarray((clock >= 0.4 * clock[-1]) & (clock <= 0.85 * clock[-1]))


def start_of(family: str, rng: int, model: Any) -> np.ndarray:
    """N tokens: normal ones, or for trained heads a piece of embedded text."""
    if family == "trained":
        return heads.real_start(model, N, rng)
    return normal(N, D, scale=SIZE, rng=rng)
