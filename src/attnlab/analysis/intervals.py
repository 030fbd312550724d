"""95 % intervals for what repeated runs give: of a share (Wilson; Clopper and Pearson) and of a
mean (Student; bootstrap).
"""

from __future__ import annotations

import math

import numpy as np

LEVEL = 0.95

RESAMPLES = 1000
"""Resamples of a bootstrap interval."""


def wilson_interval(count: int, total: int, level: float = LEVEL) -> tuple[float, float]:
    """(low, high) of the share count / total of independent yes-or-no answers; (NaN, NaN) for none
    at all.

    Wilson's score interval (1927): all shares p with |count / total - p| <= z sqrt(p (1 - p) /
    total). It stays in [0, 1], and has a width also where all answers agree.
    """
    from scipy.special import ndtri

    _check_count(count, total)
    if total == 0:
        return float("nan"), float("nan")
    share, z = count / total, float(ndtri((1 + level) / 2))
    middle = (share + z**2 / (2 * total)) / (1 + z**2 / total)
    half = z / (1 + z**2 / total) * math.sqrt(share * (1 - share) / total + z**2 / (4 * total**2))
    low = 0.0 if count == 0 else max(middle - half, 0.0)
    return low, (1.0 if count == total else min(middle + half, 1.0))


def exact_interval(count: int, total: int, level: float = LEVEL) -> tuple[float, float]:
    """(low, high) of the share count / total by Clopper and Pearson (1934): exact, so wide where
    there are few answers.

    (NaN, NaN) for none at all. The ends are the shares for which so many answers or more, and so
    many or fewer, have the chance (1 - level) / 2.
    """
    from scipy.stats import binomtest

    _check_count(count, total)
    if total == 0:
        return float("nan"), float("nan")
    found = binomtest(count, total).proportion_ci(level, method="exact")
    return float(found.low), float(found.high)


def student_interval(values: np.ndarray, level: float = LEVEL) -> tuple[float, float]:
    """(low, high) of the mean of independent values (m,), by Student's quantile; (NaN, NaN) for
    fewer than two values.

    Values that are not finite are left out.
    """
    from scipy.special import stdtrit

    values = _finite(values)
    m = len(values)
    if m < 2:
        return float("nan"), float("nan")
    mean = float(values.mean())
    reach = float(stdtrit(m - 1, (1 + level) / 2)) * float(values.std(ddof=1)) / math.sqrt(m)
    return mean - reach, mean + reach


def bootstrap_interval(values: np.ndarray, level: float = LEVEL) -> tuple[float, float]:
    """(low, high) of the mean of independent values (m,): Student's quantile times a bootstrap
    standard error.

    (NaN, NaN) for fewer than three values; values that are not finite are left out. Equal values
    give the same interval again. Quantiles of the resampled means themselves would be too narrow:
    for eight values they hold the truth in 90 %, not in 95 %. So we take their standard deviation,
    times sqrt(m / (m - 1)) because resamples do not know that the mean is estimated.
    """
    from scipy.stats import t

    values = _finite(values)
    m = len(values)
    if m < 3:
        return float("nan"), float("nan")
    means = np.random.default_rng(m).choice(values, (RESAMPLES, m)).mean(axis=1)
    reach = float(t.ppf((1 + level) / 2, m - 1)) * math.sqrt(m / (m - 1)) * float(means.std())
    return float(values.mean()) - reach, float(values.mean()) + reach


def _finite(values: np.ndarray) -> np.ndarray:
    values = np.asarray(values, dtype=float)
    return values[np.isfinite(values)]


def _check_count(count: int, total: int) -> None:
    if not 0 <= count <= total:
        raise ValueError(f"count must be from 0 to total = {total}, got {count}.")
