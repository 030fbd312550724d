"""Limits on the sphere, for V = c I with c > 0: once all tokens lie in an open hemisphere, they converge to one point.

Where min_i <x_i, w> > 0 for some w, that minimum never decreases again, whatever the (positive) attention weights: the velocity
of the lowest token along w is a sum of w_ij (<x_j, w> - <x_i, x_j> <x_i, w>) >= 0. The cone of the tokens shrinks to a ray (cone
collapse: Geshkovski, Letrouit, Polyanskiy, Rigollet, arXiv:2312.10794, lemma 6.4), and the limit stays inside it: the tokens'
spread is the error. Until they have come into a hemisphere nothing is claimed; clusters may stay apart for times like
e^{beta (1 - cos)}. Perturbed twins must end at the same point, as elsewhere: rounding decides where saddles lead.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from attnlab.engine import simulate
from attnlab.limits.problem import Refused
from attnlab.limits.settings import Deadline
from attnlab.types import Dynamics, Limit

SMALL = 1e-9
"""The spread of the tokens at which integration ends."""

CLEAR = 1e-6
"""How far above the equator all tokens must be: a thousand times what the integrator is off by."""

RTOL, PUSH = 1e-10, 1e-10
DIFFERENT = 1e-4
"""Twins that end further apart than this end at different points."""

FIRST_END, LAST_END = 8.0, 1e6


def sphere_limit(dynamics: Dynamics, x0: np.ndarray, deadline: Deadline, times: np.ndarray, common: dict[str, Any]) -> Limit:
    """The Limit of tokens x0 (n, d) on the sphere, or Refused."""
    rate = _factor(dynamics)
    n, d = x0.shape
    options = {name: getattr(dynamics, name) for name in ("geometry", "kernel", "mask", "beta")}
    push = PUSH * np.random.default_rng(20230515).uniform(-1.0, 1.0, x0.shape)
    reached = 0.0
    ends: list[np.ndarray] = []
    for start, rtol in ((x0, RTOL), (x0 + push, 10.0 * RTOL), (x0 - push, 10.0 * RTOL)):
        x, t = start / np.linalg.norm(start, axis=1, keepdims=True), 0.0
        while True:
            end = max(FIRST_END / rate, t) if not ends else reached - t
            run = simulate(dynamics.weights, x, times=[0.0, end], rtol=rtol, throw=False, **options)
            if not run.is_ok:
                raise Refused(f"On the sphere the integrator ended early at t = {t:.4g}. {run.status.value}")
            x, t = run.x[-1], t + end
            spread, height = _spread(x)
            if ends or (spread <= SMALL and height > CLEAR):
                break
            if deadline.has_come or t * rate > LAST_END:
                raise Refused(
                    f"On the sphere the tokens had not come together by t = {t:.4g} (spread {spread:.2g}, lowest {height:+.2g} "
                    "above the equator of their mean): clusters may stay apart for times like e^(beta (1 - cos)), and antipodal "
                    "tokens for ever."
                )
        ends.append(x)
        reached = max(reached, t)
    spread, height = _spread(ends[0])
    apart = max(float(np.abs(ends[0] - other).max()) for other in ends[1:])
    if apart > DIFFERENT:
        raise Refused(
            f"On the sphere starts perturbed by {PUSH:g} end {apart:.2g} apart (twins disagree): the data sit on, or within "
            "rounding of, an edge between two limits."
        )
    is_causal = dynamics.mask == "causal"
    point = x0[0] if is_causal else ends[0].mean(axis=0) / np.linalg.norm(ends[0].mean(axis=0))
    error = spread + 10.0 * apart
    where = ", which is the first token: it sees only itself and does not move" if is_causal else ""
    reason = (
        f"Certified at t = {reached:.4g}: all tokens lie in an open hemisphere, {height:.2g} above its equator at least, so they "
        f"converge to one point{where}. Their spread is {spread:.2g}. On the sphere nobody leads: attention stays divided."
    )
    z = np.full((len(times), n, d), np.nan)
    if times.size:
        inside = times <= reached
        asked = np.unique(np.concatenate([[0.0], times[inside]]))
        if inside.any():
            run = simulate(dynamics.weights, x0, times=asked, rtol=RTOL, throw=False, **options)
            if run.is_ok:
                z[inside] = run.x[np.searchsorted(asked, times[inside])]
        z[~inside] = point
    return Limit(
        labels=np.zeros(n, np.int64), leaders=np.zeros(n, np.int64) if is_causal else np.full(n, -1), basis=np.eye(d),
        points=np.tile(point, (n, 1)), error=error, grade="group", reason=reason, certificate=reason, t=reached, times=times, z=z,
        path=z, **common,
    )


def _factor(dynamics: Dynamics) -> float:
    """c of V = c I, summed over heads; Refused where some V_h is not a multiple of the identity, or none is positive."""
    d = dynamics.weights.d
    factors = []
    for V in dynamics.weights.full_V:
        factor = float(np.trace(V)) / d
        if np.abs(V - factor * np.eye(d)).max() > 1e-12 * max(abs(factor), 1e-300) or factor < 0.0:
            raise Refused(
                "On the sphere limits are computed for V = c I, c > 0 (every head), where tokens in a hemisphere come together. "
                "For other V nothing is proved that could be certified."
            )
        factors.append(factor)
    if not sum(factors) > 0.0:
        raise Refused("On the sphere with V = 0 no token moves.")
    if dynamics.kernel == "hardmax" or dynamics.is_layers:
        raise Refused("On the sphere limits are computed for smooth attention in continuous time.")
    return sum(factors)


def _spread(x: np.ndarray) -> tuple[float, float]:
    """(the largest distance from the mean direction, the smallest inner product with it)."""
    mean = x.mean(axis=0)
    length = float(np.linalg.norm(mean))
    if length < 1e-12:
        return math.inf, -1.0
    heights = x @ (mean / length)
    return float(np.abs(x - mean / length).max()), float(heights.min())
