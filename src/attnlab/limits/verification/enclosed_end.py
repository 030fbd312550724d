"""The end of a proof checked again in exact rationals: no row changes its leader any more. No code
of the prover is used.
"""

from __future__ import annotations

import gmpy2
import numpy as np

from attnlab.limits.verification.enclosed_flow import Flow
from attnlab.limits.verification.enclosed_numbers import (
    as_fraction,
    as_number,
    downwards,
    norms,
    upwards,
)
from attnlab.limits.verification.enclosed_spectrum import Eigen, falling
from attnlab.limits.verification.record import require


def check_leak(
    flow: Flow,
    eigen: Eigen,
    end: np.ndarray,
    radius: np.ndarray,
    margin: float,
    mu: float,
    leak: float,
) -> None:
    """What softmax leaks for ever, if gaps stay above (G - 1) e^{mu s}, moves no eigen-coordinate of
    a leader by more than `leak`.
    """
    require((eigen.rates > 0).any() and 0.0 < mu, "mu must be positive, and so must a rate.")
    fastest = (abs(eigen.rates) + eigen.rates_off).max()
    room = (as_fraction(margin) - 1) * as_fraction(mu) - 2 * fastest
    require(margin > 1.0 and room > 0, "The margin is too small for the leak to be bounded.")
    x, off = eigen.coordinates(as_fraction(end).sum(axis=0), _each(radius, end))
    with upwards():
        size = norms(as_number(abs(x) + off)).max()
        total = 2 * gmpy2.mpfr(int(flow.counts.sum())) * gmpy2.mpfr(fastest) * size
        with downwards():
            below = gmpy2.mpfr(room)
        found = total * gmpy2.exp(gmpy2.mpfr(1 - as_fraction(margin))) / below
    require(found <= leak, f"Softmax leaks up to {float(found):.3g}, and {leak:.3g} is stored.")


def _each(radius: np.ndarray, end: np.ndarray) -> np.ndarray:
    """The radius (m,) of each token for each of its coordinates, (m, d)."""
    return np.repeat(as_fraction(radius)[:, None], end.shape[2], axis=1)


def check_gaps(
    flow: Flow,
    eigen: Eigen,
    end: np.ndarray,
    radius: np.ndarray,
    leader: np.ndarray,
    margin: float,
    mu: float,
    leak: float,
) -> int:
    """Every gap stays above G e^{mu s}: all partial sums, from below, are not negative. Returns how
    many gaps there are.
    """
    d = end.shape[2]
    x, off, leak = as_fraction(end).sum(axis=0), _each(radius, end), as_fraction(leak)
    M, M_off = eigen.scores(flow.M)
    X, X_off = eigen.coordinates(x, off)
    X, X_off = X[leader], X_off[leader] + leak
    D, D_off = eigen.coordinates(x - x[leader], off + off[leader])
    follows = leader != np.arange(len(x))
    D, D_off = D * follows[:, None], (D_off + 2 * leak) * follows[:, None]
    groups, names = falling(eigen, mu)
    count = 0
    for i in range(len(x)):
        own = int(leader[i])
        for k in np.flatnonzero(flow.seen[i] & (np.arange(len(x)) != own)):
            apart = int(leader[k] != own)  # the leaders' difference is 0 if they are one
            B, B_off = (X[i] - X[k]) * apart, (X_off[i] + X_off[k]) * apart
            sums = {name: gmpy2.mpq(0) for group in groups for name in group}
            sums["value", gmpy2.mpq(mu)] -= gmpy2.mpq(margin)
            for a in range(d):
                for b in range(d):
                    m, m_off = M[a, b], M_off[a, b]
                    if m or m_off:
                        sums[names[a, b]] += _lowest(m, m_off, X[i, a], X_off[i, a], B[b], B_off[b])
                        sums[names[a, None]] += _lowest(
                            -m, m_off, X[i, a], X_off[i, a], D[k, b], D_off[k, b]
                        )
                        sums[names[None, b]] += _lowest(
                            m, m_off, D[i, a], D_off[i, a], B[b], B_off[b]
                        )
                        sums[names[None, None]] += _lowest(
                            -m, m_off, D[i, a], D_off[i, a], D[k, b], D_off[k, b]
                        )
            partial = gmpy2.mpq(0)
            for group in groups:  # first all that is negative: the worst order
                for name in sorted(group, key=lambda name: sums[name]):
                    partial += sums[name]
                    require(
                        partial >= 0,
                        f"The gap of row {i} to token {k} need not stay open: a partial sum can be"
                        f" {float(partial):.3g}.",
                    )
            count += 1
    return count


def _lowest(m, m_off, x, x_off, y, y_off):
    """A lower bound of m' x' y' for |m' - m| <= m_off, |x' - x| <= x_off and |y' - y| <= y_off."""
    size = abs(m * x * y)
    return m * x * y + size - (abs(m) + m_off) * (abs(x) + x_off) * (abs(y) + y_off)


def enclose_points(
    eigen: Eigen,
    steps: np.ndarray,
    end: np.ndarray,
    radius: np.ndarray,
    leader: np.ndarray,
    leak: float,
) -> tuple[np.ndarray, np.ndarray]:
    """(lowest, highest) limits of z along the growing directions, (m, k) each, as MPFR numbers."""
    t, grows = as_fraction(steps).sum(), np.flatnonzero(eigen.rates > 0)
    x, off = eigen.coordinates(as_fraction(end).sum(axis=0), _each(radius, end))
    x, off = x[leader][:, grows], (off[leader] + as_fraction(leak))[:, grows]
    rates, rates_off = eigen.rates[grows], eigen.rates_off[grows]
    with downwards():
        least = _exponentials(-(rates + rates_off) * t)
        low = as_number(x - off)
        low = low * np.where(low > 0, least, 0)
    with upwards():
        most = _exponentials(-(rates - rates_off) * t)
        high = as_number(x + off)
        high = high * np.where(high > 0, most, 0)
    with downwards():
        below = as_number(x - off)
        low = low + np.where(below > 0, 0, below) * most
    with upwards():
        above = as_number(x + off)
        high = high + np.where(above > 0, 0, above) * least
    return low, high


def _exponentials(x: np.ndarray) -> np.ndarray:
    """e^x of exact fractions, rounded as it is set."""
    return np.array([gmpy2.exp(gmpy2.mpfr(one)) for one in x], dtype=object)
