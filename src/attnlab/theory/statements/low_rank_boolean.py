"""In one dimension attention becomes Boolean: every row but at most one attends only to the
smallest or the largest token.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from attnlab.analysis.attention import attention_rank
from attnlab.analysis.rates import escape_constant, fit_double_exponential
from attnlab.dynamics import attention
from attnlab.theory import theorems
from attnlab.theory.claims import at_infinity
from attnlab.theory.evidence import RESOLUTION, Evidence
from attnlab.theory.hypotheses import distinct, positive, setting
from attnlab.theory.specimens import random_rest, shuffle_end, specimen
from attnlab.types import Dynamics, Limit
from attnlab.verdicts import Hypothesis, Measured, Theorem

SLOPE = 0.95
"""The part of V that log(-log(1 - P)) must grow by, once what a row still loses to others is below
1 - SLOPE.
"""


def factors(dynamics: Dynamics) -> tuple[float, float]:
    """(V, c) with x_i' = V sum_j P_ij x_j and scores c x_i x_j."""
    return float(dynamics.weights.full_V[0, 0, 0]), float(
        dynamics.beta * dynamics.weights.M[0, 0, 0]
    )


def hypotheses(dynamics: Dynamics, x0: np.ndarray | None) -> Iterator[Hypothesis]:
    """d = 1, V > 0, beta Q K > 0, distinct tokens; y(s) = sqrt(beta QK) x(s / V) makes it V = QK =
    1.
    """
    yield from setting(dynamics)
    yield Hypothesis(
        "tokens are numbers", dynamics.weights.d, "1, the dimension", dynamics.weights.d == 1
    )
    if dynamics.weights.d == 1:
        V, c = factors(dynamics)
        yield positive("V > 0", V, 0.0)
        yield positive("beta Q K > 0", c, 0.0)
    yield distinct(x0)


def predict(dynamics: Dynamics, x0: np.ndarray | None) -> tuple[str, Mapping[str, Any]]:
    """Which rows are possible, and what is known of single tokens where x0 is."""
    V, c = factors(dynamics)
    words = (
        "Every row of P but at most one tends to e_a or e_b, a and b the smallest and largest"
        " first token; rank at most 3, and 1 or 2 for almost every start. 1 - P falls like"
        f" exp(-const e^({V:.4g} t))"
    )
    data: dict[str, Any] = {"rank": 3, "rate": V}
    if x0 is not None:
        x = x0[:, 0]
        beyond = escape_constant(len(x)) / math.sqrt(c)
        data |= {"smallest": int(x.argmin()), "largest": int(x.argmax()), "escape": beyond}
        data |= {
            "surely_up": np.flatnonzero(x > beyond),
            "surely_down": np.flatnonzero(x < -beyond),
        }
        words += (
            f". Here a = {data['smallest']}, b = {data['largest']}, and tokens beyond {beyond:.4g}"
            " run away for sure"
        )
        if x.min() > 0 or x.max() < 0:
            data["rank"] = 1
            words += "; all start on one side, so all rows become equal"
    return words + ".", data


def starred_row(gamma: np.ndarray, c: float) -> np.ndarray:
    """The row (n,) of the one token whose z tends to 0 between others, gamma (n,) the limits of z,
    scores c x_i x_j.

    Where the token stays bounded, e^{Vt} x -> theta with sum_k w_k gamma_k = 0, w_k proportional to
    exp(c theta gamma_k); all limits on one side are equal, so p at `up` and m at -`down` give c
    theta = ln(m down / (p up)) / (up + down).
    """
    up, down = float(gamma.max()), -float(gamma.min())
    more, fewer = np.sum(gamma > 0), np.sum(gamma < 0)
    exponents = gamma * (math.log(fewer * down / (more * up)) / (up + down))
    weights = np.exp(exponents - exponents.max())
    return weights / weights.sum()


