"""Numbers with known rounding, for the check of a proof: MPFR with 160 bits or more, MPFR rounded up
or down, and exact rationals.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import gmpy2
import numpy as np

BITS_OF_PART = 128
"""More bits of values, for each double that a number of the proof is the sum of. A value is the
result of fewer than 2^16 operations, so with 32 bits beside them it is off by less than 2^-(12 +
128 parts) of the sum of its terms.
"""

BOUND_BITS = 96
"""Of bounds, which are rounded in one direction."""

TINY = 2.0**-90
"""Charged for the rounding of bounds, which BOUND_BITS have."""


def tiny(parts: int) -> float:
    """Charged for the rounding of values, relative to the sum of their terms: far more than there
    is.
    """
    return float(2.0 ** (8 - BITS_OF_PART * parts))


as_number = np.frompyfunc(gmpy2.mpfr, 1, 1)
as_fraction = np.frompyfunc(gmpy2.mpq, 1, 1)
exp = np.frompyfunc(gmpy2.exp, 1, 1)
root = np.frompyfunc(gmpy2.sqrt, 1, 1)


@contextlib.contextmanager
def arithmetic(bits: int, direction: int) -> Iterator[None]:
    """MPFR with these bits and this rounding inside the block, and what was set before afterwards.

    Both are set by name. With gmpy2 2.1.4 a block `with gmpy2.context(...)` leaves its rounding
    mode behind.
    """
    before = gmpy2.get_context().copy()
    found = gmpy2.context()
    found.precision, found.round = bits, direction
    found.emax, found.emin = gmpy2.get_emax_max(), gmpy2.get_emin_min()
    gmpy2.set_context(found)
    try:
        yield
    finally:
        gmpy2.set_context(before)
        gmpy2.get_context().precision, gmpy2.get_context().round = before.precision, before.round


def values(parts: int = 1) -> contextlib.AbstractContextManager[None]:
    """Round to nearest, with the bits for numbers that are sums of `parts` doubles."""
    return arithmetic(32 + BITS_OF_PART * parts, gmpy2.RoundToNearest)


def upwards() -> contextlib.AbstractContextManager[None]:
    """Round up: sums, products, quotients and roots of numbers that are not negative are bounds
    from above.
    """
    return arithmetic(BOUND_BITS, gmpy2.RoundUp)


def downwards() -> contextlib.AbstractContextManager[None]:
    """Round down."""
    return arithmetic(BOUND_BITS, gmpy2.RoundDown)


def norms(array: np.ndarray) -> np.ndarray:
    """Bounds of the Euclidean norms along the last axis; call it where rounding is upwards."""
    return root((array * array).sum(axis=-1)) * (1 + gmpy2.mpfr(TINY))


def evaluate(coefficients: np.ndarray, at: np.ndarray) -> np.ndarray:
    """A polynomial with coefficients (order + 1, ...) at the points `at`: (points, ...)."""
    powers = np.full((len(at), len(coefficients)), gmpy2.mpfr(1), dtype=object)
    for k in range(1, len(coefficients)):
        powers[:, k] = powers[:, k - 1] * at
    found = powers @ coefficients.reshape(len(coefficients), -1)
    return found.reshape(len(at), *coefficients.shape[1:])
