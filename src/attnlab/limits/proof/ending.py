"""The end of a proof: from enclosed tokens on, no row changes its leader again, and what softmax
leaks is bounded.

In eigen-coordinates V is diagonal, and softmax acts on each coordinate alone. If every row only
attended to its leader, every gap x_i^T M (x_l - x_k) would be a sum of exponentials. Sorted by
exponent, all partial sums of (the lower bounds of) its coefficients, with -G at the exponent mu,
are not negative. Then the gap stays above G e^{mu s} (Abel). The coefficients are enclosed for all
tokens within the radius plus `leak`, which bounds what softmax moves, and for all matrices within
the errors of the Spectrum. Exponents whose order is open are taken in their worst order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from attnlab.limits.proof.equation import UP, Equation
from attnlab.limits.proof.exponentials import UNIT, upper
from attnlab.limits.proof.spectrum import Spectrum

LEAST_MARGIN = 40.0
ROUNDING = 64.0 * UNIT
"""Of a product of three doubles, two of which are differences, and of the sums of products over at
most 12 coordinates.
"""


@dataclass(frozen=True, eq=False)
class Ending:
    """From here on leaders stay: margin G, rate mu, and by how much the leak moves a coordinate of
    a leader.
    """

    margin: float
    mu: float
    leak: float


def find_ending(
    equation: Equation, spectrum: Spectrum, x: np.ndarray, radius: np.ndarray, leader: np.ndarray
) -> Ending | None:
    """The Ending for tokens within radius (n,) of the sum of the parts x (parts, n, d), or None if
    it cannot be certified yet.
    """
    n, d = x.shape[1:]
    if not np.array_equal(leader[leader], leader):
        return None
    rates = spectrum.rates
    fastest = float((np.abs(rates) + spectrum.rates_off).max()) * UP
    mu = 0.5 * float(rates[spectrum.grows].min())
    x_all, x_off = _in_coordinates(spectrum, x, radius)
    size = float(np.sqrt(((np.abs(x_all) + x_off) ** 2).sum(axis=1)).max()) * UP
    total = float(equation.counts.sum())
    margin = max(
        LEAST_MARGIN + math.log(total) + math.log(max(size, 1.0)), 4.0 * fastest / mu + 1.0
    )
    # under the hypothesis that gaps exceed (G - 1) e^{mu s}: 2 n |V| X e^{-(G - 1)} / ((G - 1) mu -
    # 2 |V|)
    leak = (
        2.0
        * total
        * fastest
        * size
        * float(upper(np.array(1.0 - margin)))
        / ((margin - 1.0) * mu - 2.0 * fastest)
        * UP**4
    )
    apart = x - x[:, leader]
    D_rounding = 2 * len(x) * UNIT * np.abs(apart).sum(axis=0)
    D, D_off = spectrum.coordinates(
        apart.sum(axis=0), ((radius + radius[leader])[:, None] + D_rounding) * UP
    )
    is_leader = (leader == np.arange(n))[:, None]
    D, D_off = np.where(is_leader, 0.0, D), np.where(is_leader, 0.0, (D_off + 2.0 * leak) * UP)
    X, X_off = x_all[leader], (x_off[leader] + leak) * UP
    M, M_error = spectrum.scores(equation.M, equation.M_error)
    M_size = (np.abs(M) + M_error) * UP
    exponents, places = _exponents(spectrum, mu)
    low, scale = (np.zeros((n, n, len(exponents))) for _ in range(2))

    def add(
        place: int,
        a: int,
        b: int,
        left: np.ndarray,
        left_off: np.ndarray,
        right: np.ndarray,
        right_off: np.ndarray,
        sign: float,
    ) -> None:
        """Add M_ab left_a right_b, left (n,) of the row and right (n, n) or (n,) of the column,
        from below.
        """
        product = left[:, None] * right
        off = left_off[:, None] * (np.abs(right) + right_off) + np.abs(left)[:, None] * right_off
        most = M_size[a, b]
        term = np.abs(product) * (M_error[a, b] + ROUNDING * most)
        low[:, :, place] += sign * M[a, b] * product - (most * off + term) * UP
        scale[:, :, place] += most * np.abs(product) + most * off

    same = leader[:, None] == leader[None, :]
    for b in range(d):
        between = np.where(same, 0.0, X[:, None, b] - X[None, :, b])
        between_off = np.where(
            same, 0.0, (X_off[:, None, b] + X_off[None, :, b] + 2 * UNIT * np.abs(between)) * UP
        )
        D_b, D_b_off = D[None, :, b], D_off[None, :, b]
        for a in range(d):
            add(places[a, b], a, b, X[:, a], X_off[:, a], between, between_off, 1.0)
            add(places[a, None], a, b, X[:, a], X_off[:, a], D_b, D_b_off, -1.0)
            add(places[None, b], a, b, D[:, a], D_off[:, a], between, between_off, 1.0)
            add(places[None, None], a, b, D[:, a], D_off[:, a], D_b, D_b_off, -1.0)
    low[:, :, places["mu"]] -= margin
    scale[:, :, places["mu"]] += margin
    low -= (2 * len(exponents) + 4 * d * d) * 2 * UNIT * scale * UP  # sums are rounded, too
    is_fine, total_low, begin = np.ones((n, n), dtype=bool), np.zeros((n, n)), 0
    while begin < len(exponents):
        end = begin + 1  # those whose order is open end here
        while end < len(exponents) and exponents[end].high >= min(
            one.low for one in exponents[begin:end]
        ):
            end += 1
        together = low[:, :, begin:end]
        is_fine &= total_low + np.minimum(together, 0.0).sum(axis=2) >= 0.0
        total_low = total_low + together.sum(axis=2)
        is_fine &= total_low >= 0.0
        begin = end
    is_fine |= ~equation.seen
    is_fine[np.arange(n), leader] = True
    return Ending(margin, mu, leak) if is_fine.all() else None


def _in_coordinates(
    spectrum: Spectrum, x: np.ndarray, radius: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(eigen-coordinates (n, d), what they are off by) of tokens within radius (n,) of the sum of
    the parts x (parts, n, d).
    """
    return spectrum.coordinates(x[0], np.abs(x[1:]).sum(axis=0) + radius[:, None])


