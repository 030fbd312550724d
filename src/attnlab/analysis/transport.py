"""Probability laws on the line, their quantiles, and Wasserstein distances between clouds of
tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from attnlab.displayed import Displayed, short_repr

HALVINGS = 60
"""Bisection steps of a quantile: an interval of length 4 shrinks below the rounding of its ends."""


@dataclass(frozen=True)
class Law(Displayed):
    """A probability law on [low, high] by its cumulative function and its density, both of an array
    of places.
    """

    label: str
    low: float
    high: float
    cumulative: Callable[[np.ndarray], np.ndarray]
    density: Callable[[np.ndarray], np.ndarray]
    __repr__ = short_repr

    def quantiles(self, levels: np.ndarray) -> np.ndarray:
        """The places below which these parts of the mass are, by bisection."""
        below, above = (np.full(np.shape(levels), end) for end in (self.low, self.high))
        for _ in range(HALVINGS):
            middle = (below + above) / 2
            is_left = self.cumulative(middle) < levels
            below, above = np.where(is_left, middle, below), np.where(is_left, above, middle)
        return (below + above) / 2

    def start(self, n: int) -> np.ndarray:
        """n tokens at the quantiles of the levels (i - 1/2) / n: the midpoint rule for the law;
        shape (n, 1).
        """
        return self.quantiles(middle_levels(n))[:, None]


def middle_levels(n: int) -> np.ndarray:
    """(i - 1/2) / n for i = 1 .. n."""
    return (np.arange(n) + 0.5) / n


def uniform_law() -> Law:
    """The uniform law on [-1, 1]."""
    return Law(
        "uniform on [−1, 1]", -1.0, 1.0, lambda x: (x + 1) / 2, lambda x: np.full(np.shape(x), 0.5)
    )


def truncated_bells(label: str, *parts: tuple[float, float, float]) -> Law:
    """Gaussians (weight, mean, deviation), added up and cut off at -1 and 1."""
    from scipy.special import ndtr

    def raw(x: np.ndarray) -> np.ndarray:
        return np.asarray(
            sum(weight * ndtr((x - mean) / deviation) for weight, mean, deviation in parts)
        )

    first, last = raw(np.array(-1.0)), raw(np.array(1.0))

    def density(x: np.ndarray) -> np.ndarray:
        total = sum(
            weight / deviation * np.exp(-(((x - mean) / deviation) ** 2) / 2)
            for weight, mean, deviation in parts
        )
        return np.asarray(total) / np.sqrt(2 * np.pi) / (last - first)

    return Law(label, -1.0, 1.0, lambda x: (raw(x) - first) / (last - first), density)


def wasserstein(first: np.ndarray, second: np.ndarray, power: float = 2.0) -> float:
    """W_p between two clouds of equally heavy tokens on the line, exactly: in order, each repeated
    until both are as many.
    """
    many = np.lcm(len(first), len(second))
    one, other = (
        np.repeat(np.sort(tokens, axis=None), many // len(tokens)) for tokens in (first, second)
    )
    return float(np.mean(np.abs(one - other) ** power) ** (1 / power))


def coupling(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return, for each token of x (n, d), the token of y (n, d) that it is coupled with in W_2."""
    from scipy.optimize import linear_sum_assignment
    from scipy.spatial.distance import cdist

    return np.asarray(linear_sum_assignment(cdist(x, y, "sqeuclidean"))[1])


def cloud_distance(x: np.ndarray, y: np.ndarray) -> float:
    """Return W_2 between two clouds x and y (n, d) of equally many, equally heavy tokens."""
    return float(np.sqrt(np.mean(np.sum((x - y[coupling(x, y)]) ** 2, axis=1))))