def limit_attention(limit: Limit, c: float) -> tuple[np.ndarray, float]:
    """(P* (n, n), in how many rows it is not as the theorem says), from certified leaders."""
    x, leaders, n = limit.x0[:, 0], limit.leaders, len(limit.leaders)
    gamma, order, P = limit.limits[:, 0], np.argsort(limit.x0[:, 0]), np.zeros((n, n))
    inner, wrong = set(order[1:-1].tolist()), 0
    for i in range(n):
        if leaders[i] >= 0:
            P[i, leaders[i]] = 1.0
            wrong += leaders[i] not in (x.argmin(), x.argmax())
        elif i in inner and gamma.min() < 0 < gamma.max():
            P[i] = starred_row(gamma, c)
        else:
            wrong += 1
    stars = int(np.sum(leaders < 0))
    bounded = int(np.sum(np.abs(gamma) <= limit.error))
    # in sorted order: rows e_a, then the starred one, then rows e_b
    level = (
        np.select([leaders[order] < 0, leaders[order] == x.argmax()], [1, 2], 0)
        if x.argmin() != x.argmax()
        else np.zeros(n)
    )
    return P, float(wrong + max(stars - 1, 0) + max(bounded - 1, 0) + np.sum(np.diff(level) < 0))


def row_gaps(
    x: np.ndarray, doubt: np.ndarray, leaders: np.ndarray, c: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(F, least, most) (T, n): F_i = -log of the odds against the leader of row i, and its bounds
    when x (T, n) is off by doubt.

    F_i = -log sum_j exp(-c x_i (x_L - x_j)), j not L: P_iL = 1 / (1 + e^{-F}). P itself underflows;
    F does not.
    """
    T, n = x.shape
    apart = x[:, leaders][:, :, None] - x[:, None, :]  # (T, row, other)
    scores = c * x[:, :, None] * apart
    off = (
        c
        * (2 * np.abs(x[:, :, None]) + np.abs(apart) + 2 * doubt[:, None, None])
        * doubt[:, None, None]
    )
    other = np.arange(n) != leaders[:, None]  # (row, other)

    def against(exponents: np.ndarray) -> np.ndarray:
        return -np.logaddexp.reduce(np.where(other, -exponents, -np.inf), axis=2)

    return against(scores), against(scores - off), against(scores + off)


def measure(evidence: Evidence) -> Measured:
    """The worst violation of: the form of P*, the order of tokens, escape beyond A_n,
    double-exponential approach.
    """
    limit, run = evidence.limit, evidence.run
    V, c = factors(run.dynamics)
    base = at_infinity(evidence, 0.0, error=0.0, rate=V, what="Leaders and limits of all rows")
    if not limit.certified or not np.isfinite(base.error) or base.value > base.error:
        return base
    if not np.isfinite(evidence.error):
        return dataclasses.replace(
            base, error=np.nan, needs=f"the error could not be measured: {evidence.finer_words}"
        )
    if limit.grade != "exact":
        needs = f"who leads is open ({limit.reason}); tokens farther apart would decide"
        return dataclasses.replace(base, value=np.nan, needs=needs)
    x, times = evidence.run.x[:, :, 0], run.times  # (T, n)
    n, doubt = x.shape[1], evidence.error * np.abs(x).max(axis=1) + 1e-15 * np.abs(x).max(axis=1)
    P_limit, wrong_rows = limit_attention(limit, c)
    rows = np.flatnonzero(limit.leaders >= 0)
    leaders = np.where(limit.leaders >= 0, limit.leaders, 0)
    F, least, most = row_gaps(x, doubt, leaders, c)
    with np.errstate(over="ignore"):
        off = np.minimum(np.exp(-least[:, rows]), 1.0).max(
            axis=1, initial=0.0
        )  # a bound of 1 - P_iL, all rows    (T,)
    star = np.flatnonzero(limit.leaders < 0)
    if star.size:
        # of a token near 0 the weights are off by as much as its scores: c |x_j| doubt
        P = attention(run)[0]
        off[-1] = max(
            off[-1], np.abs(P[star] - P_limit[star]).max() + 2 * c * np.abs(x[-1]).max() * doubt[-1]
        )
        off[:-1] = np.inf
    settled = np.flatnonzero(off <= RESOLUTION)
    violations = {
        "rows of P* of another form": wrong_rows,
        "tokens that change places, relative to the largest": _disorder(x, doubt),
        "decrease of a token beyond the escape constant": _return(x, doubt, c, limit),
        "missing slope of log(-log(1 - P)), relative to V": _slowness(
            x, times, doubt, least, most, rows, V
        ),
    }
    worst = max(violations, key=lambda name: violations[name])
    end = attention(run)[0]
    details = {
        **base.details,
        "smallest_token": int(x[0].argmin()),
        "largest_token": int(x[0].argmax()),
        "leaders": limit.leaders,
        "starred_rows": star,
        "starred_row": P_limit[star[0]] if star.size == 1 else None,
        "rank_of_limit": int(attention_rank(P_limit)),
        "rank_at_end": int(attention_rank(end)),
        "distance_of_attention": float(np.abs(end - P_limit).max()),
        "boolean_from": float(times[settled[0]]) if settled.size else np.inf,
        "slopes_over_V": _slopes(F, least, times, rows, V),
        "escape_constant": escape_constant(n) / math.sqrt(c),
        "violations": violations,
    }
    text = (
        f"{base.evidence} P* has {len(rows)} Boolean rows and {star.size} starred, rank"
        f" {details['rank_of_limit']}; "
        + (
            f"the run's rows are within {RESOLUTION:g} of it from t = {details['boolean_from']:.4g}"
            " on. "
            if settled.size
            else ""
        )
        + f"Worst: {worst}, {violations[worst]:.2g}."
    )
    error = float(off[settled].min()) if settled.size else 0.0
    return dataclasses.replace(
        base,
        value=violations[worst],
        error=error if violations[worst] <= 0 else 0.0,
        resolution=RESOLUTION,
        evidence=text,
        details=details,
        is_reached=base.is_reached and settled.size > 0,
        needs=(
            base.needs
            if not base.is_reached
            else _needed(x[-1], limit, c, V, float(off[-1]), evidence)
        ),
    )


def _disorder(x: np.ndarray, doubt: np.ndarray) -> float:
    """By how much two tokens stand in another order than at first, beyond their error, relative to
    the largest token.
    """
    ordered = x[:, np.argsort(x[0])]
    size = np.where(np.abs(x).max(axis=1) > 0, np.abs(x).max(axis=1), 1.0)
    back = np.maximum.accumulate(ordered, axis=1)[:, :-1] - ordered[:, 1:]  # (T, n - 1)
    return float(max(0.0, ((back.max(axis=1, initial=-np.inf) - 2 * doubt) / size).max()))


def _return(x: np.ndarray, doubt: np.ndarray, c: float, limit: Limit) -> float:
    """By how much a token beyond the escape constant comes back, at any time or in the limit,
    relative to itself.
    """
    beyond = math.sqrt(c) * (np.abs(x) - doubt[:, None]) > escape_constant(x.shape[1])  # (T, n)
    if not beyond.any():
        return 0.0
    sign = np.sign(x)
    back = np.abs(x[:-1]) - sign[:-1] * x[1:] - (doubt[:-1] + doubt[1:])[:, None]
    worst = float(
        np.where(beyond[:-1], back / np.where(x[:-1] != 0, np.abs(x[:-1]), 1.0), 0.0).max(
            initial=0.0
        )
    )
    gamma = limit.limits[:, 0]
    elsewhere = beyond & (sign * gamma <= -limit.error)
    return max(worst, float(elsewhere.any()))


def _slowness(x, times, doubt, least, most, rows, V) -> float:
    """By how much log F grows slower than SLOPE V between saved times, relative to V; 0 where it
    never does.

    d log F / d log x_i = 1 + entropy / F >= 1 while gaps grow, and x_i' >= V x_i (1 - loss) with a
    loss of (1 - P_iL)(max - min) / |x_i|: once that is below 1 - SLOPE, and F above 1, it stays so,
    and log F grows by SLOPE V at least.
    """
    spread = np.ptp(x, axis=1)[:, None] + 2 * doubt[:, None]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        loss = np.exp(-least) * spread / np.maximum(np.abs(x) - doubt[:, None], 1e-300)  # (T, n)
        from_here = (least > 1.0) & (loss < 1.0 - SLOPE) & np.isfinite(least)
        grown = np.log(np.maximum(most[1:], 1e-300)) - np.log(least[:-1])
        missing = SLOPE - grown / (V * np.diff(times))[:, None]
    return float(max(0.0, np.where(from_here[:-1], missing, 0.0)[:, rows].max(initial=0.0)))


def _slopes(F, least, times, rows, V) -> np.ndarray:
    """The fitted slope of log(-log(1 - P_iL)) over V, of each Boolean row, over the last times that
    show it; NaN: too few.

    It tends to 1, or to 2 where the leader is alone on its side: then the gap to the next token
    grows like e^{Vt} itself.
    """
    slopes = np.full(len(rows), np.nan)
    for at, row in enumerate(rows):
        # F to within a tenth of itself
        seen = np.flatnonzero(
            (least[:, row] > np.maximum(3.0, 0.9 * F[:, row])) & np.isfinite(F[:, row])
        )[-20:]
        if len(seen) >= 3:
            slopes[at] = (
                fit_double_exponential(times[seen], -np.logaddexp(0.0, F[seen, row])).slope / V
            )
    return slopes


def _needed(x: np.ndarray, limit: Limit, c: float, V: float, off: float, evidence: Evidence) -> str:
    """Until when rows are not Boolean: F ~ c gamma gap e^{Vt}, gap the distance of the two
    outermost tokens on that side.
    """
    gaps = np.diff(np.sort(x))
    gamma = np.abs(limit.limits[:, 0])
    slowest = (
        c
        * float(gamma[gamma > limit.error].min(initial=np.inf))
        * float(gaps[[0, -1]].min() if gaps.size else 1.0)
    )
    t = math.log(math.log(len(x) / RESOLUTION) / slowest) / V if 0 < slowest < np.inf else math.inf
    if t > evidence.t_end:
        return (
            f"at the end rows of P are {off:.2g} from their limits;"
            f" {evidence.longer_words(1.05 * t + 0.5 / V)}"
        )
    return (
        f"at the end rows of P are within {off:.2g} of their limits by their error;"
        f" {evidence.finer_words}"
    )


theorems.register("low_rank_boolean")(
    Theorem(
        name="low_rank_boolean",
        kind="theorem",
        statement=(
            "For d = 1, V > 0, QK > 0 and distinct tokens every entry of P(t) converges. All rows"
            " of the limit but at most one are e_a or e_b, a and b the smallest and the largest"
            " first token; the remaining row belongs to a token strictly between. So the rank is at"
            " most 3. Rows of tokens that run away get there double-exponentially."
        ),
        cite=(
            "Geshkovski, Letrouit, Polyanskiy, Rigollet, arXiv:2305.05465v6, section 2, theorem 2.1"
        ),
        hypotheses=hypotheses,
        predict=predict,
        measure=measure,
        holds=lambda: specimen([[1.0]], n=10, t_end=9.0),
        breaks=lambda: specimen([[-1.0]], n=10, t_end=4.0),
        short=lambda: specimen([[1.0]], n=10, t_end=0.5),
        spoil=shuffle_end,
        nonsense=random_rest,
        errata=(
            "In the lemma on bounded extreme tokens the index range for the smallest token must be:"
            " all j except 1. The sorted order of the rows (e_a, starred, e_b) is stated in the"
            " proof. That almost no start has a starred row is claimed, not proved."
        ),
    )
)