class Exponent(NamedTuple):
    """Between these."""

    low: Fraction
    high: Fraction


def _exponents(spectrum: Spectrum, mu: float) -> tuple[list[Exponent], dict]:
    """All exponents, falling by their upper bounds, and where each (direction or None, direction or
    None) stands among them, and "mu".
    """
    known: dict[int | None, Exponent] = {None: Exponent(Fraction(0), Fraction(0))}
    for number, (rate, off) in enumerate(zip(spectrum.rates, spectrum.rates_off, strict=True)):
        known[number] = Exponent(Fraction(rate) - Fraction(off), Fraction(rate) + Fraction(off))
    found: dict[tuple, Exponent] = {("mu",): Exponent(Fraction(mu), Fraction(mu))}
    names: dict = {"mu": ("mu",)}
    for a, one in known.items():
        for b, other in known.items():
            both = Exponent(one.low + other.low, one.high + other.high)
            # sums that are known exactly are equal or not; others are the same for (a, b) and (b,
            # a) only
            is_exact = both.low == both.high
            name = ("exact", both.low) if is_exact else tuple(sorted((str(a), str(b))))
            if both == found["mu",]:
                name = ("mu",)
            found[name], names[a, b] = both, name
    order = sorted(found, key=lambda name: found[name].high, reverse=True)
    return [found[name] for name in order], {
        pair: order.index(name) for pair, name in names.items()
    }


def find_points(
    spectrum: Spectrum,
    x: np.ndarray,
    radius: np.ndarray,
    leader: np.ndarray,
    leak: float,
    steps: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """(limits of z (n, d) in eigen-coordinates, their errors (n, d)) where a rate is positive, for
    tokens near the sum of the parts x (parts, n, d), after steps of these lengths; 0 elsewhere.
    """
    t, rates = math.fsum(steps), spectrum.rates
    argument = -rates * t
    shrink = np.where(spectrum.grows, upper(argument), 0.0)
    relative = (
        3.0 * UNIT * np.abs(argument) + 40.0 * UNIT + 4e-15 + 2.0 * spectrum.rates_off * t
    )  # t, the product, the exponential from above, products, rates (below 1e-6 in all)
    X, X_off = _in_coordinates(spectrum, x, radius)
    points = shrink * X[leader]
    off = shrink * (X_off[leader] + leak)
    return points, (off * (1.0 + relative) + relative * np.abs(points)) * (1.0 + 1e-6)


def tell_apart(points: np.ndarray, off: np.ndarray, leader: np.ndarray) -> bool:
    """Whether the limits of different leaders are different."""
    leaders = np.unique(leader)
    apart = (
        np.abs(points[leaders][:, None] - points[leaders][None])
        - (off[leaders][:, None] + off[leaders][None]) * UP
    )
    return bool(((apart > 0.0).any(axis=2) | np.eye(len(leaders), dtype=bool)).all())
