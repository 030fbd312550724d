"""e^x in double precision with a proved error bound. No library's exp is used: none promises what
it is off by.

x = k ln 2 + r with |r| <= 0.35. ln 2 = HIGH + LOW, where HIGH has 32 bits, so that k HIGH is exact
for |k| < 2^20. Then x - k HIGH is exact too (Sterbenz), or is off by u |r| where the quotient is at
the edge of 1/2. So r is off by at most u (2 |r| + 2^-20), u = 2^-53. The Taylor polynomial of
degree 14 leaves out less than 2e-19. Horner's scheme loses at most the sum of (2k + 1) u |r|^k /
k!, which is below 2.5 u, and rounded coefficients cost below 0.1 u; e^r is at least 0.70. Together
less than 6 u, relative. 2^k is exact. The bound that is used is ERROR = 8 u.
"""

from __future__ import annotations

import math

import numpy as np

UNIT = 2.0**-53
ERROR = 8.0 * UNIT
"""The relative error of `exponential`, for |x| <= LARGEST."""

LARGEST = 690.0
HIGH = float.fromhex("0x1.62e42ffp-1")
LOW = float.fromhex(
    "-0x1.718432a1b0e26p-35"
)  # ln 2 - HIGH, to 2^-88; a test compares with many digits
COEFFICIENTS = tuple(1.0 / math.factorial(k) for k in range(15))


def exponential(x: np.ndarray) -> np.ndarray:
    """e^x for |x| <= 690, off by at most 8 units of 2^-53, relative. Smaller x count as -690,
    larger ones as 690: see `upper`.
    """
    x = np.clip(x, -LARGEST, LARGEST)
    k = np.rint(x * 1.4426950408889634)
    r = (x - k * HIGH) - k * LOW
    value = np.full_like(r, COEFFICIENTS[-1])
    for coefficient in COEFFICIENTS[-2::-1]:
        value *= r
        value += coefficient
    return np.ldexp(value, k.astype(np.int64))


def upper(x: np.ndarray) -> np.ndarray:
    """A bound of e^x from above; infinite for x > 690."""
    return np.where(np.asarray(x) > LARGEST, np.inf, exponential(x) * (1.0 + 2.0 * ERROR))


def lower(x: np.ndarray) -> np.ndarray:
    """A bound of e^x from below; 0 for x < -690."""
    return np.where(np.asarray(x) < -LARGEST, 0.0, exponential(x) * (1.0 - 2.0 * ERROR))
