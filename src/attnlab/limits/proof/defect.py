"""By how much a polynomial fails to solve the equation: a bound of |p_i' - f_i(p)| for each token,
over the whole step.

With E_ij = count_j exp(g_ij), g_ij = <M^T p_i, p_j - p_l>, l the row's leader, and Z_i = count_l +
sum E_ij >= 1,

    R_i = Z_i (p_i' - V p_l) - V sum_j E_ij (p_j - p_l)

is Z_i times the defect, and an entire function of s. Its maximum over 0 <= s <= 1 is at most the
Lebesgue constant times its maximum at the Chebyshev nodes, plus a tail from its bound on an ellipse
around [0, 1] (docs/limits.md). At the nodes it is evaluated with a bound of the rounding, or in
balls.
"""

from __future__ import annotations

import numpy as np

from attnlab.limits.proof.equation import UP, Equation
from attnlab.limits.proof.expansion import Arithmetic
from attnlab.limits.proof.exponentials import upper
from attnlab.limits.proof.pairs import Pairs
from attnlab.limits.proof.ranges import Polynomials

ELLIPSES = (2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
"""rho of the ellipses (Bernstein) of which the best is taken."""

SLACK = 1.25
"""So that a check with other nodes and ellipses finds no larger bound."""


def bound_defect(
    equation: Equation,
    arithmetic: Arithmetic,
    c: np.ndarray,
    h: float,
    leader: np.ndarray,
    pairs: Pairs,
    polynomials: Polynomials,
    weight_out: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """(bounds (n,) of |p_i' - f_i(p)|, the part of them that a shorter step would make smaller), in
    units of x over t.

    A pair whose weight is at most weight_out during the step, where that is not NaN, is left out
    and charged.
    """
    n, is_in = len(leader), np.isnan(weight_out)
    v = _velocity(equation, c, h, leader)
    pairs_in, out = pairs.at(is_in), pairs.at(~is_in)
    at_nodes = arithmetic.at_nodes(c, h, leader, pairs_in)
    tail = _tail(equation, arithmetic, leader, pairs_in, polynomials, is_in, v)
    # pairs left out: |E (p_i' - V p_l) - E V (p_j - p_l)|
    reach, slope = polynomials.w.norm[:, ~is_in].sum(axis=0), v.sum(axis=0)
    lost = out.add_rows(
        weight_out[~is_in] * (equation.V_norm * reach * UP + slope[out.row]) * UP, n, 0
    )
    least = equation.counts[leader]  # Z >= count of the leader
    return SLACK * (arithmetic.digits.lebesgue * at_nodes + tail + lost) / least, tail / least


def _velocity(equation: Equation, c: np.ndarray, h: float, leader: np.ndarray) -> np.ndarray:
    """Bounds (order + 1, n) of the coefficients of p' - V p_l."""
    order = np.arange(len(c[0]), dtype=float)[:, None, None]
    found, charged = 0.0, 0.0
    for part in c:
        first = np.concatenate([order[1:] * part[1:] / h, np.zeros((1, *part.shape[1:]))])
        found = found + first - part[:, leader] @ equation.V.T
        charged = charged + 1e-14 * (np.abs(first) + np.abs(part[:, leader]) @ equation.V_size.T)
    return np.asarray(np.sqrt(((np.abs(found) + charged) ** 2).sum(axis=2)) * UP)


def _tail(
    equation: Equation,
    arithmetic: Arithmetic,
    leader: np.ndarray,
    pairs: Pairs,
    polynomials: Polynomials,
    is_in: np.ndarray,
    v_norm: np.ndarray,
) -> np.ndarray:
    """What interpolation at the nodes can miss, (n,): the least over the ellipses."""
    n, digits = len(leader), arithmetic.digits
    best, counts = np.full(n, np.inf), equation.counts[pairs.column]
    g, w_norm = polynomials.g, polynomials.w.norm[:, is_in]
    g_norm, start = g.norm[:, is_in], g.value[0, is_in] + g.error[0, is_in]
    for rho in ELLIPSES:
        # |s| <= (1 + a) / 2 on the ellipse with half axis a
        powers = (0.5 * (1.0 + 0.5 * (rho + 1.0 / rho))) ** np.arange(len(g_norm))
        w, v = powers[: len(w_norm)] @ w_norm * UP, powers[: len(v_norm)] @ v_norm * UP
        with np.errstate(over="ignore", invalid="ignore"):
            rise = powers[1:] @ g_norm[1:] * UP
            E = counts * upper(start + rise + 1e-12 * np.abs(start)) * UP
            Z = equation.counts[leader] + pairs.add_rows(E, n, 0)
            most = (Z * v + equation.V_norm * pairs.add_rows(E * w, n, 0)) * UP
            missed = (1.0 + digits.lebesgue) * 2.0 * most * rho**-digits.nodes * rho / (rho - 1.0)
        best = np.minimum(best, np.where(np.isnan(missed), np.inf, missed * UP))
    return best
