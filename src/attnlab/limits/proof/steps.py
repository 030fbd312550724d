"""The loop: a polynomial, its defect, the error bound, until the end is certified."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from attnlab.limits.proof.comparison import comparison_matrices, find_bounds
from attnlab.limits.proof.defect import bound_defect
from attnlab.limits.proof.ending import Ending, find_ending
from attnlab.limits.proof.equation import UP, Equation, NotProved
from attnlab.limits.proof.expansion import Arithmetic
from attnlab.limits.proof.exponentials import upper
from attnlab.limits.proof.pairs import all_pairs
from attnlab.limits.proof.ranges import (
    GROWTH,
    MOST_PIECES,
    Polynomials,
    choose_pieces,
    find_ranges,
    highest_scores,
)
from attnlab.limits.proof.spectrum import Spectrum
from attnlab.limits.proof.spread import Spread, enclose_again, follow, pair_norms, token_norms
from attnlab.progress import Progress

MOST_STEPS = 1500
LARGEST_ERROR = 1e-3
"""Relative to the largest token: an enclosure that is wider will not decide anything."""

KEPT = 1.5
"""The radius that is stored, above the one that was found: a check finds its own, with other
bases.
"""

MOST_GROWTH = 6.0
"""Errors made within a step are bounded by norms, so they may grow by e to this power."""

MOST_HALVINGS = 50


class TooCoarse(NotProved):
    """Raised where more digits may help."""


def enclose(
    equation: Equation,
    spectrum: Spectrum,
    arithmetic: Arithmetic,
    deadline: float,
    progress: Progress,
) -> dict[str, Any]:
    """The steps from the first tokens to a certified end, by the names of the fields of a Proof; or
    NotProved.
    """
    x = np.zeros((arithmetic.digits.parts, *equation.x0.shape))
    x[0] = equation.x0
    h, spread = 0.1 / equation.V_norm, Spread.point(*equation.x0.shape)
    kept: dict[str, list] = {
        name: [] for name in ("h", "coefficients", "leader", "pieces", "defect", "tube", "radius")
    }
    t = 0.0
    for number in range(MOST_STEPS):
        progress(min(0.95, number / 200.0), "proving")
        progress.raise_if_cancelled()
        if time.monotonic() > deadline:
            raise NotProved(f"the time limit ended the proof at t = {t:.4g}")
        step, G, E = _step(equation, arithmetic, x, spread, h)
        for name, value in step.items():
            kept[name].append(value)
        h, c = step["h"], step["coefficients"]
        x, jump = arithmetic.end_of(c)
        t += h
        e = (step["radius"] + jump) * UP
        spread = enclose_again(G, spread.sizes, (E + jump) * UP)
        if float(e.max()) > LARGEST_ERROR * float(np.abs(x).max()):
            raise TooCoarse(
                f"the error bound has grown to {float(e.max()):.2g} at t = {t:.4g}, too wide for a"
                " certificate"
            )
        scores = arithmetic.scores(x)
        leaders = scores.argmax(axis=1)
        ending = _try_to_end(equation, spectrum, x, e, scores)
        if ending is not None:
            arrays = {name: np.array(values) for name, values in kept.items()}
            first, *rest = np.moveaxis(arrays.pop("coefficients"), 1, 0)
            return {
                **arrays,
                "coefficients": first,
                "coefficients_rest": np.array(rest).reshape(len(rest), *first.shape),
                "end": x[0],
                "end_rest": x[1:],
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
    equation: Equation, arithmetic: Arithmetic, x: np.ndarray, spread: Spread, h: float
) -> tuple[dict[str, Any], np.ndarray, np.ndarray]:
    """One step from x (parts, n, d), from which the tokens differ by the Spread; (the step, G at
    its end, the rest E (n,)).
    """
    digits, n = arithmetic.digits, x.shape[1]
    score = arithmetic.scores(x)
    leader = score.argmax(axis=1)
    pairs = all_pairs(equation, leader)
    is_in = score[pairs.row, pairs.column] > digits.almost_negligible
    c, h = arithmetic.expand(x, leader, pairs.at(is_in), h)
    polynomials, shorter = arithmetic.polynomials(c, pairs), 0
    for _ in range(MOST_HALVINGS):
        highest = highest_scores(polynomials)
        is_fine = is_in | (np.maximum.accumulate(highest) < digits.negligible)
        if not is_fine.all():  # the polynomial knows nothing of such a pair: end before it counts
            last = max(int(is_fine.all(axis=1).sum()), 1) / len(highest)
            c, polynomials, h = _shortened(c, polynomials, h, 2.0 ** np.floor(np.log2(last)))
            continue
        most = highest.max(axis=0)
        weight_out = np.where(
            most < digits.negligible, equation.counts[pairs.column] * upper(most) * UP, np.nan
        )
        defect, tail = bound_defect(
            equation, arithmetic, c, h, leader, pairs, polynomials, weight_out
        )
        speed = max(float(np.sqrt((c[0, 1] ** 2).sum(axis=1)).max()) / h, 1e-300)
        is_small = float(tail.max()) <= digits.smallest * speed or shorter >= 4
        if np.isfinite(defect).all() and is_small:
            break
        c, polynomials, h = _shortened(c, polynomials, h, 0.5)
        shorter += 1
    else:
        raise TooCoarse("no finite bound of the defect was found")
    far = spread.norms(n)
    around = pair_norms(spread.G, spread.sizes, pairs, n)
    ranges = find_ranges(polynomials, pairs, choose_pieces(equation, h, polynomials))
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
        # the bound of the defect holds on the shorter step, too
        c, polynomials, h = _shortened(c, polynomials, h, 0.5)
        ranges = find_ranges(polynomials, pairs, choose_pieces(equation, h, polynomials))
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
        raise TooCoarse("the error bound does not stay inside its tube")
    radius = KEPT * (token_norms(np.abs(G) @ spread.sizes, n) + E)
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


def _shortened(
    c: np.ndarray, polynomials: Polynomials, h: float, factor: float
) -> tuple[np.ndarray, Polynomials, float]:
    """The same polynomial on a step that is shorter by a power of two."""
    powers = factor ** np.arange(c.shape[1])
    return c * powers[:, None, None], polynomials.scaled(factor), factor * h


def _try_to_end(
    equation: Equation, spectrum: Spectrum, x: np.ndarray, e: np.ndarray, scores: np.ndarray
) -> Ending | None:
    """The Ending, looked for only where every gap is already wide."""
    leaders = scores.argmax(axis=1)
    gaps = np.where(equation.seen, -scores, np.inf)
    gaps[np.arange(len(gaps)), leaders] = np.inf
    return find_ending(equation, spectrum, x, e, leaders) if float(gaps.min()) > 40.0 else None
