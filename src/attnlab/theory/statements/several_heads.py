"""Does the attention of every head become Boolean? d = 1, several heads, all values and scores
positive.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from attnlab.analysis.attention import attention_rank
from attnlab.dynamics.attention import LARGEST_FACTOR, attention
from attnlab.engine import simulate
from attnlab.theory import theorems
from attnlab.theory.evidence import RESOLUTION, Evidence
from attnlab.theory.hypotheses import distinct, fact, positive, setting
from attnlab.theory.settled import settled
from attnlab.theory.specimens import random_rest
from attnlab.types import Dynamics, Trajectory, Weights
from attnlab.verdicts import Hypothesis, Measured, Theorem

WHY = "the claim is about rows of attention, and not about limits of tokens"


def hypotheses(dynamics: Dynamics, x0: np.ndarray | None) -> Iterator[Hypothesis]:
    """d = 1, V_h > 0, beta Q_h K_h > 0 for every head, pairwise distinct tokens."""
    yield from setting(dynamics, any_heads=True)
    weights = dynamics.weights
    yield fact("several heads", weights.heads > 1)
    yield Hypothesis("tokens are numbers", weights.d, "1, the dimension", weights.d == 1)
    if weights.d == 1:
        yield positive("every V_h is positive", float(weights.full_V.min()), 0.0)
        yield positive(
            "every beta Q_h K_h is positive", float((dynamics.beta * weights.M).min()), 0.0
        )
    yield distinct(x0)


def predict(dynamics: Dynamics, x0: np.ndarray | None) -> tuple[str, Mapping[str, Any]]:
    """The columns that the rows go to, where x0 is known."""
    rate = float(dynamics.weights.full_V.sum())
    words = (
        "In every head all rows but at most one tend to 0-1 rows: all weight on the smallest or on"
        " the largest first token"
    )
    data: dict[str, Any] = {"rate": rate, "largest_rank": 3}
    if x0 is not None:
        data["columns"] = (int(np.argmin(x0[:, 0])), int(np.argmax(x0[:, 0])))
        words += f", tokens {data['columns'][0]} and {data['columns'][1]}"
    return words + ".", data


def measure(evidence: Evidence) -> Measured:
    """The weight that rows, except one, still give to other tokens than the two extreme first ones,
    at the end.
    """
    run = evidence.run
    rate = float(run.dynamics.weights.full_V.sum())
    P = attention(run)  # (h, n, n)
    upper = largest_leak(evidence)  # (h, n)
    order = np.argsort(evidence.start[:, 0])
    smallest, largest = int(order[0]), int(order[-1])
    leaders = P.argmax(axis=-1)  # (h, n)
    is_boolean = upper <= 1e-6
    details = {
        "columns": (smallest, largest),
        "ranks": [int(rank) for rank in attention_rank(P)],
        "boolean_rows": [int(count) for count in is_boolean.sum(axis=1)],
    }
    # rows that are 0-1 within the error, but at the wrong column, or e_max before e_min in the
    # order of the tokens
    is_wrong = is_boolean & (leaders != smallest) & (leaders != largest)
    ordered, sure = leaders[:, order], is_boolean[:, order]
    seen_largest = np.logical_or.accumulate(sure & (ordered == largest), axis=1)
    is_disordered = sure & (ordered == smallest) & seen_largest & (smallest != largest)
    if is_wrong.any() or is_disordered.any():
        count = int((is_wrong[:, order] | is_disordered).sum())
        text = (
            f"{count} rows at t = {evidence.t_end:.4g} have all weight at a column, or in an order,"
            " that the claim excludes."
        )
        return Measured(1.0, 0.0, 1e-6, RESOLUTION, text, details=details)
    off = 1.0 - np.maximum(P[:, :, smallest], P[:, :, largest])  # (h, n)
    needed, needed_most = required(off[:, order]), required(upper[:, order])
    if needed <= RESOLUTION and not needed_most <= RESOLUTION:
        text = (
            f"Rows at t = {evidence.t_end:.4g} are 0-1, but the tokens are too uncertain to"
            " determine the columns."
        )
        return Measured(needed - RESOLUTION, 0.0, needed_most, RESOLUTION, text, details=details)
    if not needed <= RESOLUTION:
        # the exponent of a leak grows like e^{rate t}
        exponent = -math.log(min(needed / run.n, 0.9))
        longer = evidence.t_end + math.log(max(math.log(run.n / RESOLUTION) / exponent, 1.0)) / rate
        needs = (
            "a second row of a head still divides its attention;"
            f" {evidence.longer_words(1.05 * longer + 0.1)}"
        )
        text = f"At t = {evidence.t_end:.4g} rows are not 0-1."
        return Measured(np.nan, 0.0, np.nan, RESOLUTION, text, needs=needs, details=details)
    return settled(
        evidence,
        lambda run: np.stack([attention(run, at) for at in range(len(run.times))]),
        needed - RESOLUTION,
        resolution=RESOLUTION,
        error=needed_most - needed,
        rate=rate,
        largest=1.0 - RESOLUTION if run.n > 1 else -RESOLUTION,
        what=(
            f"in each of {len(P)} heads all rows but at most one inside have weight 1 -"
            f" {needed:.2g} or more on token {smallest} or {largest}; ranks {details['ranks']}"
        ),
        why=WHY,
        details=details,
    )


def required(off: np.ndarray) -> float:
    """The largest of off (h, n), rows in the order of the tokens, that must vanish: all but the
    largest strictly inside.
    """
    inside = np.sort(off[:, 1:-1], axis=1)[:, :-1]
    return float(max(off[:, [0, -1]].max(), inside.max(initial=0.0)))


def largest_leak(evidence: Evidence) -> np.ndarray:
    """A bound (h, n) of 1 - max_j P_ij at the end, with every token as far off as the run's error
    lets it be.

    Log-weights c x_i (x_j - x_l), l the leader, move by at most c (dx |x_j - x_l| + 2 dx |x_i|), dx
    the error of a token.
    """
    run = evidence.run
    states, log_scale = run.scaled_x()
    y = states[-1, :, 0]  # (n,)
    c = (
        run.dynamics.beta
        * run.dynamics.weights.M[:, 0, 0]
        * min(math.exp(min(2.0 * log_scale[-1], 690.0)), LARGEST_FACTOR)
    )
    off = 2.0 * evidence.error * np.abs(y).max()
    leader = np.where(y > 0, np.argmax(y), np.argmin(y))  # (n,), for every c > 0
    gap = np.abs(y[None, :] - y[leader][:, None])  # (n, n)
    exponents = c[:, None, None] * (
        -np.abs(y)[:, None] * gap + off * (gap + 2.0 * np.abs(y)[:, None])
    )  # (h, n, n)
    weights = np.exp(np.minimum(exponents, 0.0))
    weights[:, np.arange(run.n), leader] = 0.0
    return np.minimum(weights.sum(axis=-1), 1.0)


def _specimen(t_end: float, signs: float = 1.0) -> Trajectory:
    Q = np.array([[[1.0]], [[0.7]]])
    weights = Weights(Q=Q, K=np.ones((2, 1, 1)), V=np.array([[[0.6]], [[0.4 * signs]]]))
    start = np.array([-1.6, -0.9, -0.3, 0.2, 0.5, 1.1, 1.5])[:, None]
    return simulate(weights, start, t_end=t_end, rtol=1e-10, measure_error=True, throw=False)


def _rename_end(run: Trajectory) -> Trajectory:
    """Return the data with the tokens renamed in the second half of the times."""
    states = run.states.copy()
    late = len(run.times) // 2
    states[late:] = np.roll(states[late:], 1, axis=1)
    return dataclasses.replace(run, states=states)


theorems.register("several_heads")(
    Theorem(
        name="several_heads",
        kind="conjecture",
        statement=(
            "For d = 1, several heads with V_h > 0 and Q_h K_h > 0, and pairwise distinct tokens,"
            " the attention matrix of every head converges; all its rows but at most one are 0-1"
            " rows at the smallest or the largest first token, in that order, and the exception is"
            " strictly between them."
        ),
        cite=(
            "Geshkovski, Letrouit, Polyanskiy, Rigollet, arXiv:2305.05465v6, section 12, open"
            " problem on several heads"
        ),
        errata=(
            "The paper asks the question for the recursion in any dimension; this is the version"
            " that can be tested, on the flow."
        ),
        hypotheses=hypotheses,
        predict=predict,
        measure=measure,
        holds=lambda: _specimen(7.0),
        breaks=lambda: _specimen(2.0, signs=-1.0),
        short=lambda: _specimen(1.0),
        spoil=_rename_end,
        nonsense=random_rest,
    )
)
