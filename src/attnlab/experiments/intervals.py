"""Confidence intervals: of a mean over independent starts (bootstrap standard error, Student's quantile), and of a share."""

from __future__ import annotations

import math

import numpy as np

LEVEL = 0.95
RESAMPLES = 1000


def mean_interval(values: np.ndarray, level: float = LEVEL) -> tuple[float, float]:
    """(low, high) for the mean of independent values (m,), m >= 3, else NaN; values that are not finite are left out.

    Quantiles of the resampled means themselves would be too narrow: for eight values they hold the truth in 90 %, not in 95 %. So
    their standard deviation is taken, times sqrt(m / (m - 1)) since resamples do not know that the mean is estimated.
    """
    from scipy.stats import t

    values = np.asarray(values, dtype=float)
    values = values[np.isfinite(values)]
    m = len(values)
    if m < 3:
        return float("nan"), float("nan")
    means = np.random.default_rng(m).choice(values, (RESAMPLES, m)).mean(axis=1)
    reach = float(t.ppf((1 + level) / 2, m - 1)) * math.sqrt(m / (m - 1)) * float(means.std())
    return float(values.mean()) - reach, float(values.mean()) + reach


def share_interval(count: int, total: int) -> tuple[float, float]:
    """The 95 % interval of Clopper and Pearson of a share: exact, so wide where there are few."""
    from scipy.stats import binomtest

    found = binomtest(count, total).proportion_ci(LEVEL, method="exact")
    return float(found.low), float(found.high)
