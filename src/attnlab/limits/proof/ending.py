"""The end of a proof: from enclosed tokens on, no row changes its leader again, and what softmax
leaks is bounded.

If every row only attended to its leader, every gap x_i^T M (x_l - x_k) would be a sum of
exponentials. Sorted by exponent, all partial sums of (the lower bounds of) its coefficients, with
-G at the exponent mu, are not negative. Then the gap stays above G e^{mu s} (Abel). The
coefficients are enclosed for all tokens within the radius plus `leak`, which bounds what softmax
moves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from attnlab.limits.proof.equation import UP, Equation
from attnlab.limits.proof.exponentials import UNIT, upper

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
    equation: Equation, x: np.ndarray, radius: np.ndarray, leader: np.ndarray
) -> Ending | None:
    """The Ending for tokens within radius (n,) of x (n, d), or None if it cannot be certified
    yet.
    """
    n, d = x.shape
    if not np.array_equal(leader[leader], leader):
        return None
    rates = equation.rates
    fastest = equation.V_norm
    mu = 0.5 * float(rates[rates > 0.0].min())
    size = float((np.sqrt((x**2).sum(axis=1)) + radius).max()) * UP
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
    X, D = x[leader], x - x[leader]
    is_leader = leader == np.arange(n)
    X_off = np.repeat((radius[leader] + leak)[:, None], d, axis=1) * UP
    D_off = np.where(
        is_leader[:, None],
        0.0,
        ((radius + radius[leader] + 2.0 * leak)[:, None] + 2 * UNIT * np.abs(D)) * UP,
    )
    exponents, places = _exponents(rates, mu)
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
        most = equation.M_size[a, b]
        term = np.abs(product) * (equation.M_error[a, b] + ROUNDING * most)
        low[:, :, place] += sign * equation.M[a, b] * product - (most * off + term) * UP
        scale[:, :, place] += most * np.abs(product) + most * off

    same = leader[:, None] == leader[None, :]
    for b in range(d):
        between = np.where(same, 0.0, X[:, None, b] - X[None, :, b])
        between_off = np.where(
            same, 0.0, (X_off[:, None, b] + X_off[None, :, b] + 2 * UNIT * np.abs(between)) * UP
        )
        D_b, D_b_off = D[None, :, b], D_off[None, :, b]
        for a in range(d):
            add(places[rates[a], rates[b]], a, b, X[:, a], X_off[:, a], between, between_off, 1.0)
            add(places[rates[a], None], a, b, X[:, a], X_off[:, a], D_b, D_b_off, -1.0)
            add(places[None, rates[b]], a, b, D[:, a], D_off[:, a], between, between_off, 1.0)
            add(places[None, None], a, b, D[:, a], D_off[:, a], D_b, D_b_off, -1.0)
    at_mu = exponents.index(Fraction(mu))
    low[:, :, at_mu] -= margin
    scale[:, :, at_mu] += margin
    partial = (
        np.cumsum(low, axis=2)
        - (len(exponents) + 4 * d * d) * 2 * UNIT * np.cumsum(scale, axis=2) * UP
    )
    is_fine = (partial >= 0.0).all(axis=2)
    is_fine |= ~equation.seen
    is_fine[np.arange(n), leader] = True
    return Ending(margin, mu, leak) if is_fine.all() else None


def _exponents(rates: np.ndarray, mu: float) -> tuple[list[Fraction], dict]:
    """All exponents, exact and falling, and where each (rate or None, rate or None) stands among
    them.
    """
    known: list[float | None] = [*map(float, rates), None]
    sums = {(a, b): Fraction(a or 0.0) + Fraction(b or 0.0) for a in known for b in known}
    exponents = sorted({*sums.values(), Fraction(mu)}, reverse=True)
    return exponents, {pair: exponents.index(value) for pair, value in sums.items()}


def find_points(
    equation: Equation,
    x: np.ndarray,
    radius: np.ndarray,
    leader: np.ndarray,
    leak: float,
    steps: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """(limits of z (n, d), their errors (n, d)) where a rate is positive, after steps of these
    lengths; 0 elsewhere.
    """
    t = math.fsum(steps)
    rates = equation.rates
    grows = rates > 0.0
    argument = -rates * t
    shrink = np.where(grows, upper(argument), 0.0)
    relative = (
        3.0 * UNIT * np.abs(argument) + 40.0 * UNIT + 4e-15
    )  # t, the product, the exponential from above, products
    points = shrink * x[leader]
    off = (shrink * (radius[leader] + leak)[:, None] + relative * np.abs(points)) * (1.0 + 1e-6)
    return points, off


def tell_apart(points: np.ndarray, off: np.ndarray, leader: np.ndarray) -> bool:
    """Whether the limits of different leaders are different."""
    leaders = np.unique(leader)
    apart = (
        np.abs(points[leaders][:, None] - points[leaders][None])
        - (off[leaders][:, None] + off[leaders][None]) * UP
    )
    return bool(((apart > 0.0).any(axis=2) | np.eye(len(leaders), dtype=bool)).all())
