"""Limits on the sphere, for V = c I with c > 0: once all tokens lie in an open hemisphere, they
converge to one point.

Where min_i <x_i, w> > 0 for some w, that minimum never decreases again, whatever the (positive)
attention weights: the velocity of the lowest token along w is a sum of w_ij (<x_j, w> - <x_i, x_j>
<x_i, w>) >= 0. The cone of the tokens shrinks to a ray (cone collapse: Geshkovski, Letrouit,
Polyanskiy, Rigollet, arXiv:2312.10794, lemma 6.4), and the limit stays inside it: the tokens'
spread is the error. For another V see half_space.py. Until they have come into a hemisphere nothing
is claimed; clusters may stay apart for times like e^{beta (1 - cos)}. Perturbed replicas must end
at the same point, as elsewhere: rounding decides where saddles lead.
"""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from attnlab.limits.allowance import Allowance
from attnlab.limits.half_space import half_space_limit
from attnlab.limits.problem import Refused, check_axes
from attnlab.limits.sphere_tokens import (
    CLEAR,
    FIRST_PIECE,
    LAST_END,
    PUSH,
    RTOL,
    WORK_OF_PIECE,
    Open,
    SphereTokens,
)
from attnlab.limits.state import State, start_digest
from attnlab.limits.undecided import undecided
from attnlab.types import Dynamics, Limit

SMALL = 1e-9
"""The spread of the tokens at which integration ends."""

DIFFERENT = 1e-4
"""Replicas that end further apart than this end at different points."""


def sphere_limit(
    dynamics: Dynamics,
    x0: np.ndarray,
    begin: float,
    allowance: Allowance,
    times: np.ndarray,
    common: dict[str, Any],
) -> Limit:
    """The Limit of tokens that are x0 (n, d) on the sphere at the time `begin`, or Refused."""
    _check_equation(dynamics)
    rate, began = _factor(dynamics), time.perf_counter()
    if rate is None:
        return half_space_limit(dynamics, x0, begin, allowance, times, common)
    n, d = x0.shape
    z = np.full((len(times), n, d), np.nan)
    tokens = SphereTokens(dynamics, x0, RTOL, allowance, begin)
    shared = {**common, "times": times, "z": z, "path": z}
    try:
        pieces = _come_together(tokens, rate, times, z)
        apart, ends = _apart_from_replicas(dynamics, x0, tokens.x, pieces, allowance)
        why, kind = "", "certified"
    except Open as open_one:
        why, kind = open_one.why, open_one.kind
    shared |= {
        "t": tokens.t,
        "stats": {"seconds": time.perf_counter() - began, "kind": kind, "work": allowance.used},
    }
    spread, height = _spread(tokens.x)
    if why:
        state = (
            f"The tokens have a spread of {spread:.2g}; the lowest is {height:+.2g} above the"
            " equator of their mean."
        )
        if kind == "replicas disagree":
            state = "They sit on, or within rounding of, an edge between two limits."
        elif not spread <= SMALL:
            state += (
                " Clusters may stay apart for times like e^(beta (1 - cos)), and antipodal tokens"
                " for ever."
            )
        return undecided(
            shared,
            n,
            np.eye(d),
            f"Undecided ({kind}) at t = {tokens.t:.4g}: on the sphere {why}. {state}",
        )
    is_causal = dynamics.mask.is_causal
    point = x0[0] if is_causal else tokens.x.mean(axis=0) / np.linalg.norm(tokens.x.mean(axis=0))
    error = spread + 10.0 * apart
    where = ", which is the first token: it sees only itself and does not move" if is_causal else ""
    reason = (
        f"Certified at t = {tokens.t:.4g}: all tokens lie in an open hemisphere, {height:.2g} above"
        f" its equator at least, so they converge to one point{where}. Their spread is"
        f" {spread:.2g}. On the sphere nobody leads: attention stays divided."
    )
    z[times >= tokens.t] = point
    return Limit(
        labels=np.zeros(n, np.int64),
        leaders=np.zeros(n, np.int64) if is_causal else np.full(n, -1),
        basis=np.eye(d),
        points=np.tile(point, (n, 1)),
        error=error,
        grade="group",
        reason=reason,
        certificate=reason,
        state=State(
            "sphere",
            {
                "tokens": tokens.x,
                "ends": ends,
                "t": np.array(tokens.t),
                "start_digest": start_digest(dynamics, x0),
            },
        ),
        **shared,
    )


