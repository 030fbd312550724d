"""The loop: a polynomial, its defect, the error bound, until the end is certified."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from attnlab.limits.proof.comparison import comparison_matrices, find_bounds
from attnlab.limits.proof.defect import bound_defect
from attnlab.limits.proof.ending import Ending, find_ending
from attnlab.limits.proof.equation import UP, Equation, NotProved
from attnlab.limits.proof.expansion import all_pairs, choose_leaders, expand
from attnlab.limits.proof.exponentials import UNIT, upper
from attnlab.limits.proof.ranges import (
    GROWTH,
    MOST_PIECES,
    choose_pieces,
    find_ranges,
    take_polynomials,
)
from attnlab.limits.proof.spread import Spread, enclose_again, follow, pair_norms, token_norms
from attnlab.progress import Progress

MOST_STEPS = 1500
LARGEST_ERROR = 1e-3
"""Relative to the largest token: an enclosure that is wider will not decide anything."""

NEGLIGIBLE = -60.0
"""A score that stays below the leader's by this is left out of sums and charged instead."""

ALMOST_NEGLIGIBLE = -75.0
"""Pairs with a larger score enter the polynomial. A step ends before another pair comes to
count.
"""

KEPT = 1.5
"""The radius that is stored, above the one that was found: a check finds its own, with other
bases.
"""

MOST_GROWTH = 6.0
"""Errors made within a step are bounded by norms, so they may grow by e to this power."""

MOST_HALVINGS = 50
WANTED_TAIL = 1e-17
"""A step is shortened until what the nodes can miss is below this, relative to the velocity; or
four times.
"""


def enclose(equation: Equation, deadline: float, progress: Progress) -> dict[str, Any]:
    """The steps from the first tokens to a certified end, by the names of the fields of a Proof; or
    NotProved.
    """
    x, h, spread = equation.x0, 0.1 / equation.V_norm, Spread.point(*equation.x0.shape)
    kept: dict[str, list] = {
        name: [] for name in ("h", "coefficients", "leader", "pieces", "defect", "tube", "radius")
    }
    t = 0.0
    for number in range(MOST_STEPS):
        progress(min(0.95, number / 200.0), "proving")
        progress.raise_if_cancelled()
        if time.monotonic() > deadline:
            raise NotProved(f"the time limit ended the proof at t = {t:.4g}")
        step, G, E = _step(equation, x, spread, h)
        for name, value in step.items():
            kept[name].append(value)
        h, c = step["h"], step["coefficients"]
        x, jump = _end_of(c)
        t += h
        e = (step["radius"] + jump) * UP
        spread = enclose_again(G, spread.sizes, (E + jump) * UP)
        if float(e.max()) > LARGEST_ERROR * float(np.abs(x).max()):
            raise NotProved(
                f"the error bound has grown to {float(e.max()):.2g} at t = {t:.4g}, too wide for a"
                " certificate"
            )
        leaders = choose_leaders(equation, x)
        ending = _try_to_end(equation, x, e, leaders)
        if ending is not None:
            return {
                **{name: np.array(values) for name, values in kept.items()},
                "end": x,
                "end_radius": e,
                "leaders": leaders,
                "margin": ending.margin,
                "mu": ending.mu,
                "leak": ending.leak,
            }
    raise NotProved(
        f"{MOST_STEPS} steps led to t = {t:.4g} only, and the end was not certified there"
    )


def _step(
    equation: Equation, x: np.ndarray, spread: Spread, h: float
) -> tuple[dict[str, Any], np.ndarray, np.ndarray]:
    """One step from x (n, d), from which the tokens differ by the Spread; (the step, G at its end,
    the rest E (n,)).
    """
    leader = choose_leaders(equation, x)
    pairs = all_pairs(equation, leader)
    row = x @ equation.M
    score = (row[pairs.row] * (x[pairs.column] - x[pairs.leader])).sum(axis=1)
    is_in = score > ALMOST_NEGLIGIBLE
    c, h = expand(equation, x, leader, pairs.at(is_in), h)
    powers = (0.5 ** np.arange(len(c)))[:, None, None]
    for attempt in range(MOST_HALVINGS):
        polynomials = take_polynomials(equation, c, pairs)
        pieces = choose_pieces(equation, h, polynomials, pairs)
        ranges = find_ranges(polynomials, pairs, pieces)
        highest = (ranges.score + ranges.on_piece.score).max(axis=0)
        is_out = highest < NEGLIGIBLE
        if (
            not (is_in | is_out).all() and attempt < MOST_HALVINGS - 1
        ):  # the polynomial knows nothing of such a pair
            c, h = c * powers, 0.5 * h
            continue
        weight_out = equation.counts[pairs.column] * upper(highest) * UP
        defect, tail = bound_defect(
            equation, c, h, leader, pairs.at(~is_out), pairs.at(is_out), weight_out[is_out]
        )
        speed = max(float(np.sqrt((c[1] ** 2).sum(axis=1)).max()) / h, 1e-300)
        if np.isfinite(defect).all() and (float(tail.max()) <= WANTED_TAIL * speed or attempt >= 4):
            break
        c, h = c * powers, 0.5 * h
    else:
        raise NotProved("no finite bound of the defect was found")
    far = spread.norms(len(x))
    around = pair_norms(spread.G, spread.sizes, pairs, len(x))
    for _ in range(MOST_HALVINGS):
        bounds = find_bounds(
            equation,
            ranges,
            leader,
            np.tile(far, (ranges.pieces, 1)),
            np.tile(around, (ranges.pieces, 1)),
        )
        sums = comparison_matrices(equation, ranges, h, leader, bounds).sum(axis=2).max(axis=1)
        if float(sums.mean()) <= MOST_GROWTH:
            break
        c, h = c * powers, 0.5 * h  # the bound of the defect holds on the shorter step, too
        polynomials = take_polynomials(equation, c, pairs)
        ranges = find_ranges(polynomials, pairs, choose_pieces(equation, h, polynomials, pairs))
    pieces = int(np.clip(np.ceil(float(sums.max()) / GROWTH), ranges.pieces, MOST_PIECES))
    for _ in range(4):
        if pieces != ranges.pieces:
            ranges = find_ranges(polynomials, pairs, pieces)
        try:
            G, E, tube = follow(equation, ranges, h, leader, defect, spread)
            break
        except NotProved:
            pieces = 2 * pieces
    else:
        raise NotProved("the error bound does not stay inside its tube")
    radius = KEPT * (token_norms(np.abs(G) @ spread.sizes, len(x)) + E)
    return (
        {
            "h": h,
            "coefficients": c,
            "leader": leader,
            "pieces": pieces,
            "defect": defect,
            "tube": tube,
            "radius": radius,
        },
        G,
        E,
    )


def _end_of(c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(the polynomial at s = 1, rounded (n, d); a bound of what rounding made of it, (n,))."""
    value, off = c[-1].copy(), np.zeros(c.shape[1:])
    for coefficient in c[-2::-1]:
        value = value + coefficient
        off += np.abs(value)
    return value, np.sqrt(((1.01 * UNIT * off) ** 2).sum(axis=1)) * UP


def _try_to_end(
    equation: Equation, x: np.ndarray, e: np.ndarray, leaders: np.ndarray
) -> Ending | None:
    """The Ending, looked for only where every gap is already wide."""
    scores = x @ equation.M @ x.T
    gaps = np.where(equation.seen, scores[np.arange(len(x)), leaders][:, None] - scores, np.inf)
    gaps[np.arange(len(x)), leaders] = np.inf
    return find_ending(equation, x, e, leaders) if float(gaps.min()) > 40.0 else None
