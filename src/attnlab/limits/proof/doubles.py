"""The steps of a proof in plain doubles: what rounding makes of values is bounded by running error
analysis.
"""

from __future__ import annotations

import numpy as np

from attnlab.limits.proof.equation import UP, Equation
from attnlab.limits.proof.expansion import Digits, choose_factor
from attnlab.limits.proof.exponentials import ERROR, LARGEST, UNIT, exponential
from attnlab.limits.proof.pairs import Pairs
from attnlab.limits.proof.ranges import Known, Polynomials

U = 1.01 * UNIT
TINY = 1e-290
"""Charged for what is too small for a double."""

PRODUCTS = 1e-13
"""Charged for the rounding of a coefficient of a product of two polynomials, relative to the sum of
the moduli of its terms: there are at most 25 of at most 12 coordinates."""


class Doubles:
    """Numbers are doubles: an Arithmetic."""

    digits = Digits(1)

    def __init__(self, equation: Equation):
        self.equation = equation

    def scores(self, x: np.ndarray) -> np.ndarray:
        """See Arithmetic."""
        scores = np.where(self.equation.seen, x[0] @ self.equation.M @ x[0].T, -np.inf)
        return np.asarray(scores - scores.max(axis=1, keepdims=True))

    def expand(
        self, x: np.ndarray, leader: np.ndarray, pairs: Pairs, h: float
    ) -> tuple[np.ndarray, float]:
        """See Arithmetic."""
        equation, order = self.equation, self.digits.order
        n, d = x.shape[1:]
        m = len(pairs.row)
        c, y = np.zeros((order + 1, n, d)), np.zeros((order, n, d))
        q, w = np.zeros((order, m, d)), np.zeros((order, m, d))
        g, E, Z = np.zeros((order, m)), np.zeros((order, m)), np.zeros((order, n))
        c[0] = x[0]
        for k in range(order):
            q[k] = (c[k] @ equation.M)[pairs.row]
            w[k] = c[k][pairs.column] - c[k][pairs.leader]
            g[k] = np.einsum("amd,amd->m", q[: k + 1], w[k::-1])
            if k == 0:
                E[0] = equation.counts[pairs.column] * exponential(g[0])
            else:
                slopes = np.arange(1.0, k + 1)
                E[k] = np.einsum("a,am,am->m", slopes, g[1 : k + 1], E[k - 1 :: -1]) / k
            Z[k] = pairs.add_rows(E[k], n, 0)
            if k == 0:
                Z[0] += equation.counts[leader]
            y[k] = pairs.add_rows(np.einsum("am,amd->md", E[: k + 1], w[k::-1]), n, 0)
            if k:
                y[k] -= np.einsum("an,and->nd", Z[1 : k + 1], y[k - 1 :: -1])
            y[k] /= Z[0][:, None]
            c[k + 1] = h / (k + 1) * ((c[k][leader] + y[k]) @ equation.V.T)
        factor = choose_factor(c, float(np.abs(g[1]).max(initial=0.0)), self.digits)
        return (c * (factor ** np.arange(order + 1.0))[:, None, None])[None], h * factor

    def polynomials(self, c: np.ndarray, pairs: Pairs) -> Polynomials:
        """See Arithmetic."""
        equation, c = self.equation, c[0]
        order, row = len(c) - 1, pairs.row
        w, q, size = c[:, pairs.column] - c[:, pairs.leader], c @ equation.M, np.abs(c)
        M_off = np.sqrt((equation.M_error**2).sum()) * np.sqrt((c**2).sum(axis=2)) * UP + TINY
        w_norm, q_norm = (
            np.sqrt((one**2).sum(axis=2)) * UP + TINY for one in (w, size @ equation.M_size)
        )
        g, g_norm, g_error = (np.zeros((2 * order + 1, len(row))) for _ in range(3))
        for a in range(order + 1):
            to = slice(a, a + order + 1)
            g[to] += np.einsum("md,kmd->km", q[a, row], w)
            g_norm[to] += q_norm[a, row] * w_norm
            g_error[to] += M_off[a, row] * w_norm
        g_error = (PRODUCTS * g_norm + g_error) * UP
        return Polynomials(
            Known(q, q_norm, PRODUCTS * q_norm + M_off),
            Known(w, w_norm, UNIT * w_norm),
            Known(g, np.abs(g) + g_error, g_error),
        )

    def at_nodes(self, c: np.ndarray, h: float, leader: np.ndarray, pairs: Pairs) -> np.ndarray:
        """See Arithmetic."""
        equation, c = self.equation, c[0]
        n, d = c.shape[1:]
        order = np.arange(len(c), dtype=float)[:, None, None]
        # coefficients of M^T p, p_j - p_l and p' - V p_l, with what rounding made of them
        q_all, size = c @ equation.M, np.abs(c)
        q_error = (
            U * ((2 * order + 1) * np.abs(q_all) + equation.M_units * (size @ equation.M_size * UP))
            + size @ equation.M_error
        ).sum(axis=0) * UP
        w_all = c[:, pairs.column] - c[:, pairs.leader]
        w_error = U * ((2 * order + 2) * np.abs(w_all)).sum(axis=0)
        first = np.concatenate([order[1:] * c[1:] / h, np.zeros((1, n, d))])
        second, second_size = c[:, leader] @ equation.V.T, size[:, leader] @ equation.V_size.T
        v_all = first - second
        v_error = U * (
            (2 * order + 2) * np.abs(v_all)
            + 2 * np.abs(first)
            + (equation.V_units + 1) * second_size
        ).sum(axis=0)
        q, w, v = (self._at(one) for one in (q_all[:, pairs.row], w_all, v_all))
        q_error = q_error[pairs.row]
        counts = equation.counts[pairs.column]
        products = np.abs(q) * np.abs(w)
        g = np.einsum("smd,smd->sm", q, w)
        g_error = (
            np.abs(q) * w_error + q_error * (np.abs(w) + w_error) + (d + 1) * U * products
        ).sum(axis=2)
        off = np.where(g_error < 0.01, 1.01 * g_error, np.inf) + 1.01 * ERROR + 2 * U  # of E
        E = np.where(g < LARGEST, counts * exponential(g), np.inf)
        most = int(np.bincount(pairs.row, minlength=1).max(initial=0)) + 4  # terms of a row's sum
        N = pairs.add_rows(E[..., None] * w, n, 1)
        N_error = pairs.add_rows(
            E[..., None] * (1.01 * w_error + (off + most * U)[..., None] * np.abs(w)), n, 1
        )
        Z = equation.counts[leader] + pairs.add_rows(E, n, 1)
        Z_error = pairs.add_rows(E * (off + most * U), n, 1) + 2 * U * Z
        R = Z[..., None] * v - N @ equation.V.T
        error = (
            Z[..., None] * v_error
            + Z_error[..., None] * (np.abs(v) + v_error)
            + N_error @ equation.V_size.T
            + 4 * U * Z[..., None] * np.abs(v)
            + (4 + equation.V_units) * U * (np.abs(N) @ equation.V_size.T)
        )
        found = np.sqrt(((np.abs(R) + error * UP) ** 2).sum(axis=2)).max(axis=0) * UP
        return np.where(np.isnan(found), np.inf, found)

    def _at(self, coefficients: np.ndarray) -> np.ndarray:
        """The polynomial at the nodes, (nodes, ...). It is off by at most the sum of (2k + 1) U
        |c_k|.
        """
        at = self.digits.at.reshape(-1, *[1] * (coefficients.ndim - 1))
        value = np.broadcast_to(coefficients[-1], (len(at), *coefficients.shape[1:])).copy()
        for coefficient in coefficients[-2::-1]:
            value *= at
            value += coefficient
        return value

    def end_of(self, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """See Arithmetic."""
        c = c[0]
        value, off = c[-1].copy(), np.zeros(c.shape[1:])
        for coefficient in c[-2::-1]:
            value = value + coefficient
            off += np.abs(value)
        return value[None], np.sqrt(((1.01 * UNIT * off) ** 2).sum(axis=1)) * UP
