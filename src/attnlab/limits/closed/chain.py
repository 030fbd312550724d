"""Abel's test with polynomial factors: is a sum of c s^p e^{mu s} never negative for s >= 0?

With p_k(y) = sum_{j <= k} y^j / j! and the exponents mu_1 > mu_2 > ..., delta_r = mu_{r-1} - mu_r, the
functions

    ..  e^{mu_{r-1} s}  >=  p_k(delta_r s) e^{mu_r s}  >=  ..  >=  p_1(delta_r s) e^{mu_r s}  >=  e^{mu_r s}  >=  ..

fall in this order, since e^y >= p_k(y) >= p_{k-1}(y). s^j is j! / delta^j (p_j - p_{j-1}). So with R the
sum of the coefficients of all e^{mu s} before, the partial sums are R + c_j j! / delta_r^j and, for j
= 0, R + c_0. If all are >= 0, so is the sum.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import factorial

import numpy as np

from attnlab.limits.closed.solution import Key


def smallest_sum(lowest: Mapping[Key, np.ndarray], first_step: Fraction) -> np.ndarray:
    """The smallest partial sum of each member of arrays of coefficients, by (mu, p). first_step:
    delta_1, any positive number.
    """
    shape = np.broadcast_shapes(*(array.shape for array in lowest.values()))
    carried, least = np.zeros(shape), np.full(shape, np.inf)
    before: Fraction | None = None
    for mu in sorted({mu for mu, _ in lowest}, reverse=True):
        step = float(first_step if before is None else before - mu)
        for p in sorted((p for rate, p in lowest if rate == mu and p > 0), reverse=True):
            with np.errstate(over="ignore", invalid="ignore"):
                least = np.minimum(least, carried + lowest[mu, p] * (factorial(p) / step**p))
        if (mu, 0) in lowest:
            carried = carried + lowest[mu, 0]
        least = np.minimum(least, carried)
        before = mu
    return least
