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
from attnlab.limits.verification.record import require


def check_leak(
    flow: Flow, end: np.ndarray, radius: np.ndarray, margin: float, mu: float, leak: float
) -> None:
    """What softmax leaks for ever, if gaps stay above (G - 1) e^{mu s}, moves no coordinate of a
    leader by more than `leak`.
    """
    rates = np.diagonal(flow.V)
    require((rates > 0.0).any() and 0.0 < mu, "mu must be positive, and so must a rate.")
    fastest = as_fraction(float(np.abs(rates).max()))
    room = (as_fraction(margin) - 1) * as_fraction(mu) - 2 * fastest
    require(margin > 1.0 and room > 0, "The margin is too small for the leak to be bounded.")
    with upwards():
        size = (norms(as_number(end).sum(axis=0)) + as_number(radius)).max()
        total = 2 * gmpy2.mpfr(int(flow.counts.sum())) * gmpy2.mpfr(fastest) * size
        with downwards():
            below = gmpy2.mpfr(room)
        found = total * gmpy2.exp(gmpy2.mpfr(1 - as_fraction(margin))) / below
    require(found <= leak, f"Softmax leaks up to {float(found):.3g}, and {leak:.3g} is stored.")


def check_gaps(
    flow: Flow,
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
    x, off, leak = as_fraction(end).sum(axis=0), as_fraction(radius), as_fraction(leak)
    rates = [gmpy2.mpq(float(rate)) for rate in np.diagonal(flow.V)]
    exponents = sorted(
        {a + b for a in (*rates, 0) for b in (*rates, 0)} | {gmpy2.mpq(mu)}, reverse=True
    )
    count = 0
    for i in range(len(x)):
        own = int(leader[i])
        X, X_off = x[own], off[own] + leak
        D, D_off = x[i] - X, (off[i] + off[own] + 2 * leak if i != own else 0)
        ks = np.flatnonzero(flow.seen[i] & (np.arange(len(x)) != own))
        for k in ks:
            other = int(leader[k])
            B = X - x[other]  # between the leaders; 0 if they are one
            B_off = X_off + off[other] + leak if other != own else 0
            C, C_off = x[k] - x[other], (off[k] + off[other] + 2 * leak if k != other else 0)
            sums = dict.fromkeys(exponents, gmpy2.mpq(0))
            sums[gmpy2.mpq(mu)] -= gmpy2.mpq(margin)
            for a in range(d):
                for b in range(d):
                    m = flow.M[a, b]
                    if m:
                        sums[rates[a] + rates[b]] += _lowest(m, X[a], X_off, B[b], B_off)
                        sums[rates[a]] += _lowest(-m, X[a], X_off, C[b], C_off)
                        sums[rates[b]] += _lowest(m, D[a], D_off, B[b], B_off)
                        sums[gmpy2.mpq(0)] += _lowest(-m, D[a], D_off, C[b], C_off)
            partial = gmpy2.mpq(0)
            for exponent in exponents:
                partial += sums[exponent]
                require(
                    partial >= 0,
                    f"The gap of row {i} to token {k} need not stay open: a partial sum can be "
                    f"{float(partial):.3g}.",
                )
            count += 1
    return count


def _lowest(m, x, x_off, y, y_off):
    """The least m x' y' for |x' - x| <= x_off and |y' - y| <= y_off."""
    if not x_off and not y_off:
        return m * x * y
    ends = [m * (x + one * x_off) * (y + other * y_off) for one in (-1, 1) for other in (-1, 1)]
    return min(ends)


def enclose_points(
    flow: Flow,
    steps: np.ndarray,
    end: np.ndarray,
    radius: np.ndarray,
    leader: np.ndarray,
    leak: float,
) -> tuple[np.ndarray, np.ndarray]:
    """(lowest, highest) limits of z along the growing coordinates, (m, k) each, as MPFR numbers."""
    t = as_fraction(steps).sum()
    rates = np.diagonal(flow.V)
    grows = np.flatnonzero(rates > 0.0)
    x, off = (
        as_fraction(end).sum(axis=0)[leader][:, grows],
        (as_fraction(radius)[leader] + as_fraction(leak))[:, None],
    )
    found = []
    for bound, opposite, sign in ((downwards, upwards, -1), (upwards, downwards, 1)):
        with bound():
            near = np.array(
                [gmpy2.exp(gmpy2.mpfr(-gmpy2.mpq(float(rate)) * t)) for rate in rates[grows]],
                dtype=object,
            )
            edge = as_number(x + sign * off)
        with opposite():
            far = np.array(
                [gmpy2.exp(gmpy2.mpfr(-gmpy2.mpq(float(rate)) * t)) for rate in rates[grows]],
                dtype=object,
            )
        with bound():
            found.append(edge * np.where(edge > 0, near, far))
    return found[0], found[1]
