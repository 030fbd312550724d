"""One gap between two groups as a sum of exponentials: whether it stays above its margin, for ever
or for some time.

    gap(s) = Re (p e^{Lambda s})^T P (d e^{Lambda s}) + Re left (p e^{Lambda s}) + Re right (d e^{Lambda s}) + c

p is the centre of the row, d the difference of the centres, and what discs may change is counted
against it. Written apart from limits/groups.py and limits/windows.py: pieces are looked at from
their middles, and values are those of tokens.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

LATER = (0.0, 5.0, 10.0, 20.0, 40.0, 80.0)
"""lambda_1 times the times from which the gap is tested for ever; until then by its values."""

FINEST = 2.0**-10
"""The shortest piece, beside 1 / lambda_1."""

ROUNDED = 1e-12
"""What rounding may do to a term."""


@dataclass(frozen=True, eq=False)
class Gap:
    """The terms of a gap, and of what is counted against it."""

    rates: np.ndarray
    growth: np.ndarray  # of offsets
    centre: np.ndarray
    gap: np.ndarray
    radius: np.ndarray
    both: np.ndarray
    product: np.ndarray
    off: np.ndarray
    left: np.ndarray
    right: np.ndarray
    constant: float
    margin: float
    mu: float

    def stays_positive(self) -> bool:
        """Return whether all partial sums are >= 0, exponents falling and equal ones together
        (Abel).
        """
        real, widest = self.rates.real, self.growth
        size = np.abs(self.product) + self.off
        centre, gap = np.abs(self.centre), np.abs(self.gap)
        terms = [
            (
                _lower(
                    np.outer(self.centre, self.gap) * self.product,
                    self.rates[:, None] + self.rates[None, :],
                )
                - np.outer(centre, gap) * self.off,
                real[:, None] + real[None, :],
            ),
            (-np.outer(centre, self.both) * size, real[:, None] + widest[None, :]),
            (-np.outer(self.radius, gap) * size, widest[:, None] + real[None, :]),
            (-np.outer(self.radius, self.both) * size, widest[:, None] + widest[None, :]),
            (_lower(self.centre * self.left, self.rates), real),
            (-self.radius * np.abs(self.left), widest),
            (_lower(self.gap * self.right, self.rates), real),
            (-self.both * np.abs(self.right), widest),
            (np.array([self.constant]), np.zeros(1)),
            (np.array([-self.margin]), np.array([self.mu])),
        ]
        values = np.concatenate([np.ravel(one).astype(np.longdouble) for one, _ in terms])
        exponents = np.concatenate([np.ravel(one) for _, one in terms])
        order = np.argsort(-exponents, kind="stable")
        is_last = np.append(np.diff(exponents[order]) < 0.0, True)
        sums = np.cumsum(values[order])
        return bool(np.isfinite(sums).all() and (sums[is_last] >= 0.0).all())

    def is_open(self, span: float) -> bool:
        """Return whether the gap stays above its margin for the time `span`, which may be
        infinite.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(span):
                return self._is_open_until(span)
            fastest = float(self.rates.real.max())
            for time in LATER:
                if self._after(time / fastest).stays_positive():
                    return time == 0.0 or self._is_open_until(time / fastest)
        return False

    def _after(self, s: float) -> Gap:
        power, grown = np.exp(self.rates * s), np.exp(self.growth * s)
        return replace(
            self,
            centre=self.centre * power,
            gap=self.gap * power,
            radius=self.radius * grown,
            both=self.both * grown,
            margin=self.margin * float(np.exp(self.mu * s)),
        )

    def _is_open_until(self, end: float) -> bool:
        finest, s = FINEST / float(self.rates.real.max()), 0.0
        h = 64.0 * finest
        while s < end:
            h = min(h, end - s)
            if self._is_open_on(s, h):
                s, h = s + h, min(2.0 * h, 512.0 * finest)
            elif h <= finest:
                return False
            else:
                h *= 0.5
        return True

    def _is_open_on(self, s: float, h: float) -> bool:
        """Return whether it is open from s to s + h, by its value and its slope in the middle."""
        rates, size = self.rates.astype(complex), np.abs(self.rates)
        product = self.product.astype(complex)
        left, right = self.left.astype(complex), self.right.astype(complex)
        power = np.exp(rates * (s + 0.5 * h))
        p, d = self.centre.astype(complex) * power, self.gap.astype(complex) * power
        value = (p @ product @ d + left @ p + right @ d).real + self.constant
        slope = (p * rates) @ product @ d + p @ product @ (d * rates)
        slope = (slope + left @ (p * rates) + right @ (d * rates)).real
        end = s + h
        rise = np.exp(np.maximum(self.rates.real, 0.0) * end + np.minimum(self.rates.real, 0.0) * s)
        p, d = np.abs(self.centre) * rise, np.abs(self.gap) * rise
        radius, both = (one * np.exp(self.growth * end) for one in (self.radius, self.both))
        most = np.abs(self.product) + self.off
        second = p * size**2 @ most @ d + 2.0 * (p * size) @ most @ (d * size)
        second += p @ most @ (d * size**2)
        second += np.abs(left) @ (p * size**2) + np.abs(right) @ (d * size**2)
        against = p @ (self.off + ROUNDED * np.abs(self.product)) @ d + (p + radius) @ most @ both
        against += radius @ most @ d + np.abs(left) @ radius + np.abs(right) @ both
        against += ROUNDED * (np.abs(left) @ p + np.abs(right) @ d)
        against += self.margin * np.exp(self.mu * end)
        return bool(value - 0.5 * h * abs(slope) - 0.125 * h**2 * second > against)


def _lower(values: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """Factors of e^{Re rate s} that are below the terms: oscillating ones at minus their
    modulus.
    """
    return np.where(rates.imag != 0.0, -np.abs(values), values.real)
