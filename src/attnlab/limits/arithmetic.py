"""Arrays of numbers with as many digits as asked for: double precision, or MPFR numbers in NumPy
object arrays.
"""

from __future__ import annotations

import contextlib
import math
from typing import Any

import numpy as np

DOUBLE_DIGITS = 16


class Arithmetic:
    """digits <= 16: float64. More: MPFR, rounded to that many decimal digits and some."""

    def __init__(self, digits: int):
        self.digits = max(digits, DOUBLE_DIGITS)
        self.is_double = digits <= DOUBLE_DIGITS
        self.epsilon = 2.0**-52 if self.is_double else 10.0 ** -float(digits)
        if not self.is_double:
            import gmpy2

            self.library: Any = gmpy2
            self.bits = math.ceil(digits * math.log2(10.0)) + 12
            self._make = np.frompyfunc(gmpy2.mpfr, 1, 1)
            self._make_complex = np.frompyfunc(gmpy2.mpc, 1, 1)
            self._exp = np.frompyfunc(gmpy2.exp, 1, 1)

    def precision(self) -> Any:
        """A context in which numbers have these digits; threads have their own, so every entry
        point opens one.
        """
        if self.is_double:
            return contextlib.nullcontext()
        return self.library.context(precision=self.bits, emin=-(2**60), emax=2**60)

    def array(self, values: Any) -> np.ndarray:
        """The doubles (or complex doubles) as numbers of this kind, exactly."""
        values = np.asarray(values)
        if self.is_double:
            return values.astype(complex if np.iscomplexobj(values) else float)
        return (
            self._make_complex(values.astype(complex))
            if np.iscomplexobj(values)
            else self._make(values.astype(float))
        )

    @property
    def part_count(self) -> int:
        """How many doubles a number is stored as, see `parts`."""
        return 1 if self.is_double else self.bits // 53 + 2

    def parts(self, values: np.ndarray) -> np.ndarray:
        """The numbers as sums of doubles, (parts, ...): exact up to their last digit."""
        if self.is_double:
            return values[None].astype(float)
        found = []
        with self.precision():
            for _ in range(self.part_count):
                found.append(values.astype(float))
                values = values - self.array(found[-1])
        return np.stack(found)

    def from_parts(self, parts: np.ndarray) -> np.ndarray:
        """The numbers that `parts` was given."""
        with self.precision():
            return sum((self.array(part) for part in parts[1:]), self.array(parts[0]))

    def exp(self, values: np.ndarray) -> np.ndarray:
        """e^values, for values <= 0; what is far below the last digit becomes 0 without being
        computed.
        """
        if self.is_double:
            return np.exp(values)
        out = self.array(np.zeros(values.shape))
        # as doubles: only to know which are worth computing
        is_seen = values.astype(float) > -2.4 * self.digits - 30.0
        out[is_seen] = self._exp(values[is_seen])
        return out

    def inverse(self, matrix: np.ndarray) -> np.ndarray:
        """The inverse of a small matrix of such numbers, by Newton's iteration from that in double
        precision.
        """
        rough = np.linalg.inv(doubles(matrix))
        if self.is_double:
            return rough
        X, two = self.array(rough), self.array(2.0 * np.eye(len(matrix)))
        for _ in range(4 + int(math.log2(self.digits))):
            X = X @ (two - matrix @ X)
        return X


def doubles(values: np.ndarray) -> np.ndarray:
    """Rounded to double precision, complex where they are."""
    values = np.asarray(values)
    if values.dtype != object:
        return values
    is_complex = any(type(value).__name__ == "mpc" for value in values.ravel()[:1])
    return values.astype(complex if is_complex else float)
