"""Q^T K and sums of V over heads, right to the last digits also where large terms cancel.

A plain product is off by 1e-16 of the sum of the moduli of its terms. If the terms cancel, nothing
of it may be right, not even its sign, and no perturbed start shows that. Entries that are off by
more than WRONG of themselves are replaced by sums with twice the digits. All others stay as they
are.
"""

from __future__ import annotations

import math

import numpy as np

from attnlab.types import Weights

WRONG = 1e-11
"""As much as replicas are pushed by."""

UNIT = 2.0**-53
BLOCK = 1_000_000
"""Numbers that are held at once."""

SMALLEST, LARGEST = 1e-60, 1e60
"""Between these, what a product rounds off is a double itself."""


def score_matrices(weights: Weights) -> np.ndarray:
    """Q^T K of each head, (h, d, d)."""
    plain = np.asarray(weights.M)
    return np.stack(
        [_product(Q, K, one) for Q, K, one in zip(weights.Q, weights.K, plain, strict=True)]
    )


def scores_between(weights: Weights, x: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """The scores x_i^T Q_h^T K_h x_j of tokens x (m, d) and their errors, (h, m, m) each; None where
    numbers are too large or too small for the bound.

    Products Q x, K x and scores are sums in two parts. With N = max(k, d) + 2, u = 2^-53 and S the
    sum of the moduli of all terms, Q x and K x are off by 4 N^2 u^2 of their own sums of moduli (as
    for a dot product in twice the digits), and the score by 32 N^2 u^2 S, before it is rounded.
    """
    sizes = [np.abs(array[array != 0.0]) for array in (x, weights.Q, weights.K)]
    if any(one.size and not (SMALLEST < one.min() and one.max() < LARGEST) for one in sizes):
        return None
    count = max(weights.Q.shape[1], weights.d) + 2
    scores, errors = [], []
    for Q, K in zip(weights.Q, weights.K, strict=True):
        (q, q_low), (k, k_low) = _image(Q, x), _image(K, x)
        high, low = _sums_in_parts(q[:, :, None], k[:, None, :])
        scores.append(high + (low + (q.T @ k_low + q_low.T @ k)))
        moduli = (np.abs(Q) @ np.abs(x).T).T @ (np.abs(K) @ np.abs(x).T)
        rest = 32.0 * count**2 * UNIT**2 * moduli + np.where(moduli > 0.0, 1e-290, 0.0)
        errors.append(2.0 * UNIT * np.abs(scores[-1]) + rest)
    return np.stack(scores), np.stack(errors)


def _image(Q: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Q x_i of all tokens x (m, d), (k, m), in two parts."""
    if np.array_equal(Q, np.eye(len(x.T))):
        return np.ascontiguousarray(x.T), np.zeros(x.T.shape)
    return _sums_in_parts(Q.T[:, :, None], x.T[:, None, :])


def sum_of(V: np.ndarray) -> np.ndarray:
    """The sum of matrices V (h, d, d)."""
    total = V.sum(axis=0)
    if len(V) < 3:  # two numbers are added with one rounding
        return np.asarray(total)
    doubted = 4.0 * len(V) * UNIT * np.abs(V).sum(axis=0) > WRONG * np.abs(total)
    for place in zip(*np.nonzero(doubted), strict=True):
        exact = math.fsum(V[(slice(None), *place)])
        if abs(exact - total[place]) > WRONG * abs(exact):
            total[place] = exact
    return np.asarray(total)


def _product(Q: np.ndarray, K: np.ndarray, plain: np.ndarray) -> np.ndarray:
    """Q^T K, of which `plain` is what a plain product gives."""
    size = np.abs(Q).T @ np.abs(K)
    # with many terms, roundings do not all add up
    units = min(len(Q), 4.0 * math.sqrt(len(Q))) + 2.0
    rows, columns = np.nonzero(units * UNIT * size > WRONG * np.abs(plain))
    found = plain.copy()
    length = max(1, BLOCK // max(len(Q), 1))
    for begin in range(0, len(rows), length):
        a, b = rows[begin : begin + length], columns[begin : begin + length]
        exact = _sums(Q[:, a], K[:, b])
        is_off = np.abs(exact - found[a, b]) > WRONG * np.abs(exact)
        found[a[is_off], b[is_off]] = exact[is_off]
    return found


def _sums(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Sums of products along the first axis, with what each product and each sum rounds off."""
    high, low = _sums_in_parts(one, other)
    return np.asarray(high + low)


def _sums_in_parts(one: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same as two numbers, of which the second is what the first rounds off."""
    high = np.zeros(np.broadcast_shapes(one.shape[1:], other.shape[1:]))
    low = np.zeros_like(high)
    for x, y in zip(one, other, strict=True):
        product = x * y
        (x_high, x_low), (y_high, y_low) = _halves(x), _halves(y)
        rest = ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low
        total = high + product
        part = total - high
        low += (high - (total - part)) + (product - part) + rest
        high = total
    return high, low


def _halves(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A number as the sum of two of 26 bits."""
    scaled = 134217729.0 * x
    high = scaled - (scaled - x)
    return high, x - high
