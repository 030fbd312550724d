"""By how much a polynomial fails to solve the equation: a bound of |p_i' - f_i(p)| for each token,
over the whole step.

With E_ij = count_j exp(g_ij), g_ij = <M^T p_i, p_j - p_l>, l the row's leader, and Z_i = count_l +
sum E_ij >= 1,

    R_i = Z_i (p_i' - V p_l) - V sum_j E_ij (p_j - p_l)

is Z_i times the defect, and an entire function of s. Its maximum over 0 <= s <= 1 is at most
LEBESGUE times its maximum at the Chebyshev nodes, plus a tail from its bound on an ellipse around
[0, 1] (docs/limits.md). At the nodes it is evaluated in doubles with a bound of the rounding.
"""

from __future__ import annotations

import math

import numpy as np

from attnlab.limits.proof.equation import UP, Equation
from attnlab.limits.proof.expansion import Pairs
from attnlab.limits.proof.exponentials import ERROR, LARGEST, UNIT, exponential, upper

NODES = 40
LEBESGUE = 1.0001 * (2.0 / math.pi * math.log(NODES) + 1.0)
"""The Lebesgue constant of the Chebyshev nodes; 1.0001 is for nodes that are off by less than
1e-10.
"""

AT = 0.5 + 0.5 * np.cos(np.pi * (np.arange(NODES) + 0.5) / NODES)
ELLIPSES = (2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
"""rho of the ellipses (Bernstein) of which the best is taken."""

U = 1.01 * UNIT
SLACK = 1.25
"""So that a check with other nodes and ellipses finds no larger bound."""


def bound_defect(
    equation: Equation,
    c: np.ndarray,
    h: float,
    leader: np.ndarray,
    pairs: Pairs,
    left_out: Pairs,
    weight_out: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """(bounds (n,) of |p_i' - f_i(p)|, the part of them that a shorter step would make smaller), in
    units of x over t.

    pairs are those that are evaluated; the weights of the pairs left_out are at most weight_out
    during the step.
    """
    n, d = c.shape[1:]
    order = np.arange(len(c), dtype=float)[:, None, None]
    size = np.abs(c)
    # coefficients of M^T p, p_j - p_l and p' - V p_l, with what rounding made of them
    q_all = c @ equation.M
    q_size = size @ equation.M_size * UP
    q_error = (
        U * ((2 * order + 1) * np.abs(q_all) + equation.M_units * q_size) + size @ equation.M_error
    ).sum(axis=0) * UP
    q = q_all[:, pairs.row]
    w = c[:, pairs.column] - c[:, pairs.leader]
    w_error = U * ((2 * order + 2) * np.abs(w)).sum(axis=0)
    first = np.concatenate([order[1:] * c[1:] / h, np.zeros((1, n, d))])
    second = c[:, leader] @ equation.V.T
    v = first - second
    v_error = U * ((2 * order + 2) * np.abs(v) + 2 * np.abs(first) + np.abs(second)).sum(axis=0)
    counts = equation.counts[pairs.column]
    at_nodes = _at_nodes(
        equation, leader, pairs, counts, (q, q_error[pairs.row]), (w, w_error), (v, v_error)
    )
    v_size = np.abs(v) + U * 4 * (np.abs(first) + np.abs(second))
    tail = _tail(
        equation,
        leader,
        pairs,
        counts,
        q_size[:, pairs.row],
        np.abs(w) * (1.0 + 4 * U),
        v_size,
        (q[0] * w[0]).sum(axis=1),
    )
    # pairs left out: |E (p_i' - V p_l) - E V (p_j - p_l)|
    reach = np.sqrt(
        (((np.abs(c[:, left_out.column] - c[:, left_out.leader])).sum(axis=0)) ** 2).sum(axis=1)
    )
    slope = np.sqrt((v_size.sum(axis=0) ** 2).sum(axis=1))
    lost = left_out.add_rows(
        weight_out * (equation.V_norm * reach * UP + slope[left_out.row]), n, 0
    )
    least = equation.counts[leader]  # Z >= count of the leader
    return SLACK * (LEBESGUE * at_nodes + tail + lost) / least, tail / least


def _horner(coefficients: np.ndarray) -> np.ndarray:
    """The polynomial at the nodes, (NODES, ...). It is off by at most the sum of (2k + 1) U
    |c_k|.
    """
    at = AT.reshape(-1, *[1] * (coefficients.ndim - 1))
    value = np.broadcast_to(coefficients[-1], (NODES, *coefficients.shape[1:])).copy()
    for coefficient in coefficients[-2::-1]:
        value *= at
        value += coefficient
    return value


def _at_nodes(
    equation: Equation, leader: np.ndarray, pairs: Pairs, counts: np.ndarray, *polynomials
) -> np.ndarray:
    """The largest |R_i| at the nodes, with the rounding of its evaluation, (n,)."""
    (q, q_error), (w, w_error), (v, v_error) = (
        (_horner(values), error) for values, error in polynomials
    )
    n, d = v.shape[1:]
    products = np.abs(q) * np.abs(w)
    g = np.einsum("smd,smd->sm", q, w)
    g_error = (np.abs(q) * w_error + q_error * (np.abs(w) + w_error) + (d + 1) * U * products).sum(
        axis=2
    )
    off = np.where(g_error < 0.01, 1.01 * g_error, np.inf) + 1.01 * ERROR + 2 * U  # relative, of E
    E = np.where(g < LARGEST, counts * exponential(g), np.inf)
    most = int(np.bincount(pairs.row, minlength=1).max(initial=0)) + 4  # terms of a row's sum
    N = pairs.add_rows(E[..., None] * w, n, 1)
    N_error = pairs.add_rows(
        E[..., None] * (1.01 * w_error + (off + most * U)[..., None] * np.abs(w)), n, 1
    )
    Z = equation.counts[leader] + pairs.add_rows(E, n, 1)
    Z_error = pairs.add_rows(E * (off + most * U), n, 1) + 2 * U * Z
    rates = np.abs(equation.rates)
    R = Z[..., None] * v - N * equation.rates
    error = (
        Z[..., None] * v_error
        + Z_error[..., None] * (np.abs(v) + v_error)
        + rates * N_error
        + 4 * U * (Z[..., None] * np.abs(v) + rates * np.abs(N))
    )
    found = np.sqrt(((np.abs(R) + error * UP) ** 2).sum(axis=2)).max(axis=0) * UP
    return np.where(np.isnan(found), np.inf, found)


def _tail(
    equation: Equation,
    leader: np.ndarray,
    pairs: Pairs,
    counts: np.ndarray,
    q_size: np.ndarray,
    w_size: np.ndarray,
    v_size: np.ndarray,
    g0: np.ndarray,
) -> np.ndarray:
    """What interpolation at the nodes can miss, (n,): the least over the ellipses."""
    n = v_size.shape[1]
    best = np.full(n, np.inf)
    order = np.arange(len(v_size))
    at_start = (q_size[0] * w_size[0]).sum(axis=1)
    for rho in ELLIPSES:
        powers = (
            0.5 * (1.0 + 0.5 * (rho + 1.0 / rho))
        ) ** order  # |s| <= (1 + a) / 2 on the ellipse with half axis a
        q, w, v = (np.tensordot(powers, size, axes=1) * UP for size in (q_size, w_size, v_size))
        with np.errstate(over="ignore", invalid="ignore"):
            rise = (q * w).sum(axis=1) * UP - at_start
            # the real part at the start is known, up to what is off by rounding and by M; both are
            # in UP and 1e-3
            E = counts * upper(g0 + rise + 1e-3 + 1e-12 * at_start)
            Z = equation.counts[leader] + pairs.add_rows(E, n, 0)
            N = pairs.add_rows(E[:, None] * w, n, 0)
            most = np.sqrt(((Z[:, None] * v + np.abs(equation.rates) * N) ** 2).sum(axis=1))
            missed = (1.0 + LEBESGUE) * 2.0 * most * rho**-NODES * rho / (rho - 1.0) * UP
        best = np.minimum(best, np.where(np.isnan(missed), np.inf, missed))
    return best