def _come_together(
    tokens: SphereTokens, rate: float, times: np.ndarray, z: np.ndarray
) -> list[float]:
    """Go on until the tokens are one point of a hemisphere; the lengths of the pieces, or Open.
    Fills z (T, n, d) on the way.
    """
    pieces, longest = [], FIRST_PIECE / rate
    while True:
        before, begin = tokens.allowance.used, tokens.t
        inside = (times >= begin) & (times < begin + longest)
        z[inside] = tokens.advance(longest, times[inside] - begin)
        pieces.append(longest)
        spread, height = _spread(tokens.x)
        if spread <= SMALL and height > CLEAR:
            return pieces
        if (tokens.t - tokens.begin) * rate > LAST_END:
            raise Open(
                "apart",
                "the tokens had not come together by then, where the search ends (c t ="
                f" {LAST_END:g})",
            )
        longest *= min(2.0, WORK_OF_PIECE / (tokens.allowance.used - before))


def _apart_from_replicas(
    dynamics: Dynamics, x0: np.ndarray, end: np.ndarray, pieces: list[float], allowance: Allowance
) -> tuple[float, np.ndarray]:
    """(how far two perturbed replicas end from the tokens, end (n, d); where they end, (2, n, d));
    or Open.
    """
    push = PUSH * np.random.default_rng(20230515).uniform(-1.0, 1.0, x0.shape)
    apart, ends = 0.0, []
    for start in (x0 + push, x0 - push):
        replica = SphereTokens(dynamics, start, 10.0 * RTOL, allowance)
        for piece in pieces:
            replica.advance(piece, np.zeros(0))
        apart = max(apart, float(np.abs(end - replica.x).max()))
        ends.append(replica.x)
    if apart > DIFFERENT:
        raise Open("replicas disagree", f"starts perturbed by {PUSH:g} end {apart:.2g} apart")
    return apart, np.stack(ends)


def _check_equation(dynamics: Dynamics) -> None:
    """Refuse what no lemma on the sphere covers, whatever V is."""
    if not dynamics.kernel.is_exponential:
        raise Refused(
            "On the sphere limits are computed for kernels whose weights are exponentials of the"
            " scores, such as "
            f'softmax, and the kernel "{dynamics.kernel.name}" has none.'
        )
    if dynamics.is_layers:
        raise Refused("On the sphere limits are computed in continuous time, not for layers.")
    check_axes(dynamics)


def _factor(dynamics: Dynamics) -> float | None:
    """c of V = c I, summed over heads; None for one head with another V; Refused where neither
    lemma helps.

    Exactly: what differs from c I by little moves the tokens on, however late.
    """
    d, factors = dynamics.weights.d, []
    for V in dynamics.weights.full_V:
        factor = float(V[0, 0])
        if not np.array_equal(V, factor * np.eye(d)):
            if dynamics.weights.heads == 1:
                return None
            raise Refused(
                "On the sphere limits of several heads are computed for V = c I, c > 0, in every"
                " head."
            )
        if factor < 0.0:
            raise Refused(
                "On the sphere limits are computed for V = c I with c > 0, where tokens in a"
                f" hemisphere come together, and here c = {factor:.3g}."
            )
        factors.append(factor)
    if not sum(factors) > 0.0:
        raise Refused("On the sphere with V = 0 no token moves.")
    return sum(factors)


def _spread(x: np.ndarray) -> tuple[float, float]:
    """(the largest distance from the mean direction, the smallest inner product with it)."""
    mean = x.mean(axis=0)
    length = float(np.linalg.norm(mean))
    if length < 1e-12:
        return math.inf, -1.0
    heights = x @ (mean / length)
    return float(np.abs(x - mean / length).max()), float(heights.min())
